/*
 * gate_head - does what a client says first agree with where it went?
 *
 * Runs as:  the gate.
 * Must not: let anything go on before it does.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/str.h"
#include "gate/gate_inside.h"
#include "gate/tls/gate_tls.h"

static bool is_name_good(const struct gate_conn *c, const char *name)
{
	return c->is_address || str_eq(c->name, name);
}

static void judge_tls(struct gate *g, struct gate_conn *c)
{
	char name[WIRE_NAME_SIZE] = "";
	enum gate_tls seen = gate_tls_read(gate_head(g, c), c->head_len, name);

	if (seen == GATE_TLS_MORE && c->head_len < GATE_HEAD_SIZE && !c->ways[GATE_OUT].is_over)
		return;
	if (seen == GATE_TLS_NAME && !is_name_good(c, name)) {
		gate_conn_deny(g, c, WIRE_NET_DENIED, WIRE_BECAUSE_OTHER_SNI, name);
	} else if (seen == GATE_TLS_NO_NAME && !c->is_address) {
		gate_conn_deny(g, c, WIRE_NET_DENIED, WIRE_BECAUSE_NO_SNI, "");
	} else if (seen == GATE_TLS_NAME || seen == GATE_TLS_NO_NAME) {
		c->head_good = c->head_len;
		gate_conn_call(g, c);
	} else {
		gate_conn_deny(g, c, WIRE_NET_DENIED, WIRE_BECAUSE_NOT_TLS, "");
	}
}

static void judge_http(struct gate *g, struct gate_conn *c)
{
	struct gate_refusal no = { .reason = WIRE_BECAUSE_NOT_HTTP };
	size_t pass = 0;
	enum gate_http_verdict seen =
		gate_http_read(&c->http, gate_head(g, c), c->head_len, &pass, &no.reason, no.other);

	if (seen == GATE_HTTP_PASS) {
		c->head_good = (uint32_t)pass;
		gate_conn_call(g, c);
	} else if (seen == GATE_HTTP_DENY) {
		gate_conn_deny(g, c, WIRE_NET_DENIED, no.reason, no.other);
	} else if (c->head_len == GATE_HEAD_SIZE || c->ways[GATE_OUT].is_over) {
		gate_conn_deny(g, c, WIRE_NET_DENIED, WIRE_BECAUSE_BAD_HTTP, "its head has no end");
	}
}

void gate_hear_head(struct gate *g, struct gate_conn *c)
{
	ssize_t n = 1;

	while (n > 0 && c->head_len < GATE_HEAD_SIZE) {
		n = recv(c->inside, gate_head(g, c) + c->head_len, GATE_HEAD_SIZE - c->head_len, 0);
		if (n > 0)
			c->head_len += (uint32_t)n;
	}
	if (n < 0 && errno != EAGAIN) {
		gate_conn_end(g, c, false);
		return;
	}
	c->ways[GATE_OUT].is_over = n == 0;
	/* EOF before the first byte: close without a decision. */
	if (!c->head_len && n == 0)
		gate_conn_end(g, c, true);
	else if (!c->head_len)
		return;
	else if (c->denied != WIRE_BECAUSE_ALLOWED)
		gate_conn_leave(g, c, c->row,
			c->denied == WIRE_BECAUSE_NO_VAULT ? WIRE_NET_FAILED : WIRE_NET_DENIED,
			c->denied);
	else if (c->protocol == WIRE_TLS)
		judge_tls(g, c);
	else
		judge_http(g, c);
}
