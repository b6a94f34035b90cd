/*
 * vault_pump - the stages between a client and the host of a secret.
 *
 * Runs as:  the vault, confined.
 * Must not: take a request before the answer to the one before it is whole; pass a byte on that was
 *           not read as HTTP.
 *
 *   client ─► hear_client ─► take_request ─► tell_server ─► host
 *   client ◄─ tell_client ◄─ take_answer ◄─ hear_server ◄─ host
 *
 * Each stage reads from one buffer and writes into the next, and does nothing where there is
 * nothing, or no room: so whoever is slow slows the other down, and nobody else.
 */
#include <errno.h>
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

void vault_drop_server(struct vault *v, struct vault_conn *c)
{
	struct wire_vault_call call = { .id = call_id(v, c), .secret = WIRE_NO_SECRET };

	/* If it cannot be told now, the call ends with its time. */
	if (c->server_state == VAULT_SERVER_CALLING)
		(void)wire_send_message(VAULT_FD_CALLER, &call, sizeof(call), -1);
	vault_tls_end(c);
	if (c->server >= 0)
		close(c->server);
	c->server = -1;
	c->server_state = VAULT_SERVER_NONE;
	c->is_used = c->is_clean_end = c->server_closes = false;
	c->from_server = (struct vault_pipe){ 0 };
	c->generation++;
}

bool vault_call(struct vault *v, struct vault_conn *c)
{
	struct wire_vault_call call = { .id = call_id(v, c), .secret = c->secret };

	c->server_state = VAULT_SERVER_CALLING;
	c->deadline_ns = v->now_ns + CALL_NS;
	/* This does not wait: a dialer that has much to do may be waiting for us. */
	return wire_send_message(VAULT_FD_CALLER, &call, sizeof(call), -1) == 0;
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
	/* Who goes does not want the answer any more, and the host need not go on with it. */
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

	/* Also not before the last answer has gone: if this one is refused, that is said behind it.
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

enum vault_step vault_pump(struct vault *v, struct vault_conn *c, struct vault_refusal *no)
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
