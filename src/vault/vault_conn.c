/*
 * vault_conn - the life of a connection that uses secrets.
 *
 * Runs as:  the vault, confined.
 * Must not: leave a client without a word where there is one to say; keep a place for who does not
 *           speak.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vault/vault_inside.h"

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

/* What is left to say, then the end of it, then a while to hear that it was read. */
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

/* What is wrong with a request is no secret's; what is wrong with a host is that secret's. */
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

/* The same sentence that the operator reads. */
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
