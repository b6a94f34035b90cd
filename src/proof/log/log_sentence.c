#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/log/log_event.h"

/*
 * All types, and how one is said that has no `text` of its own. {key} is the value of a member,
 * {key?a|b} one of two words for true and false; what is in brackets is left out where a member in
 * it is missing.
 */
static const struct {
	const char *type, *form;
} types[] = {
	{ "run_start",
		"[{command}][ in {project}][: {level}][, governs itself as {self_governance}]"
		"[, engine {engine}][, repeats {again}]" },
	{ "preflight",
		"the preflight [{passed?passed|failed}][{preflight_passed?passed|failed}][, done by "
		"{by}][, done by {preflight_by}]" },
	{ "inspected", NULL },
	{ "guarantee", "{name} {holds?holds|does not hold}[: {seen} ({vantage})]" },
	{ "degraded", NULL },
	{ "net_allowed", NULL },
	{ "net_denied", NULL },
	{ "net_failed", NULL },
	{ "name_denied", NULL },
	{ "published", NULL },
	{ "decisions_untold", NULL },
	{ "network_closed", NULL },
	{ "syscall_denied", NULL },
	{ "syscalls_untold", NULL },
	{ "write_denied", NULL },
	{ "sandbox_read_blocked", NULL },
	{ "sandbox_write_blocked", NULL },
	{ "blocked_untold", NULL },
	{ "write_held", NULL },
	{ "limit_hit", NULL },
	{ "refused", "the command was not started[: {error}]" },
	{ "run_end", "{outcome}[ with status {status}][ by signal {signal}][: {error}]" },
	{ "repeated",
		"of run {of}[: effects {same_effects?the same|not the same}][, outcome "
		"{same_outcome?the same|not the same}][, output {same_output?the same|not the "
		"same}][, plan {same_plan?the same|not the same}]" },
	{ "interrupted", NULL },
	{ "lease_lost", NULL },
	{ "result_refused", NULL },
	{ "signed", "the record was signed[ with key {key}]" },
	{ "apply", "{done} applied[, {conflicts} in conflict][, {held} held back][: {error}]" },
	{ "discard", "what it wrote was dropped" },
	{ "session_created", "session {session}[, called {name},] was created" },
	{ "session_removed", "session {session}[, called {name},] was removed[: {why}]" },
	{ "pruned",
		"removed[ {runs} runs][ {file} of this log]; the line has the digests, signed" },
	{ "key_made", "a signing key was made[: {key}][, after {former}]" },
};

const char *log_type_name(size_t i)
{
	return i < COUNT_OF(types) ? types[i].type : NULL;
}

static void sentence_add_value(const struct log_member *m, struct buf *out)
{
	if (m->kind == LOG_TEXT)
		buf_puts(out, m->text);
	else
		buf_add(out, m->bytes, m->size);
}

/* {key} or {key?a|b}, of which `text` is the inside; false: there is no such member. */
static bool add_hole(const struct log_event *x, const char *text, size_t n, struct buf *out)
{
	const char *choice = memchr(text, '?', n), *other;
	char key[32] = "";
	const struct log_member *m;
	size_t size = choice ? (size_t)(choice - text) : n;

	memcpy(key, text, size < sizeof(key) ? size : sizeof(key) - 1);
	m = log_find(x, key);
	if (!m || (m->kind == LOG_TEXT && !m->text[0]))
		return false;
	if (!choice && str_eq(key, "signal") && m->kind == LOG_NUMBER) {
		const char *name = sigabbrev_np((int)m->number);

		sentence_add_value(m, out);
		if (name)
			buf_printf(out, " (SIG%s)", name);
		return true;
	}
	if (!choice || m->kind != LOG_BOOL) {
		sentence_add_value(m, out);
		return true;
	}
	other = memchr(choice, '|', (size_t)(text + n - choice));
	if (m->number)
		buf_add(out, choice + 1, (size_t)(other - choice - 1));
	else
		buf_add(out, other + 1, (size_t)(text + n - other - 1));
	return true;
}

/* A piece of a form; false where a member was missing. */
static bool add_form(const struct log_event *x, const char *form, const char *end, struct buf *out)
{
	bool is_whole = true;

	while (form < end) {
		size_t before = out->len;
		const char *close = memchr(form, *form == '[' ? ']' : '}', (size_t)(end - form));

		if (*form == '[') {
			if (!add_form(x, form + 1, close, out)) {
				out->len = before;
				buf_add(out, "", 0); /* ends it there */
			}
		} else if (*form == '{') {
			is_whole &= add_hole(x, form + 1, (size_t)(close - form - 1), out);
		} else {
			buf_putc(out, *form++);
			continue;
		}
		form = close + 1;
	}
	return is_whole;
}

/* Types of tomorrow: what they say, as they say it. */
static void add_members(const struct log_event *x, struct buf *out)
{
	static const char *const others[] = { "seq", "time", "type", "run", "session", "prev" };
	bool has_one = false;

	for (size_t i = 0; i < x->count; i++) {
		const struct log_member *m = &x->members[i];
		bool is_other = false;

		for (size_t k = 0; k < COUNT_OF(others); k++)
			is_other |= str_eq(others[k], m->key);
		if (is_other)
			continue;
		buf_printf(out, "%s%s ", has_one ? ", " : "", m->key);
		sentence_add_value(m, out);
		has_one = true;
	}
}

/* What is counted, behind the sentence. */
static void add_counts(const struct log_event *x, struct buf *out)
{
	int64_t times = log_find_number(x, "times");
	const char *address = log_find_text(x, "address");
	const char *between = " (";

	if (address[0]) {
		buf_printf(out, "%s%s", between, address);
		between = ", ";
	}
	if (log_find(x, "bytes_out") && log_find(x, "bytes_in")) {
		buf_printf(out, "%s%lld bytes out, %lld in", between,
			(long long)log_find_number(x, "bytes_out"),
			(long long)log_find_number(x, "bytes_in"));
		between = ", ";
	}
	if (times > 1) {
		buf_printf(out, "%s%lld times", between, (long long)times);
		between = ", ";
	}
	if (between[0] == ',')
		buf_putc(out, ')');
}

/* How many guarantees hold; false: the event does not say. */
static bool add_guarantees(const struct log_event *x, struct buf *out)
{
	const struct log_member *passed = log_find(x, "preflight_passed");
	own(log_guarantees) struct log_guarantees g;

	if (!log_count_guarantees(x, &g))
		return false;
	buf_printf(out, "%zu of %zu guarantees hold", g.holding, g.holding + g.missing);
	if (g.missing)
		buf_printf(out, "; not %s", buf_text(&g.names));
	if (passed && passed->kind == LOG_BOOL)
		buf_printf(out, "; the preflight %s", passed->number ? "passed" : "failed");
	return true;
}

void log_print_sentence(const struct log_event *x, struct buf *out)
{
	const char *text = log_find_text(x, "text");

	if (text[0]) {
		buf_puts(out, text);
		add_counts(x, out);
		return;
	}
	if (str_eq(x->type, "inspected") && add_guarantees(x, out))
		return;
	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (types[i].form && str_eq(types[i].type, x->type)) {
			add_form(x, types[i].form, types[i].form + strlen(types[i].form), out);
			return;
		}
	add_members(x, out);
}
