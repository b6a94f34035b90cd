#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli_log.h"
#include "spec/spec_grammar.h"

#define GUESSED_PORT 443

bool cli_event_is_denial(const struct cli_event *event)
{
	return str_eq(event->type, wire_decision_names[WIRE_NET_DENIED]) ||
	       str_eq(event->type, wire_decision_names[WIRE_NAME_DENIED]) ||
	       str_eq(event->type, RECORD_DENIED) || str_eq(event->type, RECORD_UNTOLD);
}

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
	{ WIRE_BECAUSE_PORT, THE_NAME },
	{ WIRE_BECAUSE_ADDRESS, THE_NAME },
	{ WIRE_BECAUSE_RESERVED, THE_OTHER },
	{ WIRE_BECAUSE_OWN_ADDRESS, THE_PORT },
};

static void add_port(struct cli_ways *ways, uint16_t port)
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

static void add_entry(struct cli_log *log, struct cli_ways *ways, const char *host, uint16_t port)
{
	char text[WIRE_WHERE_SIZE];

	if (strlen(host) >= WIRE_NAME_SIZE)
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
	ways->allow[ways->allow_count] = arena_copy(&log->arena, text, strlen(text));
	if (!ways->allow[ways->allow_count])
		return;
	ways->allow_count++;
	ways->has_guess |= !port;
}

/* The other is an address, and mostly says what kind of one behind a blank. */
static void add_other(struct cli_log *log, struct cli_ways *ways, const char *other, uint16_t port)
{
	char address[WIRE_NAME_SIZE];
	size_t n = strcspn(other, " ");

	if (n >= sizeof(address))
		return;
	snprintf(address, sizeof(address), "%.*s", (int)n, other);
	add_entry(log, ways, address, port);
}

void cli_log_find_ways(struct cli_log *log, struct cli_ways *ret)
{
	*ret = (struct cli_ways){ 0 };
	for (size_t i = 0; i < log->count && !ret->has_more; i++) {
		const struct cli_event *x = &log->events[i];
		uint16_t port = (uint16_t)x->port;

		if (!cli_event_is_denial(x))
			continue;
		for (size_t k = 0; k < sizeof(remedies) / sizeof(remedies[0]); k++) {
			if (!str_eq(x->reason, wire_reason_names[remedies[k].reason]))
				continue;
			if (remedies[k].what == THE_PORT || str_eq(x->name, WIRE_HOST_NAME))
				add_port(ret, port);
			else if (remedies[k].what == THE_OTHER)
				add_other(log, ret, x->other, port);
			else
				add_entry(log, ret, x->name, port);
		}
	}
}
