#include "wire/wire_gate.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

const char *const wire_protocol_names[] = { "tls", "http", "tcp", "udp" };

const char *const wire_decision_names[WIRE_DECISION_KIND_COUNT] = {
	[WIRE_NET_ALLOWED] = "net_allowed",
	[WIRE_NET_DENIED] = "net_denied",
	[WIRE_NET_FAILED] = "net_failed",
	[WIRE_NAME_DENIED] = "name_denied",
	[WIRE_PUBLISHED] = "published",
};

/* --- matching --- */

/* True if the address is in the rule's network; false for a rule with a name. */
static bool wire_rule_covers(const struct wire_rule *rule, const uint8_t address[static 16])
{
	static const uint8_t v4_front[12] = { [10] = 0xff, [11] = 0xff };
	unsigned whole = rule->prefix / 8, rest = rule->prefix % 8;

	/* A network of IPv6 holds none of IPv4, however wide it is. */
	if (rule->prefix < 96 && memcmp(address, v4_front, sizeof(v4_front)) == 0)
		return false;

	if (rule->name[0] || rule->prefix > 128 || memcmp(rule->address, address, whole) != 0)
		return false;
	return !rest || ((rule->address[whole] ^ address[whole]) >> (8 - rest)) == 0;
}

/* True if the rule's name matches `name`, which is in lower case. */
static bool wire_rule_names(const struct wire_rule *rule, const char *name)
{
	size_t n = strlen(name), suffix = strlen(rule->name);

	if (!rule->name[0] || !rule->is_wildcard)
		return rule->name[0] && str_eq(rule->name, name);
	return n > suffix + 1 && name[n - suffix - 1] == '.' &&
	       str_eq(name + n - suffix, rule->name);
}

/* The name itself is nearer than any "*.", and a longer one of these than a shorter. */
static size_t nearness(const struct wire_rule *rule)
{
	return rule->is_wildcard ? strlen(rule->name) : WIRE_NAME_SIZE;
}

const struct wire_rule *wire_find_name(
	const struct wire_rules *rules, const char *name, uint16_t port)
{
	const struct wire_rule *best = NULL;

	for (uint32_t i = 0; i < rules->rule_count; i++) {
		const struct wire_rule *rule = &rules->rules[i];

		if ((!port || rule->port == port) && wire_rule_names(rule, name) &&
			(!best || nearness(rule) > nearness(best)))
			best = rule;
	}
	return best;
}

const struct wire_rule *wire_find_address(
	const struct wire_rules *rules, const uint8_t address[static 16], uint16_t port)
{
	const struct wire_rule *best = NULL;

	for (uint32_t i = 0; i < rules->rule_count; i++) {
		const struct wire_rule *rule = &rules->rules[i];

		if (rule->port == port && wire_rule_covers(rule, address) &&
			(!best || rule->prefix > best->prefix))
			best = rule;
	}
	return best;
}

/* --- decisions --- */

const char *const wire_reason_names[WIRE_REASON_COUNT] = {
	[WIRE_BECAUSE_ALLOWED] = "allowed",
	[WIRE_BECAUSE_NAME] = "name",
	[WIRE_BECAUSE_PORT] = "port",
	[WIRE_BECAUSE_ADDRESS] = "address",
	[WIRE_BECAUSE_NO_NETWORK] = "no_network",
	[WIRE_BECAUSE_ODD_NAME] = "odd_name",
	[WIRE_BECAUSE_MANY_NAMES] = "many_names",
	[WIRE_BECAUSE_UDP] = "udp",
	[WIRE_BECAUSE_NOT_TLS] = "not_tls",
	[WIRE_BECAUSE_NO_SNI] = "no_sni",
	[WIRE_BECAUSE_OTHER_SNI] = "other_sni",
	[WIRE_BECAUSE_NOT_HTTP] = "not_http",
	[WIRE_BECAUSE_NO_HOST] = "no_host",
	[WIRE_BECAUSE_OTHER_HOST] = "other_host",
	[WIRE_BECAUSE_BAD_HTTP] = "bad_http",
	[WIRE_BECAUSE_URGENT] = "urgent",
	[WIRE_BECAUSE_SILENT] = "silent",
	[WIRE_BECAUSE_MANY] = "many",
	[WIRE_BECAUSE_RESERVED] = "reserved",
	[WIRE_BECAUSE_OWN_ADDRESS] = "own_address",
	[WIRE_BECAUSE_UNKNOWN_NAME] = "unknown_name",
	[WIRE_BECAUSE_RESOLVER] = "resolver",
	[WIRE_BECAUSE_UNREACHABLE] = "unreachable",
	[WIRE_BECAUSE_NO_SECRET] = "no_secret",
	[WIRE_BECAUSE_NO_VAULT] = "no_vault",
	[WIRE_BECAUSE_UNTRUSTED] = "tls_untrusted",
	[WIRE_BECAUSE_NO_TLS] = "tls_failed",
	[WIRE_BECAUSE_BAD_ANSWER] = "bad_answer",
	[WIRE_BECAUSE_ECHO] = "key_echoed",
};

