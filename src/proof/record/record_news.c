/* record_news - what a person should know when a run has ended, in sentences. Pure. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "proof/record/record.h"
#include "seccomp/filter.h"

#define MOST_NAMED 3

static void __attribute__((format(printf, 3, 4)))
news(record_say *say, void *of, const char *fmt, ...)
{
	own_free char *text = NULL;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		text = NULL;
	else
		say(of, text);
}

/* --- the network --- */

static bool is_net_denied(const struct wire_decision *d)
{
	return (d->kind == WIRE_NET_DENIED || d->kind == WIRE_NAME_DENIED) &&
	       d->reason != WIRE_BECAUSE_NO_NETWORK;
}

/* Denied, and not the same destination as one before it that was denied for another reason. */
static bool is_first_destination(const struct record *r, size_t i)
{
	const struct wire_decision *d = r->decisions;

	if (!is_net_denied(&d[i]))
		return false;
	for (size_t k = 0; k < i; k++)
		if (is_net_denied(&d[k]) && d[k].port == d[i].port && str_eq(d[k].name, d[i].name))
			return false;
	return true;
}

static void say_unreachable(const struct record *r, record_say *say, void *of)
{
	own(buf) struct buf names = { .max = (size_t)16 << 10 };
	size_t count = 0;

	for (size_t i = 0; i < r->decision_count; i++) {
		char where[WIRE_WHERE_SIZE];

		if (!is_first_destination(r, i) || count++ >= MOST_NAMED)
			continue;
		wire_print_where(r->decisions[i].name, r->decisions[i].port, where);
		buf_printf(&names, "%s%s", names.len ? ", " : "", where);
	}
	if (count > MOST_NAMED)
		buf_printf(&names, " and %zu more", count - MOST_NAMED);
	if (count)
		news(say, of, "network: denied %s; why: bawn log --denials %s", buf_text(&names),
			r->run);
}

/* A run without a network that wanted one. */
static void say_no_network(const struct record *r, record_say *say, void *of)
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
		news(say, of,
			"network: this run had none: %llu attempt%s%s%s; to allow: --allow "
			"%s:PORT; see: bawn log --denials %s",
			(unsigned long long)times, times == 1 ? "" : "s", buf_text(&names),
			names.len ? ")" : "", host ? host : "HOST", r->run);
}

/* The last one is enough: most often all have one reason, such as a resolver that is gone. */
static void say_failed(const struct record *r, record_say *say, void *of)
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
		news(say, of, "network: %s", sentence);
	else if (count)
		news(say, of, "network: %s; and %zu more; see: bawn log %s", sentence, count - 1,
			r->run);
}

void record_say_network(const struct record *r, record_say *say, void *of)
{
	say_unreachable(r, say, of);
	say_no_network(r, say, of);
	say_failed(r, say, of);
}

/* --- system calls and writes --- */

/*
 * The first row of its call that is news: rows of one call differ by program and error. Of writes,
 * the first of its path.
 */
static bool denied_is_first(const struct record *r, size_t i)
{
	const struct record_denial *d = &r->denials[i];

	if (record_is_tried_only(d))
		return false;
	for (size_t k = 0; k < i; k++)
		if (str_eq(r->denials[k].path, d->path) &&
			(d->path[0] || r->denials[k].number == d->number))
			return false;
	return true;
}

static void denied_add_name(struct buf *names, const struct record_denial *d)
{
	char name[FILTER_NAME_SIZE];

	filter_name_call(d->number, name);
	if (names->len)
		buf_puts(names, ", ");
	if (d->path[0])
		buf_add_visible(names, d->path, strlen(d->path));
	else
		buf_puts(names, name);
	if (!d->program[0])
		return;
	buf_puts(names, " (by ");
	buf_add_visible(names, d->program, strlen(d->program));
	buf_puts(names, ")");
}

/* One line, of the writes or of the others. */
static void denied_say(
	const struct record *r, bool is_of_writes, const char *what, record_say *say, void *of)
{
	own(buf) struct buf names = { .max = 4096 };
	size_t count = 0;

	for (size_t i = 0; i < r->denial_count; i++)
		if ((r->denials[i].path[0] != '\0') == is_of_writes && denied_is_first(r, i) &&
			count++ < MOST_NAMED)
			denied_add_name(&names, &r->denials[i]);
	if (count > MOST_NAMED)
		buf_printf(&names, " and %zu more", count - MOST_NAMED);
	if (count)
		news(say, of, "%s %s; why: bawn log --denials %s", what, buf_text(&names), r->run);
}

void record_say_denials(const struct record *r, record_say *say, void *of)
{
	denied_say(r, false, "system calls: denied", say, of);
	denied_say(r, true, "writes: denied to", say, of);
}
