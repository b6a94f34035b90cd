/*
 * vault_conn - one connection that uses secrets: the stages between a client and a secret's host.
 *
 * Runs as:  the vault, confined.
 * Must not: close a connection without an answer where one can still be sent; keep a slot for a
 *           client that sends nothing; take a request before the answer to the one before it is
 *           whole; pass on a byte that was not read as HTTP.
 *
 *   client ─► hear_client ─► take_request ─► tell_server ─► host
 *   client ◄─ tell_client ◄─ take_answer ◄─ hear_server ◄─ host
 *
 * Each stage reads from one buffer and writes into the next. It does nothing if there is nothing to
 * read or no room to write, so that a slow side slows the other side of its connection and nobody
 * else.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"
#include "vault/vault_inside.h"
#include "wire/wire.h"

#define HEAD_NS  (30 * VAULT_SECOND_NS)  /* from the first byte of a head to its last */
#define IDLE_NS  (300 * VAULT_SECOND_NS) /* between two requests */
#define CALL_NS  (20 * VAULT_SECOND_NS)  /* more than the dialer takes */
#define SHAKE_NS (20 * VAULT_SECOND_NS)

enum vault_step {
	VAULT_STEP_NONE,   /* nothing to do, or no room to do it */
	VAULT_STEP_MADE,   /* something moved: the stages before and behind may have work */
	VAULT_STEP_REFUSE, /* the stage has set `no`: the reason */
	VAULT_STEP_END,    /* close in order: everything was sent */
	VAULT_STEP_BREAK,  /* close in the middle of a request or an answer */
};

/* --- buffers --- */

static size_t held(const struct vault_pipe *p)
{
	return p->end - p->at;
}

/* Room at the end of a buffer, which is made by moving what is left to its front. */
static size_t pump_make_room(struct vault_pipe *p, char *bytes, size_t size)
{
	if (p->at == p->end) {
		p->at = p->end = 0;
	} else if (p->at && p->end == size) {
		memmove(bytes, bytes + p->at, held(p));
		p->end -= p->at;
		p->at = 0;
	}
	return size - p->end;
}

static struct gate_span span(const struct vault_pipe *p, const char *bytes)
{
	return (struct gate_span){ bytes + p->at, held(p) };
}

/* --- the server --- */

static uint32_t call_id(const struct vault *v, const struct vault_conn *c)
{
	return (uint32_t)(c - v->conns) | (uint32_t)c->generation << 16;
}

static void vault_drop_server(struct vault *v, struct vault_conn *c)
{
	struct wire_vault_call call = { .id = call_id(v, c), .secret = WIRE_NO_SECRET };

	/* If it cannot be told now, the call ends with its time. */
	if (c->server_state == VAULT_SERVER_CALLING)
		(void)wire_send_message(VAULT_FD_DIALER, &call, sizeof(call), -1);
	vault_tls_end(c);
	if (c->server >= 0)
		close(c->server);
	c->server = -1;
	c->server_state = VAULT_SERVER_NONE;
	c->is_used = c->is_clean_end = c->server_closes = false;
	c->from_server = (struct vault_pipe){ 0 };
	c->generation++;
}

/* Asks the dialer for the host of the connection's secret. */
static bool vault_call(struct vault *v, struct vault_conn *c)
{
	struct wire_vault_call call = { .id = call_id(v, c), .secret = c->secret };

	c->server_state = VAULT_SERVER_CALLING;
	c->deadline_ns = v->now_ns + CALL_NS;
	/* This does not wait: a dialer that has much to do may be waiting for us. */
	return wire_send_message(VAULT_FD_DIALER, &call, sizeof(call), -1) == 0;
}

static enum vault_step pump_refuse(
	struct vault_refusal *no, unsigned status, enum wire_reason reason, const char *what)
{
	no->status = status;
	no->reason = reason;
	snprintf(no->other, sizeof(no->other), "%s", what);
	return VAULT_STEP_REFUSE;
}

/* --- from the client --- */

static bool is_idle(const struct vault_conn *c)
{
	return c->answer == VAULT_ANSWER_NONE && c->request == VAULT_REQUEST_HEAD &&
	       !held(&c->from_client) && !held(&c->to_client);
}