/* The sentence after "NAME:PORT "; %s stands for `other`. */
static const char *const reasons[WIRE_REASON_COUNT] = {
	[WIRE_BECAUSE_ALLOWED] = "is allowed",
	[WIRE_BECAUSE_NAME] = "is not in network.allow",
	[WIRE_BECAUSE_PORT] = "is not in network.allow, which has the name with another port",
	[WIRE_BECAUSE_ADDRESS] =
		("is not in network.allow: an address is reached by the name that is "
		 "allowed, or if it is declared itself"),
	[WIRE_BECAUSE_NO_NETWORK] = "cannot be reached: the run has no network",
	[WIRE_BECAUSE_ODD_NAME] = "is not the name of a host",
	[WIRE_BECAUSE_MANY_NAMES] = "is one name more than a run may ask for",
	[WIRE_BECAUSE_UDP] = "was sent a datagram, and only TCP is passed on",
	[WIRE_BECAUSE_NOT_TLS] = "is declared as tls, and something else was spoken",
	[WIRE_BECAUSE_NO_SNI] = "is declared as tls, and the hello names no server",
	[WIRE_BECAUSE_OTHER_SNI] = "was connected to, and the TLS hello names '%s'",
	[WIRE_BECAUSE_NOT_HTTP] = "is declared as http, and something else was spoken",
	[WIRE_BECAUSE_NO_HOST] = "is declared as http, and the request names no host",
	[WIRE_BECAUSE_OTHER_HOST] = "was connected to, and the request names '%s'",
	[WIRE_BECAUSE_BAD_HTTP] = "is declared as http, and the request was not plain: %s",
	[WIRE_BECAUSE_URGENT] = "had urgent data on the connection, which is not passed on",
	[WIRE_BECAUSE_SILENT] = "was connected to, and nothing was said in time",
	[WIRE_BECAUSE_MANY] = "was one connection too many at the same time",
	[WIRE_BECAUSE_RESERVED] = "leads to %s, which is no public address and not declared itself",
	[WIRE_BECAUSE_OWN_ADDRESS] =
		("leads to %s, which is this machine; its services are declared as "
		 "network.host_ports"),
	[WIRE_BECAUSE_UNKNOWN_NAME] =
		"is allowed, but its name could not be looked up on this machine",
	[WIRE_BECAUSE_RESOLVER] = "was not found: %s",
	[WIRE_BECAUSE_UNREACHABLE] = "could not be reached: %s",
	[WIRE_BECAUSE_NO_SECRET] = "has no secret that is called '%s'",
	[WIRE_BECAUSE_NO_VAULT] = "has lost the process that holds the keys of secrets",
	[WIRE_BECAUSE_UNTRUSTED] = "has a certificate that is not accepted: %s",
	[WIRE_BECAUSE_NO_TLS] = "was reached, and TLS failed: %s",
	[WIRE_BECAUSE_BAD_ANSWER] = "gave an answer that is not passed on: %s",
	[WIRE_BECAUSE_ECHO] = "sent the key back in %s, and it was kept out of the cage",
};

void wire_print_where(const char *name, uint16_t port, char ret[static WIRE_WHERE_SIZE])
{
	int n = snprintf(ret, WIRE_WHERE_SIZE, strchr(name, ':') ? "[%.255s]" : "%.255s", name);

	if (port)
		snprintf(ret + n, WIRE_WHERE_SIZE - (size_t)n, ":%u", port);
}

void wire_print_decision(const struct wire_decision *d, char *ret, size_t size)
{
	bool is_inwards = d->kind == WIRE_PUBLISHED && d->reason == WIRE_BECAUSE_ALLOWED;
	const char *reason = is_inwards ? "leads into the cage" : reasons[d->reason];
	const char *hole = strstr(reason, "%s");
	int before = hole ? (int)(hole - reason) : (int)strlen(reason);
	char where[WIRE_WHERE_SIZE];

	/* No port was tried where the name led nowhere. */
	wire_print_where(d->name[0] ? d->name : "an address",
		d->reason == WIRE_BECAUSE_UNKNOWN_NAME ? 0 : d->port, where);
	snprintf(ret, size, "%s%s%s%s %.*s%s%s", where, d->secret[0] ? " (secret " : "", d->secret,
		d->secret[0] ? ")" : "", before, reason, hole ? d->other : "",
		hole ? hole + 2 : "");
}

static bool gate_is_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	for (size_t i = 0; i < n; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	return n < size;
}

bool wire_is_decision(const struct wire_decision *d)
{
	return d->kind < WIRE_DECISION_KIND_COUNT && d->reason < WIRE_REASON_COUNT &&
	       d->protocol <= WIRE_UDP && gate_is_text(d->name, sizeof(d->name)) &&
	       gate_is_text(d->other, sizeof(d->other)) &&
	       gate_is_text(d->secret, sizeof(d->secret));
}
