/*
 * keeper_gate_rules - what gate and dialer are told: the plan's destinations, in memory that nobody
 * can change any more.
 *
 * Runs as: the keeper, before anything is started.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

_Static_assert((int)WIRE_TLS == (int)SPEC_TLS && (int)WIRE_HTTP == (int)SPEC_HTTP &&
		       (int)WIRE_TCP == (int)SPEC_TCP,
	"the same names in the same order");

static size_t gate_rules_count_ops(const struct plan *p, enum plan_op_kind kind)
{
	size_t n = 0;

	for (uint32_t i = 0; i < p->op_count; i++)
		n += plan_ops(p)[i].kind == kind;
	return n;
}

/* --- destinations --- */

static int add_destination(
	const struct plan *p, const struct plan_rule *rule, struct wire_rules *rules, struct err *e)
{
	struct wire_rule *ret = &rules->rules[rules->rule_count++];

	if (!rule->port)
		return err_set(e, ERR_REFUSED, EINVAL,
			"cannot allow the registry of %s: nobody has asked it which one it uses",
			plan_rule_text(p, rule, PLAN_RULE_HOST));
	snprintf(ret->name, sizeof(ret->name), "%s", plan_rule_text(p, rule, PLAN_RULE_HOST));
	memcpy(ret->address, rule->address, sizeof(ret->address));
	ret->prefix = rule->prefix;
	ret->protocol = rule->protocol;
	ret->is_wildcard = rule->is_wildcard;
	ret->port = rule->port;
	return 0;
}

static void fill_host_port(const struct plan_op *op, struct wire_rule *ret)
{
	snprintf(ret->name, sizeof(ret->name), WIRE_HOST_NAME);
	ret->protocol = WIRE_TCP;
	ret->is_host = true;
	ret->port = (uint16_t)op->n;
}

/* --- secrets --- */

static int add_secret(
	const struct plan *p, const struct plan_rule *rule, struct wire_rules *rules, struct err *e)
{
	struct wire_secret *ret = &rules->secrets[rules->secret_count];

	if (rules->secret_count == WIRE_MAX_SECRETS)
		return err_set(e, ERR_REFUSED, ENOSPC, "cannot use secrets: there are more than %d",
			WIRE_MAX_SECRETS);
	snprintf(ret->name, sizeof(ret->name), "%s", plan_rule_text(p, rule, PLAN_RULE_NAME));
	snprintf(ret->host, sizeof(ret->host), "%s", plan_rule_text(p, rule, PLAN_RULE_HOST));
	ret->port = rule->port;
	rules->secret_count++;
	return 0;
}

/* Where the cage finds them. */
static void add_vault(struct wire_rules *rules)
{
	struct wire_rule *ret = &rules->rules[rules->rule_count++];

	snprintf(ret->name, sizeof(ret->name), WIRE_HOST_NAME);
	ret->protocol = WIRE_HTTP;
	ret->is_vault = true;
	ret->port = WIRE_VAULT_PORT;
}

/* --- ports of the host --- */

/* Taken before anything runs: where that fails, the operator is told at once. */
static int open_port(const char *address, const struct plan_rule *rule, struct err *e)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(rule->port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(rule->port) };
	bool is_v6 = inet_pton(AF_INET, address, &v4.sin_addr) != 1;
	own_fd int fd = -1;
	int on = 1, r;

	if (is_v6)
		inet_pton(AF_INET6, address, &v6.sin6_addr);
	fd = wire_socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	r = fd < 0 ? fd : 0;
	if (r == 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		r = bind(fd, is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
			is_v6 ? sizeof(v6) : sizeof(v4));
		r = r < 0 || listen(fd, SOMAXCONN) < 0 ? -errno : 0;
	}
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r,
			"cannot publish port %u of the cage at %s:%u: %s", rule->cage_port, address,
			rule->port, strerror(-r));
	return take_fd(&fd);
}