static enum vault_step pump_hear_client(
	struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	size_t room = pump_make_room(&c->from_client, c->client_in, sizeof(c->client_in));
	ssize_t n;

	(void)v, (void)no;
	if (c->is_client_over || !room)
		return VAULT_STEP_NONE;
	n = recv(c->client, c->client_in + c->from_client.end, room, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? VAULT_STEP_NONE : VAULT_STEP_BREAK;
	c->is_client_over = n == 0;
	c->from_client.end += (size_t)n;
	c->bytes_out += (uint64_t)n;
	if (c->is_client_over && is_idle(c))
		return VAULT_STEP_END;
	/* The client has gone: the host is told not to go on with the answer. */
	if (c->is_client_over && c->answer != VAULT_ANSWER_NONE)
		return VAULT_STEP_BREAK;
	return VAULT_STEP_MADE;
}

/* The server that is there already, or another. */
static enum vault_step choose_server(
	struct vault *v, struct vault_conn *c, uint32_t secret, struct vault_refusal *no)
{
	if (c->server_state == VAULT_SERVER_OPEN && c->secret == secret)
		return VAULT_STEP_MADE;
	vault_drop_server(v, c);
	c->secret = secret;
	return vault_call(v, c) ? VAULT_STEP_MADE : pump_refuse(no, 503, WIRE_BECAUSE_MANY, "");
}

static enum vault_step take_head(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	struct vault_text out = { c->server_out, 0, sizeof(c->server_out), false };
	struct vault_request request;

	/*
	 * Also not before the last answer has gone: if this one is refused, that is said behind it.
	 */
	if (c->answer != VAULT_ANSWER_NONE || held(&c->to_server) || held(&c->to_client) ||
		!held(&c->from_client))
		return VAULT_STEP_NONE;
	switch (vault_read_request(&c->http, span(&c->from_client, c->client_in), v->secrets,
		v->rules->secret_count, &request, &out, no)) {
	case VAULT_MORE:
		if (c->is_client_over)
			return VAULT_STEP_BREAK;
		if (c->deadline_ns > v->now_ns + HEAD_NS)
			c->deadline_ns = v->now_ns + HEAD_NS;
		return VAULT_STEP_NONE;
	case VAULT_BAD:
		return VAULT_STEP_REFUSE;
	case VAULT_GOOD:
		break;
	}
	c->from_client.at += request.size;
	c->to_server = (struct vault_pipe){ 0, out.n };
	c->request = c->http.state == GATE_HTTP_HEAD ? VAULT_REQUEST_WHOLE : VAULT_REQUEST_BODY;
	c->answer = VAULT_ANSWER_HEAD;
	c->is_head = request.is_head;
	c->closes = request.closes;
	c->deadline_ns = 0;
	return choose_server(v, c, request.secret, no);
}

static enum vault_step pump_take_body(struct vault_conn *c, struct vault_refusal *no)
{
	size_t n = held(&c->from_client), pass = 0;
	uint8_t *bytes = (uint8_t *)c->client_in + c->from_client.at;

	if (!n)
		return c->is_client_over ? VAULT_STEP_BREAK : VAULT_STEP_NONE;
	if (pump_make_room(&c->to_server, c->server_out, sizeof(c->server_out)) < n)
		return VAULT_STEP_NONE;
	no->status = 400;
	switch (gate_http_read_body(&c->http, bytes, n, &pass, &no->reason, no->other)) {
	case GATE_HTTP_MORE:
		return c->is_client_over ? VAULT_STEP_BREAK : VAULT_STEP_NONE;
	case GATE_HTTP_DENY:
		return VAULT_STEP_REFUSE;
	case GATE_HTTP_PASS:
		break;
	}
	/* More than the empty line that ends them: fields that nobody has looked through. */
	if (c->http.trailers > 2)
		return pump_refuse(no, 400, WIRE_BECAUSE_BAD_HTTP, "fields follow its body");
	memcpy(c->server_out + c->to_server.end, bytes, pass);
	c->to_server.end += pass;
	c->from_client.at += pass;
	if (c->http.state == GATE_HTTP_HEAD)
		c->request = VAULT_REQUEST_WHOLE;
	return VAULT_STEP_MADE;
}

static enum vault_step take_request(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	if (c->request == VAULT_REQUEST_HEAD)
		return take_head(v, c, no);
	return c->request == VAULT_REQUEST_BODY ? pump_take_body(c, no) : VAULT_STEP_NONE;
}

/* --- to the server, and from it --- */

static enum vault_step shake(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	if (c->server_state != VAULT_SERVER_SHAKING)
		return VAULT_STEP_NONE;
	switch (vault_tls_shake(v, c, no)) {
	case VAULT_IO_DONE:
		c->server_state = VAULT_SERVER_OPEN;
		c->deadline_ns = 0;
		return VAULT_STEP_MADE;
	case VAULT_IO_WAIT:
		if (!c->deadline_ns)
			c->deadline_ns = v->now_ns + SHAKE_NS;
		return VAULT_STEP_NONE;
	case VAULT_IO_END:
	case VAULT_IO_FAILED:
		break;
	}
	return VAULT_STEP_REFUSE;
}

static enum vault_step tell_server(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	size_t n = 0;

	(void)v, (void)no;
	if (c->server_state != VAULT_SERVER_OPEN || !held(&c->to_server))
		return VAULT_STEP_NONE;
	switch (vault_tls_write(c->tls, c->server_out + c->to_server.at, held(&c->to_server), &n)) {
	case VAULT_IO_DONE:
		/* The key was among it. */
		explicit_bzero(c->server_out + c->to_server.at, n);
		c->to_server.at += n;
		return VAULT_STEP_MADE;
	case VAULT_IO_WAIT:
		return VAULT_STEP_NONE;
	case VAULT_IO_END:
	case VAULT_IO_FAILED:
		break;
	}
	c->server_state = VAULT_SERVER_ENDED;
	return VAULT_STEP_MADE;
}

/* Nothing was asked, so what it says is for nobody; and who ends here would not answer. */
static enum vault_step hear_idle(struct vault *v, struct vault_conn *c)
{
	if (c->server_state != VAULT_SERVER_ENDED && !held(&c->from_server))
		return VAULT_STEP_NONE;
	vault_drop_server(v, c);
	/* The client learns of it as if it were the server's own: nothing is lost on the way. */
	return is_idle(c) ? VAULT_STEP_END : VAULT_STEP_MADE;
}

static enum vault_step hear_server(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	size_t room = pump_make_room(&c->from_server, c->server_in, sizeof(c->server_in)), n = 0;
	enum vault_step step = VAULT_STEP_NONE;

	(void)no;
	if (c->server_state == VAULT_SERVER_OPEN && room) {
		enum vault_io io = vault_tls_read(
			c->tls, c->server_in + c->from_server.end, room, &n, &c->is_clean_end);

		if (io == VAULT_IO_DONE)
			c->from_server.end += n;
		else if (io != VAULT_IO_WAIT)
			c->server_state = VAULT_SERVER_ENDED;
		step = io == VAULT_IO_WAIT ? VAULT_STEP_NONE : VAULT_STEP_MADE;
	}
	if (c->answer == VAULT_ANSWER_NONE && c->request == VAULT_REQUEST_HEAD) {
		enum vault_step idle = hear_idle(v, c);

		return idle == VAULT_STEP_NONE ? step : idle;
	}
	return step;
}

/* --- to the client --- */

/* The host has answered before it was told all: the rest of the request is for nobody. */
static void forget_request(struct vault_conn *c)
{
	explicit_bzero(c->server_out + c->to_server.at, held(&c->to_server));
	c->to_server = (struct vault_pipe){ 0 };
}

/* An answer is whole: what of this exchange stays? */
static void end_exchange(struct vault *v, struct vault_conn *c)
{
	struct wire_vault_message m = { .kind = WIRE_VAULT_PASSED,
		.secret = c->secret,
		.bytes_out = c->bytes_out,
		.bytes_in = c->bytes_in };

	vault_tell(v, &m);
	c->bytes_out = c->bytes_in = 0;
	c->answer = VAULT_ANSWER_NONE;
	c->has_answered = false;
	/* An answer to half a request: the other half is not the beginning of a next one. */
	if (c->request != VAULT_REQUEST_WHOLE || (c->is_client_over && !held(&c->from_client)))
		c->closes = true;
	if (c->closes || c->server_closes || held(&c->from_server) || held(&c->to_server) ||
		c->server_state != VAULT_SERVER_OPEN)
		vault_drop_server(v, c);
	forget_request(c);
	c->is_used = c->server_state == VAULT_SERVER_OPEN;
	if (!c->closes)
		c->request = VAULT_REQUEST_HEAD;
	c->http.is_later = true;
	c->deadline_ns = v->now_ns + IDLE_NS;
}

/* The server has gone without a word. */
static enum vault_step miss_answer(struct vault_conn *c, struct vault_refusal *no)
{
	/* It ended while the request was on its way: the client asks again, as it would itself. */
	if (c->is_used && !held(&c->from_server))
		return VAULT_STEP_BREAK;
	return pump_refuse(no, 502, WIRE_BECAUSE_BAD_ANSWER, "the connection ended before it");
}

static void tell_echo(struct vault *v, const struct vault_conn *c)
{
	struct wire_vault_message m = { .kind = WIRE_VAULT_DECIDED,
		.secret = c->secret,
		.decided = WIRE_NET_DENIED,
		.reason = WIRE_BECAUSE_ECHO };

	snprintf(m.other, sizeof(m.other), "a header");
	vault_tell(v, &m);
}

static enum vault_step take_answer_head(
	struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	struct vault_text out = { c->client_out, 0, sizeof(c->client_out), false };
	struct vault_answer answer;

	if (held(&c->to_client))
		return VAULT_STEP_NONE;
	if (!held(&c->from_server))
		return c->server_state == VAULT_SERVER_ENDED ? miss_answer(c, no) : VAULT_STEP_NONE;
	switch (vault_read_answer(span(&c->from_server, c->server_in), &v->secrets[c->secret],
		c->is_head, c->closes, &answer, &out, no)) {
	case VAULT_MORE:
		return c->server_state == VAULT_SERVER_ENDED ? miss_answer(c, no) : VAULT_STEP_NONE;
	case VAULT_BAD:
		return VAULT_STEP_REFUSE;
	case VAULT_GOOD:
		break;
	}
	c->from_server.at += answer.size;
	c->to_client = (struct vault_pipe){ 0, out.n };
	if (answer.has_echo)
		tell_echo(v, c);
	if (answer.is_interim)
		return VAULT_STEP_MADE;
	c->has_answered = true;
	c->answer = VAULT_ANSWER_BODY;
	c->server_closes = answer.closes;
	c->closes |= answer.framing == VAULT_UNTIL_CLOSE;
	vault_body_init(&c->body, &answer, &v->secrets[c->secret]);
	return VAULT_STEP_MADE;
}

static enum vault_step take_answer_body(
	struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	size_t room = pump_make_room(&c->to_client, c->client_out, sizeof(c->client_out)), used = 0;
	struct vault_text out = { c->client_out + c->to_client.end, 0, room, false };
	enum vault_verdict r =
		vault_body_take(&c->body, span(&c->from_server, c->server_in), &used, &out, no);

	c->from_server.at += used;
	if (r == VAULT_MORE && c->server_state == VAULT_SERVER_ENDED && !held(&c->from_server)) {
		if (c->body.framing == VAULT_UNTIL_CLOSE && !c->is_clean_end)
			return VAULT_STEP_BREAK;
		r = vault_body_end(&c->body, &out, no);
	}
	if (r == VAULT_BAD)
		return VAULT_STEP_REFUSE;
	c->to_client.end += out.n;
	if (r == VAULT_GOOD)
		end_exchange(v, c);
	return r == VAULT_GOOD || used || out.n ? VAULT_STEP_MADE : VAULT_STEP_NONE;
}

static enum vault_step take_answer(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	if (c->answer == VAULT_ANSWER_HEAD)
		return take_answer_head(v, c, no);
	return c->answer == VAULT_ANSWER_BODY ? take_answer_body(v, c, no) : VAULT_STEP_NONE;
}

static enum vault_step tell_client(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	ssize_t n;

	(void)v, (void)no;
	if (!held(&c->to_client))
		return c->closes && c->answer == VAULT_ANSWER_NONE &&
				       c->request != VAULT_REQUEST_HEAD
			       ? VAULT_STEP_END
			       : VAULT_STEP_NONE;
	n = send(c->client, c->client_out + c->to_client.at, held(&c->to_client), MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? VAULT_STEP_NONE : VAULT_STEP_BREAK;
	c->to_client.at += (size_t)n;
	c->bytes_in += (uint64_t)n;
	return VAULT_STEP_MADE;
}

/* Runs every stage once. */
static enum vault_step vault_pump(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
{
	static enum vault_step (*const stages[])(
		struct vault *, struct vault_conn *, struct vault_refusal *) = { pump_hear_client,
		take_request, shake, tell_server, hear_server, take_answer, tell_client };
	enum vault_step made = VAULT_STEP_NONE;

	for (size_t i = 0; i < COUNT_OF(stages); i++) {
		enum vault_step step = stages[i](v, c, no);

		if (step > VAULT_STEP_MADE)
			return step;
		if (step == VAULT_STEP_MADE)
			made = step;
	}
	return made;
}

#define MAX_ROUNDS 32
#define FIRST_NS   (60 * VAULT_SECOND_NS) /* to begin to say something */
#define LEAVE_NS   (2 * VAULT_SECOND_NS)  /* to read what was said last */

/* --- places --- */

static void tell_passed(const struct vault *v, struct vault_conn *c)
{
	struct wire_vault_message m = { .kind = WIRE_VAULT_PASSED,
		.secret = c->secret,
		.bytes_out = c->bytes_out,
		.bytes_in = c->bytes_in };

	if (c->server_state != VAULT_SERVER_NONE && (c->bytes_out || c->bytes_in))
		vault_tell(v, &m);
	c->bytes_out = c->bytes_in = 0;
}

static void conn_end(struct vault *v, struct vault_conn *c, bool is_orderly)
{
	struct linger now = { .l_onoff = 1 };

	tell_passed(v, c);
	vault_drop_server(v, c);
	if (!is_orderly)
		setsockopt(c->client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(c->client);
	explicit_bzero(c->server_out, sizeof(c->server_out));
	c->client = -1;
	c->state = VAULT_CONN_FREE;
	v->count--;
}

static struct vault_conn *conn_find_place(struct vault *v)
{
	for (size_t i = 0; i < VAULT_MAX_CONNS; i++)
		if (v->conns[i].state == VAULT_CONN_FREE && !v->conns[i].is_ready)
			return &v->conns[i];
	return NULL;
}

static void conn_add_ready(struct vault *v, struct vault_conn *c)
{
	if (c->is_ready)
		return;
	c->is_ready = true;
	v->ready[v->ready_count++] = (uint16_t)(c - v->conns);
}

/* --- leaving --- */

/* Sends the rest, then EOF, then waits a while for the client to read it. */
static void run_leaving(struct vault *v, struct vault_conn *c)
{
	char nobody[4096];
	ssize_t n = 1;

	while (c->to_client.at < c->to_client.end) {
		n = send(c->client, c->client_out + c->to_client.at,
			c->to_client.end - c->to_client.at, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			conn_end(v, c, false);
			return;
		}
		c->to_client.at += (size_t)n;
		if (c->to_client.at == c->to_client.end)
			shutdown(c->client, SHUT_WR);
	}
	for (int i = 0; n > 0 && i < MAX_ROUNDS; i++)
		n = recv(c->client, nobody, sizeof(nobody), 0);
	if (n > 0)
		conn_add_ready(v, c);
	else if (n == 0 || errno != EAGAIN)
		conn_end(v, c, true);
}

static void conn_leave(struct vault *v, struct vault_conn *c)
{
	tell_passed(v, c);
	vault_drop_server(v, c);
	c->state = VAULT_CONN_LEAVING;
	c->deadline_ns = v->now_ns + LEAVE_NS;
	if (c->to_client.at == c->to_client.end)
		shutdown(c->client, SHUT_WR);
	run_leaving(v, c);
}

/* --- saying no --- */

/* A bad request belongs to no secret; a bad host belongs to its secret. */
static bool is_about_request(enum wire_reason reason)
{
	return reason == WIRE_BECAUSE_NO_SECRET || reason == WIRE_BECAUSE_NOT_HTTP ||
	       reason == WIRE_BECAUSE_NO_HOST || reason == WIRE_BECAUSE_OTHER_HOST ||
	       reason == WIRE_BECAUSE_BAD_HTTP;
}

static enum wire_decision_kind conn_kind_of(enum wire_reason reason)
{
	return reason == WIRE_BECAUSE_UNTRUSTED || reason == WIRE_BECAUSE_NO_TLS ||
			       reason == WIRE_BECAUSE_BAD_ANSWER ||
			       reason == WIRE_BECAUSE_UNREACHABLE
		       ? WIRE_NET_FAILED
		       : WIRE_NET_DENIED;
}

/* Writes the answer to the client: the sentence that the operator reads too. */
static void conn_write_answer(const struct vault *v, struct vault_conn *c,
	const struct vault_refusal *no, const struct wire_vault_message *m)
{
	struct wire_decision d = {
		.kind = m->decided, .reason = m->reason, .port = WIRE_VAULT_PORT
	};
	char sentence[2 * ERR_TEXT_SIZE];

	snprintf(d.name, sizeof(d.name), WIRE_HOST_NAME);
	if (m->secret < v->rules->secret_count) {
		snprintf(d.name, sizeof(d.name), "%s", v->secrets[m->secret].host);
		snprintf(d.secret, sizeof(d.secret), "%s", v->secrets[m->secret].name);
		d.port = v->secrets[m->secret].port;
	}
	snprintf(d.other, sizeof(d.other), "%s", no->other);
	wire_print_decision(&d, sentence, sizeof(sentence));
	c->to_client = (struct vault_pipe){ 0,
		gate_http_write(no->status, sentence, c->client_out, sizeof(c->client_out)) };
}

static void conn_refuse(struct vault *v, struct vault_conn *c, enum wire_decision_kind kind,
	const struct vault_refusal *no)
{
	struct wire_vault_message m = { .kind = WIRE_VAULT_DECIDED,
		.secret = is_about_request(no->reason) ? WIRE_NO_SECRET : c->secret,
		.decided = (uint8_t)kind,
		.reason = (uint8_t)no->reason };

	snprintf(m.other, sizeof(m.other), "%s", no->other);
	vault_tell(v, &m);
	/* An answer that has begun cannot be another in the middle. */
	if (c->has_answered || c->to_client.at < c->to_client.end) {
		conn_end(v, c, false);
		return;
	}
	conn_write_answer(v, c, no, &m);
	conn_leave(v, c);
}

/* --- running --- */

void vault_conn_run(struct vault *v, struct vault_conn *c)
{
	enum vault_step step = VAULT_STEP_MADE;
	struct vault_refusal no = { 0 };

	if (c->state == VAULT_CONN_LEAVING)
		run_leaving(v, c);
	if (c->state != VAULT_CONN_OPEN)
		return;
	for (int i = 0; step == VAULT_STEP_MADE && i < MAX_ROUNDS; i++)
		step = vault_pump(v, c, &no);
	switch (step) {
	case VAULT_STEP_NONE:
		return;
	case VAULT_STEP_MADE:
		conn_add_ready(v, c);
		return;
	case VAULT_STEP_REFUSE:
		conn_refuse(v, c, conn_kind_of(no.reason), &no);
		return;
	case VAULT_STEP_END:
		conn_leave(v, c);
		return;
	case VAULT_STEP_BREAK:
		conn_end(v, c, false);
		return;
	}
}

void vault_go_on(struct vault *v)
{
	uint32_t count = v->ready_count;
	uint16_t ready[VAULT_MAX_CONNS];

	memcpy(ready, v->ready, count * sizeof(ready[0]));
	v->ready_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		v->conns[ready[i]].is_ready = false;
		vault_conn_run(v, &v->conns[ready[i]]);
	}
}

void vault_conn_take(struct vault *v, int client)
{
	struct vault_conn *c = conn_find_place(v);
	const int on = 1;
	uint16_t generation;

	if (!c) {
		struct wire_vault_message m = { .kind = WIRE_VAULT_DECIDED,
			.secret = WIRE_NO_SECRET,
			.decided = WIRE_NET_DENIED,
			.reason = WIRE_BECAUSE_MANY };

		vault_tell(v, &m);
		close(client);
		return;
	}
	generation = c->generation;
	memset(c, 0, offsetof(struct vault_conn, client_in));
	c->generation = generation;
	c->state = VAULT_CONN_OPEN;
	c->client = client;
	c->server = -1;
	c->secret = WIRE_NO_SECRET;
	c->deadline_ns = v->now_ns + FIRST_NS;
	gate_http_init(&c->http, WIRE_HOST_NAME, WIRE_VAULT_PORT);
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	v->count++;
	if (vault_listen(v, client, (uint32_t)(c - v->conns)) < 0)
		conn_end(v, c, false);
	else
		vault_conn_run(v, c);
}

/* It is connected: TLS begins. */
static bool conn_begin(struct vault *v, struct vault_conn *c, const char *address)
{
	struct wire_vault_message m = {
		.kind = WIRE_VAULT_DECIDED, .secret = c->secret, .decided = WIRE_NET_ALLOWED
	};

	snprintf(m.other, sizeof(m.other), "%s", address);
	vault_tell(v, &m);
	c->server_state = VAULT_SERVER_SHAKING;
	c->deadline_ns = 0;
	return vault_listen(v, c->server, (uint32_t)(c - v->conns)) == 0 && vault_tls_begin(v, c);
}

void vault_conn_called(struct vault *v, const struct wire_called *m, int server)
{
	uint32_t place = m->id & 0xffff;
	struct vault_conn *c = place < VAULT_MAX_CONNS ? &v->conns[place] : NULL;
	struct vault_refusal no = { .reason = WIRE_BECAUSE_NO_TLS,
		.status = 502,
		.other = "the certificates to trust cannot be used" };

	if (!c || c->state != VAULT_CONN_OPEN || c->server_state != VAULT_SERVER_CALLING ||
		c->generation != m->id >> 16) {
		if (server >= 0)
			close(server);
		return;
	}
	c->server = server;
	if (server >= 0 && m->reason == WIRE_BECAUSE_ALLOWED) {
		if (conn_begin(v, c, m->other))
			vault_conn_run(v, c);
		else
			conn_refuse(v, c, WIRE_NET_FAILED, &no);
		return;
	}
	no.reason = m->reason > WIRE_BECAUSE_ALLOWED && m->reason < WIRE_REASON_COUNT
			    ? (enum wire_reason)m->reason
			    : WIRE_BECAUSE_UNREACHABLE;
	no.status = no.reason == WIRE_BECAUSE_MANY ? 503 : m->kind == WIRE_NET_DENIED ? 403 : 502;
	snprintf(no.other, sizeof(no.other), "%s", m->other);
	conn_refuse(v, c, m->kind == WIRE_NET_DENIED ? WIRE_NET_DENIED : WIRE_NET_FAILED, &no);
}

/* --- time --- */

static void conn_end_in_time(struct vault *v, struct vault_conn *c)
{
	struct vault_refusal no = {
		.reason = WIRE_BECAUSE_UNREACHABLE, .status = 504, .other = "no answer in time"
	};

	if (c->state == VAULT_CONN_OPEN && (c->server_state == VAULT_SERVER_CALLING ||
						   c->server_state == VAULT_SERVER_SHAKING))
		conn_refuse(v, c, WIRE_NET_FAILED, &no);
	else
		conn_end(v, c, c->state == VAULT_CONN_LEAVING);
}

void vault_drop_old(struct vault *v)
{
	for (size_t i = 0; v->count && i < VAULT_MAX_CONNS; i++) {
		struct vault_conn *c = &v->conns[i];

		if (c->state != VAULT_CONN_FREE && c->deadline_ns && v->now_ns > c->deadline_ns)
			conn_end_in_time(v, c);
	}
}

void vault_close_all(struct vault *v)
{
	for (size_t i = 0; i < VAULT_MAX_CONNS; i++)
		if (v->conns[i].state != VAULT_CONN_FREE)
			conn_end(v, &v->conns[i], false);
}
