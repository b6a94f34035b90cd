/*
 * cli_log_print - events for people, and in forms for programs.
 *
 * Must not: let a name that the cage asked for command the operator's terminal.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_log.h"

#define MOST_LINE (16 * LOG_LINE_SIZE) /* with everything in it escaped */

/* --- for people --- */

static enum cli_ink log_print_ink_of(const struct log_event *x)
{
	static const char *const notes[] = { "degraded", "limit_hit", "network_closed",
		"interrupted", "write_held", "decisions_untold", "lease_lost", "result_refused" };

	for (size_t i = 0; i < COUNT_OF(notes); i++)
		if (str_eq(notes[i], x->type))
			return CLI_INK_NOTE;
	return log_is_denial(x) || str_eq(x->type, "refused") ? CLI_INK_REMOVED : CLI_INK_PLAIN;
}

/* Also into a file or a pipe visibly: it is a text, and ends on a terminal some day. */
static void show_visibly(struct cli_log_out *out, enum cli_ink ink, const char *bytes, size_t n)
{
	own(buf) struct buf visible = { .max = MOST_LINE };

	buf_add_visible(&visible, bytes, n);
	cli_show_line(&out->show, ink, buf_text(&visible), visible.len);
}

static void begin_text(struct cli_log_out *out)
{
	if (out->id[0])
		cli_show_text(&out->show, CLI_INK_HEAD, "# run %s", out->id);
}

/* 2026-11-15T22:45:01.123456789Z with the milliseconds; another time as it is. */
static void add_time(struct buf *out, const char *time)
{
	if (strlen(time) > strlen("2026-11-15T22:45:01.123Z"))
		buf_printf(out, "%.23sZ", time);
	else
		buf_printf(out, "%-24s", time);
}

static void begin_row(const struct cli_log_out *out, const char *time, const char *run,
	const char *type, struct buf *line)
{
	add_time(line, time);
	if (!out->id[0])
		buf_printf(line, "  %-24s", run[0] ? run : "-");
	buf_printf(line, "  %-16s  ", type);
}

/* Shows the folded events in one line. */
static void show_folded(struct cli_log_out *out)
{
	own(buf) struct buf line = { .max = MOST_LINE };

	if (out->folded.holding) {
		begin_row(out, out->folded.time, out->folded.run, "guarantee", &line);
		buf_printf(&line, "%zu of %zu hold; --type guarantee shows them",
			out->folded.holding, out->folded.count);
		show_visibly(out, CLI_INK_PLAIN, buf_text(&line), line.len);
	}
	out->folded.holding = out->folded.count = 0;
}

/* True for the guarantee of a run that holds, which is folded. Others are shown in place. */
static bool folds(struct cli_log_out *out, const struct log_event *x)
{
	const struct log_member *holds = log_find(x, "holds");
	bool is_guarantee = out->folds && str_eq(x->type, "guarantee");
	bool is_degraded = out->folds && str_eq(x->type, "degraded") && log_find(x, "name");

	if (!(is_guarantee || is_degraded) || !str_eq(x->run, out->folded.run))
		show_folded(out);
	if (!is_guarantee)
		return false;
	snprintf(out->folded.run, sizeof(out->folded.run), "%s", x->run);
	snprintf(out->folded.time, sizeof(out->folded.time), "%s", x->time);
	out->folded.count++;
	if (!holds || holds->kind != LOG_BOOL || !holds->number)
		return false;
	out->folded.holding++;
	return true;
}

static void show_text(struct cli_log_out *out, struct log_event *x)
{
	own(buf) struct buf line = { .max = MOST_LINE };

	if (folds(out, x))
		return;
	begin_row(out, x->time, x->run, x->type, &line);
	log_print_sentence(x, &line);
	show_visibly(out, log_print_ink_of(x), buf_text(&line), line.len);
	result_ways_add(&out->ways, x);
}

/* Prints options for a shell; an address in brackets has to be quoted there. */
static void show_options(const struct result_ways *ways, struct cli_show *show)
{
	own(buf) struct buf line = { .max = MOST_LINE };

	for (size_t i = 0; i < ways->allow_count; i++)
		buf_printf(&line, ways->allow[i][0] == '[' ? " --allow '%s'" : " --allow %s",
			ways->allow[i]);
	for (size_t i = 0; i < ways->port_count; i++)
		buf_printf(&line, " --host-port %u", ways->ports[i]);
	cli_show_text(show, CLI_INK_NOTE, "to allow these for one run:%s", buf_text(&line));
}

static void show_ways(const struct result_ways *ways, bool is_run, struct cli_show *show)
{
	own(buf) struct buf allow = { .max = MOST_LINE }, ports = { .max = MOST_LINE };

	for (size_t i = 0; i < ways->allow_count; i++)
		buf_printf(&allow, "%s\"%s\"", i ? ", " : "", ways->allow[i]);
	for (size_t i = 0; i < ways->port_count; i++)
		buf_printf(&ports, "%s%u", i ? ", " : "", ways->ports[i]);
	if (ways->attempts)
		cli_show_text(show, CLI_INK_NOTE, "%s no network: %" PRId64 " attempt%s%s",
			is_run ? "this run had" : "runs that had", ways->attempts,
			ways->attempts == 1 ? "" : "s",
			allow.len ? "" : "; to allow a destination: --allow HOST:PORT");
	if (ways->has_guess)
		cli_show_text(show, CLI_INK_NOTE,
			"the port of a denied name is not known: 443 is a guess");
	if (ways->has_more)
		cli_show_text(show, CLI_INK_NOTE, "there are more than these %d", RESULT_MOST_WAYS);
	if (allow.len || ports.len)
		show_options(ways, show);
	if (ports.len)
		cli_show_text(show, CLI_INK_NOTE,
			"to allow these, which are reached as %s, add to network.host_ports: %s",
			WIRE_HOST_NAME, buf_text(&ports));
	if (allow.len)
		cli_show_text(show, CLI_INK_NOTE, "to allow these, %sadd to network.allow: %s",
			ways->attempts ? "set network.mode to allowlist and " : "",
			buf_text(&allow));
}

