#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"

#define MOST_NAMED 3

static bool is_denied(const struct wire_decision *d)
{
	return (d->kind == WIRE_NET_DENIED || d->kind == WIRE_NAME_DENIED) &&
	       d->reason != WIRE_BECAUSE_NO_NETWORK;
}

/* Denied, and not the same destination as one before it that was denied for another reason. */
static bool net_is_first(const struct record *r, size_t i)
{
	const struct wire_decision *d = r->decisions;

	if (!is_denied(&d[i]))
		return false;
	for (size_t k = 0; k < i; k++)
		if (is_denied(&d[k]) && d[k].port == d[i].port && str_eq(d[k].name, d[i].name))
			return false;
	return true;
}

static void say_denied(const struct record *r)
{
	own(buf) struct buf names = { .max = (size_t)16 << 10 };
	size_t count = 0;

	for (size_t i = 0; i < r->decision_count; i++) {
		char where[WIRE_WHERE_SIZE];

		if (!net_is_first(r, i) || count++ >= MOST_NAMED)
			continue;
		wire_print_where(r->decisions[i].name, r->decisions[i].port, where);
		buf_printf(&names, "%s%s", names.len ? ", " : "", where);
	}
	if (count > MOST_NAMED)
		buf_printf(&names, " and %zu more", count - MOST_NAMED);
	if (count)
		cli_complain(
			"network: denied %s; why: bawn log --denials %s", buf_text(&names), r->run);
}

/* A run without a network that wanted one. */
static void say_no_network(const struct record *r)
{
	own(buf) struct buf names = { .max = (size_t)16 << 10 };
	const char *host = NULL;
	uint64_t times = 0;
	size_t count = 0;

	for (size_t i = 0; i < r->decision_count; i++) {
		const struct wire_decision *d = &r->decisions[i];

		if (d->reason != WIRE_BECAUSE_NO_NETWORK)
			continue;
		times += d->times;
		if (d->name[0] && !host)
			host = d->name;
		if (d->name[0] && count++ < MOST_NAMED)
			buf_printf(&names, "%s%s", names.len ? ", " : " (", d->name);
	}
	if (count > MOST_NAMED)
		buf_printf(&names, " and %zu more", count - MOST_NAMED);
	if (times)
		cli_complain("network: this run had none: %llu attempt%s%s%s; to allow: --allow "
			     "%s:PORT; see: bawn log --denials %s",
			(unsigned long long)times, times == 1 ? "" : "s", buf_text(&names),
			names.len ? ")" : "", host ? host : "HOST", r->run);
}

/* The last one is enough: most often all have one reason, such as a resolver that is gone. */
static void say_failed(const struct record *r)
{
	char sentence[1024];
	size_t count = 0;

	for (size_t i = 0; i < r->decision_count; i++) {
		if (r->decisions[i].kind != WIRE_NET_FAILED)
			continue;
		wire_print_decision(&r->decisions[i], sentence, sizeof(sentence));
		count++;
	}
	if (count == 1)
		cli_complain("network: %s", sentence);
	else if (count)
		cli_complain(
			"network: %s; and %zu more; see: bawn log %s", sentence, count - 1, r->run);
}

void cli_say_net(const struct cli *cli, const struct record *record)
{
	if (!cli->is_quiet) {
		say_denied(record);
		say_no_network(record);
		say_failed(record);
	}
	if (record->gate.kind != ERR_NONE)
		cli_complain_about(&record->gate, "the network was closed before the end: %s",
			record->gate.text);
}
