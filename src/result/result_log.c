/*
 * result_log - what the events of runs come to: what would allow what was denied, and what could be
 * seen at all.
 *
 * Must not: pass a name that the cage asked for on as an entry of a spec that is none.
 */
#include "result/result_log.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "plan/plan_guarantees.h"
#include "spec/spec_grammar.h"

/* --- what would allow what was denied --- */

#define GUESSED_PORT 443

/* The entry that allows what was denied, by reason. A reason is missing if no entry would help. */
static const struct {
	enum wire_reason reason;
	enum {
		THE_NAME,
		THE_OTHER,
		THE_PORT
	} what;
} remedies[] = {
	{ WIRE_BECAUSE_NAME, THE_NAME },
	{ WIRE_BECAUSE_NO_NETWORK, THE_NAME },
	{ WIRE_BECAUSE_PORT, THE_NAME },
	{ WIRE_BECAUSE_ADDRESS, THE_NAME },
	{ WIRE_BECAUSE_RESERVED, THE_OTHER },
	{ WIRE_BECAUSE_OWN_ADDRESS, THE_PORT },
};

static void ways_add_port(struct result_ways *ways, uint16_t port)
{
	for (size_t i = 0; i < ways->port_count; i++)
		if (ways->ports[i] == port)
			return;
	if (!port)
		return;
	if (ways->port_count == RESULT_MOST_WAYS)
		ways->has_more = true;
	else
		ways->ports[ways->port_count++] = port;
}

/*
 * A name is the cage's word: what no spec could say, and what would stand for more than one host,
 * is nothing to be copied into one.
 */
static bool is_entry(const char *text)
{
	const struct spec_egress *to;
	struct spec_item item;
	struct arena arena;
	bool is_good;

	arena_init(&arena, (size_t)64 << 10);
	is_good = spec_parse(SPEC_GRAMMAR_EGRESS, &arena, text, &item, NULL) == 0;
	to = &item.egress;
	is_good = is_good && !to->is_wildcard && (to->host || to->prefix == 128);
	arena_done(&arena);
	return is_good;
}

static void ways_add_entry(struct result_ways *ways, const char *host, uint16_t port)
{
	char text[WIRE_WHERE_SIZE];

	/* Names that stand for addresses are no hosts. */
	if (!host[0] || strlen(host) >= WIRE_NAME_SIZE || str_ends(host, ".arpa"))
		return;
	wire_print_where(host, port ? port : GUESSED_PORT, text);
	for (size_t i = 0; i < ways->allow_count; i++)
		if (str_eq(ways->allow[i], text))
			return;
	if (!is_entry(text))
		return;
	if (ways->allow_count == RESULT_MOST_WAYS) {
		ways->has_more = true;
		return;
	}
	snprintf(ways->allow[ways->allow_count++], sizeof(text), "%s", text);
	ways->has_guess |= !port;
}

/* The other is an address, and mostly says what kind of one behind a blank. */
static void ways_add_other(struct result_ways *ways, const char *other, uint16_t port)
{
	char address[WIRE_NAME_SIZE];
	size_t n = strcspn(other, " ");

	if (n >= sizeof(address))
		return;
	snprintf(address, sizeof(address), "%.*s", (int)n, other);
	ways_add_entry(ways, address, port);
}

static bool is_of_gate(const struct log_event *x)
{
	return str_eq(x->type, wire_decision_names[WIRE_NET_DENIED]) ||
	       str_eq(x->type, wire_decision_names[WIRE_NAME_DENIED]);
}

void result_ways_add(struct result_ways *ways, const struct log_event *x)
{
	const char *name = log_find_text(x, "name"), *reason = log_find_text(x, "reason");
	int64_t number = log_find_number(x, "port");
	uint16_t port = number > 0 && number <= UINT16_MAX ? (uint16_t)number : 0;

	if (is_of_gate(x) && str_eq(reason, wire_reason_names[WIRE_BECAUSE_NO_NETWORK]))
		ways->attempts += log_find_number(x, "times");
	if (!is_of_gate(x) || ways->has_more || number != port)
		return;
	for (size_t k = 0; k < COUNT_OF(remedies); k++) {
		if (!str_eq(reason, wire_reason_names[remedies[k].reason]))
			continue;
		if (remedies[k].what == THE_PORT || str_eq(name, WIRE_HOST_NAME))
			ways_add_port(ways, port);
		else if (remedies[k].what == THE_OTHER)
			ways_add_other(ways, log_find_text(x, "other"), port);
		else
			ways_add_entry(ways, name, port);
	}
}

/* --- what could be seen at all --- */

static bool has_network(const struct log_event *x, const char *network)
{
	return str_eq(x->type, "run_start") && str_eq(log_find_text(x, "network"), network);
}

/* Before November 2026 each guarantee was an event. */
static bool is_guarantee(const struct log_event *x, enum plan_guarantee g)
{
	return str_eq(x->type, "guarantee") &&
	       str_eq(log_find_text(x, "name"), plan_guarantee_defs[g].name);
}

void result_seen_note(struct result_seen *seen, const struct log_event *x)
{
	if (str_eq(x->type, "run_start"))
		snprintf(seen->cage, sizeof(seen->cage), "%s", log_find_text(x, "cage"));
	seen->has_run |= str_eq(x->type, "run_start");
	seen->is_none |= has_network(x, "none") || is_guarantee(x, PLAN_NET_NONE);
	seen->is_allowlist |= has_network(x, "allowlist") || is_guarantee(x, PLAN_NET_ALLOWLIST);
	seen->is_deaf |= str_eq(x->type, "degraded") && str_eq(log_find_text(x, "op"), "tell");
}

/* Returns which denials of the network bawn sees in such runs; NULL: none. */
static const char *seen_network_of(const struct result_seen *seen)
{
	if (!seen->has_run || (seen->is_none && seen->is_allowlist))
		return "destinations that a run may not reach";
	if (seen->is_allowlist)
		return "destinations that are not in network.allow";
	return seen->is_none && !seen->cage[0]
		       ? "names and addresses that a run without a network asks for"
		       : NULL;
}

void result_seen_print(const struct result_seen *seen, struct buf *ret_seen, struct buf *ret_unseen)
{
	const char *calls = "system calls that the filter refuses",
		   *network = seen_network_of(seen);
	bool is_heard = !seen->is_deaf && !seen->cage[0];

	if (is_heard || network)
		buf_printf(ret_seen, "denials that are seen: %s%s%s", is_heard ? calls : "",
			is_heard && network ? "; " : "", network ? network : "");
	buf_puts(ret_unseen, "not seen: files that are not in the cage (the program gets ENOENT); "
			     "writes to what is read-only (EROFS)");
	if (!is_heard)
		buf_printf(ret_unseen, "; %s (%s)", calls,
			seen->cage[0] ? "in a session's own cage" : "see bawn log: degraded");
	if (seen->is_none && seen->cage[0])
		buf_printf(ret_unseen, "; the network, see bawn log --denials %s", seen->cage);
	else if (!network)
		buf_puts(ret_unseen, "; the network, which is the host's");
}
