/*
 * keep_gate_look - looks from outside whether the gate stands, and only the gate.
 *
 * Runs as:     the keeper, before the command may start.
 * Enters with: the gate saying that it is ready, which is a claim.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "keep/keep_inside.h"
#include "keep/keep_view.h"

#define LISTENS   0x0a /* the state, in the kernel's tables */
#define MAX_TABLE ((size_t)4 << 20)
#define PORTS     65536

/* Notes the ports that somebody listens at, from one of the kernel's tables. */
static int read_listeners(pid_t pid, const char *table, uint8_t ret[static PORTS])
{
	own_free char *text = NULL;
	char path[48];
	size_t size = 0;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, table);
	r = file_read_path(path, MAX_TABLE, &text, &size);
	/* A kernel without IPv6 has no such table. */
	if (r < 0)
		return r == -ENOENT && str_eq(table, "tcp6") ? 0 : r;
	for (const char *line = strchr(text, '\n'); line && line[1];
		line = strchr(line + 1, '\n')) {
		unsigned port = 0, state = 0;

		if (sscanf(line + 1, "%*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &port, &state) != 2)
			return -EINVAL;
		if (state == LISTENS && port < PORTS)
			ret[port] = 1;
	}
	return 0;
}

/* Are the listening ports those of the rules, and no others? */
static bool see_ports(const struct keeper *k, char *ret, size_t size)
{
	static const uint16_t always[] = { 53, 80, 443 };
	own_free uint8_t *seen = calloc(1, PORTS), *wanted = calloc(1, PORTS);
	const struct plan *p = k->start.plan;

	if (!seen || !wanted || read_listeners(k->pid, "tcp", seen) < 0 ||
		read_listeners(k->pid, "tcp6", seen) < 0) {
		snprintf(ret, size, "the ports of the cage's network cannot be read");
		return false;
	}
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		wanted[always[i]] = 1;
	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == PLAN_HOST_PORT)
			wanted[op->n % PORTS] = 1;
		else if (op->kind == PLAN_ALLOW)
			wanted[strtoul(strrchr(plan_str(p, op->a), ':') + 1, NULL, 10) % PORTS] = 1;
	}
	for (unsigned port = 0; port < PORTS; port++) {
		if (seen[port] == wanted[port])
			continue;
		snprintf(ret, size, "%s listens at port %u in the cage's network",
			seen[port] ? "somebody" : "nobody", port);
		return false;
	}
	return true;
}

/* Has the process lost what it has to lose? */
static bool see_confined(pid_t pid, const char *name, char *ret, size_t size)
{
	char path[48], text[4096];
	struct keep_view v = { 0 };
	uint64_t capabilities = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (pid <= 0 || file_read_small(path, text, sizeof(text)) <= 0 ||
		keep_view_parse_status(&v, text) < 0) {
		snprintf(ret, size, "the %s cannot be looked at", name);
		return false;
	}
	for (size_t i = 0; i < 3; i++)
		capabilities |= v.capabilities[i];
	if (v.uids[0] && v.uids[1] && v.uids[2] && v.uids[3] && !capabilities &&
		v.no_new_privileges == 1 && v.seccomp == 2)
		return true;
	snprintf(ret, size, "the %s is not confined", name);
	return false;
}

void keep_gate_look(const struct keeper *k, char *ret, size_t size)
{
	ret[0] = '\0';
	if (k->gate.channel < 0)
		snprintf(ret, size, "there is no gate");
	else if (see_confined(k->gate.pids[0], "gate", ret, size) &&
		 see_confined(k->gate.pids[1], "caller", ret, size))
		(void)see_ports(k, ret, size);
}
