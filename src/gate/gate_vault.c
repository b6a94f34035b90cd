/*
 * gate_vault - hands connections to the process that has the keys, and hears what it decided.
 *
 * Runs as:  the gate.
 * Must not: read what is said on them: whoever reads an agent's words has no key, and whoever has
 *           one reads them in a process of its own; nor wait for the vault.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate/gate_inside.h"
#include "wire/wire.h"

#define MAX_AT_ONCE 64

int gate_vault_await(struct gate *g, struct err *e)
{
	struct wire_vault_message m = { 0 };
	int r = wire_receive_message(GATE_FD_VAULT, &m, sizeof(m), NULL);

	err_end_texts(&m.err);
	if (r < 0 || (m.kind != WIRE_VAULT_READY && !m.err.text[0]))
		return err_set(e, ERR_SYS, EPIPE,
			"cannot start the vault, which holds the keys of secrets");
	if (m.kind != WIRE_VAULT_READY) {
		*e = m.err;
		e->kind = m.err.kind == ERR_REFUSED ? ERR_REFUSED : ERR_SYS;
		return -EPIPE;
	}
	g->has_vault = true;
	for (uint32_t i = 0; i < WIRE_MAX_SECRETS; i++)
		g->vault_rows[i] = -1;
	return 0;
}

void gate_vault_pass(struct gate *g, struct gate_conn *c)
{
	struct wire_visit visit = { 0 };
	int r = g->has_vault ? wire_send_message(GATE_FD_VAULT, &visit, sizeof(visit), c->inside)
			     : -EPIPE;

	if (r == 0) {
		gate_conn_end(g, c, true);
		return;
	}
	/* It is asked for what it wants, so that it can be told in its own words why not. */
	c->denied = r == -EPIPE ? WIRE_BECAUSE_NO_VAULT : WIRE_BECAUSE_MANY;
	c->row = gate_rows_add(&g->rows, r == -EPIPE ? WIRE_NET_FAILED : WIRE_NET_DENIED, c->denied,
		WIRE_HTTP, c->name, c->port, "");
	c->deadline_ns = g->now_ns + GATE_DENY_NS;
	if (gate_add_conn(g, c, true) < 0)
		gate_conn_end(g, c, false);
	else
		gate_hear_head(g, c);
}

static void take_decided(struct gate *g, const struct wire_vault_message *m)
{
	enum wire_decision_kind kind = (enum wire_decision_kind)m->decided;
	enum wire_reason reason = (enum wire_reason)m->reason;

	if (m->decided > WIRE_NET_FAILED || m->reason >= WIRE_REASON_COUNT)
		return;
	if (m->secret >= g->rules->secret_count) {
		gate_rows_add(&g->rows, kind, reason, WIRE_HTTP, WIRE_HOST_NAME, WIRE_VAULT_PORT,
			m->other);
		return;
	}
	reason = m->decided == WIRE_NET_ALLOWED ? WIRE_BECAUSE_ALLOWED : reason;
	if (kind == WIRE_NET_ALLOWED)
		g->vault_rows[m->secret] = gate_rows_add_secret(
			&g->rows, kind, reason, &g->rules->secrets[m->secret], m->other);
	else
		gate_rows_add_secret(
			&g->rows, kind, reason, &g->rules->secrets[m->secret], m->other);
}

/* The keys are gone with it, and nobody else has them. */
static void lose(struct gate *g)
{
	g->has_vault = false;
	close(GATE_FD_VAULT);
	if (!g->is_ending)
		gate_rows_add(&g->rows, WIRE_NET_FAILED, WIRE_BECAUSE_NO_VAULT, WIRE_HTTP,
			WIRE_HOST_NAME, WIRE_VAULT_PORT, "");
}

void gate_hear_vault(struct gate *g)
{
	struct wire_vault_message m = { 0 };
	int r = 0;

	for (int i = 0; g->has_vault && r == 0 && i < MAX_AT_ONCE; i++) {
		r = wire_receive_message(GATE_FD_VAULT, &m, sizeof(m), NULL);
		m.other[sizeof(m.other) - 1] = '\0';
		if (r == 0 && m.kind == WIRE_VAULT_DECIDED)
			take_decided(g, &m);
		else if (r == 0 && m.kind == WIRE_VAULT_PASSED && m.secret < g->rules->secret_count)
			gate_rows_add_bytes(
				&g->rows, g->vault_rows[m.secret], m.bytes_out, m.bytes_in);
		else if (r < 0 && r != -EAGAIN)
			lose(g);
	}
}

void gate_vault_end(struct gate *g)
{
	if (g->has_vault)
		shutdown(GATE_FD_VAULT, SHUT_WR);
}
