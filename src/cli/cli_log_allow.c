#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_log.h"
#include "spec/spec_grammar.h"

#define GUESSED_PORT 443

/* What has to be declared; nothing does where no entry would help, or only one that asks less. */
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

static void log_allow_add_port(struct cli_ways *ways, uint16_t port)
{
	for (size_t i = 0; i < ways->port_count; i++)
		if (ways->ports[i] == port)
			return;
	if (!port)
		return;
	if (ways->port_count == CLI_MOST_WAYS)
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
	is_good = spec_grammar_egress(&arena, text, &item, NULL) == 0;
	to = &item.egress;
	is_good = is_good && !to->is_wildcard && (to->host || to->prefix == 128);
	arena_done(&arena);
	return is_good;
}

static void log_allow_add_entry(struct cli_ways *ways, const char *host, uint16_t port)
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
	if (ways->allow_count == CLI_MOST_WAYS) {
		ways->has_more = true;
		return;
	}
	snprintf(ways->allow[ways->allow_count++], sizeof(text), "%s", text);
	ways->has_guess |= !port;
}

/* The other is an address, and mostly says what kind of one behind a blank. */
static void log_allow_add_other(struct cli_ways *ways, const char *other, uint16_t port)
{
	char address[WIRE_NAME_SIZE];
	size_t n = strcspn(other, " ");

	if (n >= sizeof(address))
		return;
	snprintf(address, sizeof(address), "%.*s", (int)n, other);
	log_allow_add_entry(ways, address, port);
}

static bool is_of_gate(const struct log_event *x)
{
	return str_eq(x->type, wire_decision_names[WIRE_NET_DENIED]) ||
	       str_eq(x->type, wire_decision_names[WIRE_NAME_DENIED]);
}

void cli_ways_add(struct cli_ways *ways, const struct log_event *x)
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
			log_allow_add_port(ways, port);
		else if (remedies[k].what == THE_OTHER)
			log_allow_add_other(ways, log_find_text(x, "other"), port);
		else
			log_allow_add_entry(ways, name, port);
	}
}