static void end_text(struct cli_log_out *out, const struct log_source *s)
{
	(void)s;
	show_folded(out);
	if (out->is_denials)
		show_ways(&out->ways, out->id[0], &out->show);
}

/* --- one object --- */

static void log_print_put(struct cli_log_out *out, const struct buf *text)
{
	/* One object that is not whole would be worse than none. */
	if (text->failed)
		out->show.failure = out->show.failure ? out->show.failure : ENOMEM;
	cli_show_raw(&out->show, buf_text(text), text->len);
}

static void begin_object(struct cli_log_out *out)
{
	own(buf) struct buf text = { .max = MOST_LINE };
	struct json j;

	cli_json_begin(&j, &text);
	json_text(&j, "run", out->id[0] ? out->id : NULL);
	json_text(&j, "outcome", out->outcome[0] ? out->outcome : NULL);
	json_bool(&j, "going_on", out->is_going_on);
	buf_puts(&text, ",\"events\":[");
	log_print_put(out, &text);
}

static void show_member(struct cli_log_out *out, struct log_event *x)
{
	own(buf) struct buf text = { .max = MOST_LINE };

	if (out->count)
		buf_putc(&text, ',');
	log_add_harmless(&text, x->line, x->size, false);
	log_print_put(out, &text);
	result_ways_add(&out->ways, x);
}

static void print_ways(struct json *j, const struct result_ways *ways)
{
	json_open_list(j, "allow");
	for (size_t i = 0; i < ways->allow_count; i++)
		json_text(j, NULL, ways->allow[i]);
	json_close_list(j);
	json_open_list(j, "host_ports");
	for (size_t i = 0; i < ways->port_count; i++)
		json_int(j, NULL, ways->ports[i]);
	json_close_list(j);
}

static void end_object(struct cli_log_out *out, const struct log_source *s)
{
	own(buf) struct buf text = { .max = MOST_LINE };
	struct json j;

	/* Goes on behind the list, as if that had been written here. */
	json_init(&j, &text, 0);
	j.depth = 1;
	j.has_members[1] = true;
	buf_putc(&text, ']');
	json_text(&j, "chain", s->is_broken ? "broken" : s->is_torn ? "torn" : "whole");
	if (out->is_denials)
		print_ways(&j, &out->ways);
	cli_json_end(&j);
	log_print_put(out, &text);
}

/* --- one object a line --- */

static void show_jsonl(struct cli_log_out *out, struct log_event *x)
{
	own(buf) struct buf text = { .max = MOST_LINE };

	log_add_harmless(&text, x->line, x->size, false);
	buf_putc(&text, '\n');
	log_print_put(out, &text);
}

static void show_cloudevent(struct cli_log_out *out, struct log_event *x)
{
	own(buf) struct buf text = { .max = MOST_LINE };

	log_print_cloudevent(x, &out->from, &text);
	log_print_put(out, &text);
}

static void show_ocsf(struct cli_log_out *out, struct log_event *x)
{
	own(buf) struct buf text = { .max = MOST_LINE };

	log_print_ocsf(x, &out->from, &text);
	log_print_put(out, &text);
}

/* --- all of them --- */

static const struct cli_log_form forms[] = {
	{ "text", false, false, begin_text, show_text, end_text },
	{ "json", false, true, begin_object, show_member, end_object },
	{ "jsonl", true, false, NULL, show_jsonl, NULL },
	{ "cloudevents", true, false, NULL, show_cloudevent, NULL },
	{ "ocsf", true, false, NULL, show_ocsf, NULL },
};

int cli_log_choose_form(const struct cli *cli, struct cli_log_out *ret)
{
	const char *name = cli_value(cli, CLI_OPT_FORMAT);

	if (name && cli->is_json && !str_eq(name, "json")) {
		cli_complain(
			"--json is one object, and --format %s is another form: choose one", name);
		return CLI_MISUSE;
	}
	if (!name)
		name = cli->is_json ? "json" : "text";
	for (size_t i = 0; i < COUNT_OF(forms); i++)
		if (str_eq(forms[i].name, name)) {
			ret->form = &forms[i];
			return CLI_OK;
		}
	cli_complain("--format is text, json, jsonl, cloudevents or ocsf, not '%s'", name);
	return CLI_MISUSE;
}

void cli_log_begin(struct cli_log_out *out, bool may_page)
{
	cli_show_open(&out->show, out->cli, may_page && !out->form->is_stream);
	if (out->form->begin)
		out->form->begin(out);
}

void cli_log_show(struct cli_log_out *out, struct log_event *x)
{
	out->form->show(out, x);
	out->count++;
}

void cli_log_show_line(struct cli_log_out *out, const struct log_line *line)
{
	if (out->form != &forms[0])
		return;
	show_folded(out);
	show_visibly(out, CLI_INK_WARNING, line->text, line->size);
}

int cli_log_end(struct cli_log_out *out, const struct log_source *s, int status)
{
	if (out->form->end)
		out->form->end(out, s);
	return cli_show_close(&out->show, status);
}