static int gate_rules_add_port(struct keeper_gate *g, const struct plan *p,
	const struct plan_rule *rule, struct wire_rules *rules, struct err *e)
{
	struct wire_publish *ret = &rules->publish[rules->publish_count];
	const char *address = plan_rule_text(p, rule, PLAN_RULE_HOST);
	int r;

	if (rules->publish_count == WIRE_MAX_PUBLISH)
		return err_set(e, ERR_REFUSED, ENOSPC,
			"cannot use network.publish: it has more than %d ports", WIRE_MAX_PUBLISH);
	r = open_port(address, rule, e);
	if (r < 0)
		return r;
	g->published[rules->publish_count++] = r;
	snprintf(ret->address, sizeof(ret->address), "%s", address);
	ret->host_port = rule->port;
	ret->cage_port = rule->cage_port;
	return 0;
}

/* --- all of it --- */

static int gate_rules_fill(
	struct keeper_gate *g, const struct plan *p, struct wire_rules *rules, struct err *e)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == PLAN_ALLOW)
			r = add_destination(p, plan_rule_of(p, op), rules, e);
		else if (op->kind == PLAN_HOST_PORT)
			fill_host_port(op, &rules->rules[rules->rule_count++]);
		else if (op->kind == PLAN_PUBLISH)
			r = gate_rules_add_port(g, p, plan_rule_of(p, op), rules, e);
		else if (op->kind == PLAN_SECRET)
			r = add_secret(p, plan_rule_of(p, op), rules, e);
	}
	if (rules->secret_count)
		add_vault(rules);
	return r;
}

/* A file without a name, which those who have it can only read. */
static int seal(struct keeper_gate *g, const struct wire_rules *rules, size_t size, struct err *e)
{
	int r;

	g->rules = memfd_create("rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	r = g->rules < 0 ? -errno : file_write_all(g->rules, rules, size);
	if (r == 0 && fcntl(g->rules, F_ADD_SEALS,
			      F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, -r, "cannot hand the rules of the network over");
	return 0;
}

static int make_rules(struct keeper *k, struct err *e)
{
	const struct plan *p = k->start.plan;
	size_t secrets = gate_rules_count_ops(p, PLAN_SECRET);
	size_t count = gate_rules_count_ops(p, PLAN_ALLOW) +
		       gate_rules_count_ops(p, PLAN_HOST_PORT) + (secrets > 0);
	size_t size = sizeof(struct wire_rules) + count * sizeof(struct wire_rule);
	struct wire_rules *rules = NULL;
	int r;

	if (count > WIRE_MAX_RULES)
		return err_set(e, ERR_REFUSED, ENOSPC,
			"cannot use network.allow: it has more than %d entries", WIRE_MAX_RULES);
	if (record_expect_decisions(k->record))
		rules = calloc(1, size);
	if (!rules)
		return err_set(
			e, ERR_SYS, ENOMEM, "cannot make the rules of the network: out of memory");
	rules->uid = k->start.ids.uid;
	rules->gid = k->start.ids.gid;
	rules->is_landlocked = plan_find(p, PLAN_LANDLOCK, NULL) != NULL;
	r = gate_rules_fill(&k->gate, p, rules, e);
	k->gate.published_count = rules->publish_count;
	if (r == 0)
		r = seal(&k->gate, rules, size, e);
	free(rules);
	return r;
}

int keeper_gate_make(struct keeper *k, struct err *e)
{
	const struct plan *p = k->start.plan;
	char path[PATH_MAX];
	int r;

	/* Without a network of its own, which only a spec can choose, there is nothing to guard. */
	if (!plan_find(p, PLAN_NETWORK, "allowlist") || !plan_find(p, PLAN_NAMESPACE, "net"))
		return 0;
	k->gate.has_secrets = plan_find(p, PLAN_SECRET, NULL) != NULL;
	r = k->gate.has_secrets ? keeper_vault_find(path, sizeof(path), e) : 0;
	if (r == 0 && k->gate.has_secrets)
		r = keeper_keys_check(k, e);
	if (r == 0)
		r = make_rules(k, e);
	k->gate.is_awaited = r == 0;
	return r;
}
