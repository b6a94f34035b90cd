/*
 * cmd_log - shows what happened in a run, and what would allow what was denied to it.
 *
 * Runs as:  the operator.
 * Reads:    the run's record.
 * Must not: let a name that the cage asked for command the operator's terminal, or pass one on as
 *           an entry of a spec that is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>

#include "base/file.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/cli_kept.h"
#include "cli/cli_log.h"
#include "cli/cli_show.h"
#include "cli/commands.h"
#include "record/record_read.h"
#include "sign/sign.h"

#define MOST_EVENTS ((size_t)128 << 20) /* bytes, of all there is to know of them */
#define MOST_LINE   ((size_t)16 << 20)

const struct cli_option cmd_log_options[] = {
	{ "denials", 0, NULL, SPEC_KEY_COUNT, NULL,
		"only what was denied, and what would allow it" },
	{ 0 },
};

static bool is_shown(const struct cli *cli, const struct cli_event *event)
{
	return !cli_value(cli, "denials") || cli_event_is_denial(event);
}

static size_t count_shown(const struct cli *cli, const struct cli_log *log)
{
	size_t n = 0;

	for (size_t i = 0; i < log->count; i++)
		n += is_shown(cli, &log->events[i]);
	return n;
}

/* --- for people --- */

static void show_event(const struct cli_event *x, struct cli_show *out)
{
	own(buf) struct buf line = { .max = MOST_LINE }, visible = { .max = 4 * MOST_LINE };

	buf_printf(&line, "%-16s", x->type);
	if (x->times == 1)
		buf_printf(&line, " %-10s", "once");
	else if (x->times)
		buf_printf(&line, " %-4" PRId64 " times", x->times);
	else
		buf_printf(&line, " %-10s", "");
	buf_printf(&line, "  %s", x->text);
	if (str_eq(x->type, wire_decision_names[WIRE_NET_ALLOWED]) ||
		str_eq(x->type, wire_decision_names[WIRE_PUBLISHED]))
		buf_printf(&line, " (%s%s%" PRId64 " bytes out, %" PRId64 " in)", x->other,
			x->other[0] ? "; " : "", x->bytes_out, x->bytes_in);
	/* Also into a file or a pipe: it is a text, and ends on a terminal some day. */
	buf_add_visible(&visible, buf_text(&line), line.len);
	cli_show_line(out, cli_event_is_denial(x) ? CLI_INK_REMOVED : CLI_INK_PLAIN,
		buf_text(&visible), visible.len);
}

/* As an option, which a shell reads: brackets mean something there. */
static void show_options(const struct cli_ways *ways, struct cli_show *out)
{
	own(buf) struct buf line = { .max = MOST_LINE };

	for (size_t i = 0; i < ways->allow_count; i++)
		buf_printf(&line, ways->allow[i][0] == '[' ? " --allow '%s'" : " --allow %s",
			ways->allow[i]);
	for (size_t i = 0; i < ways->port_count; i++)
		buf_printf(&line, " --host-port %u", ways->ports[i]);
	cli_show_text(out, CLI_INK_NOTE, "to allow these for one run:%s", buf_text(&line));
}

static void show_ways(const struct cli_ways *ways, struct cli_show *out)
{
	own(buf) struct buf allow = { .max = MOST_LINE }, ports = { .max = MOST_LINE };

	for (size_t i = 0; i < ways->allow_count; i++)
		buf_printf(&allow, "%s\"%s\"", i ? ", " : "", ways->allow[i]);
	for (size_t i = 0; i < ways->port_count; i++)
		buf_printf(&ports, "%s%u", i ? ", " : "", ways->ports[i]);
	if (ways->has_guess)
		cli_show_text(out, CLI_INK_NOTE,
			"of a name that was denied nobody knows the port: 443 is a guess");
	if (ways->has_more)
		cli_show_text(out, CLI_INK_NOTE, "there are more than these %d", CLI_MOST_WAYS);
	if (allow.len || ports.len)
		show_options(ways, out);
	if (ports.len)
		cli_show_text(out, CLI_INK_NOTE,
			"to allow these, which are reached as %s, add to network.host_ports: %s",
			WIRE_HOST_NAME, buf_text(&ports));
	if (allow.len)
		cli_show_text(out, CLI_INK_NOTE, "to allow these, add to network.allow: %s",
			buf_text(&allow));
}

static int show(const struct cli *cli, struct cli_log *log)
{
	struct cli_show out;
	struct cli_ways ways;

	cli_show_open(&out, cli, true);
	cli_show_text(&out, CLI_INK_HEAD, "# run %s", log->id);
	for (size_t i = 0; i < log->count && !cli_show_is_over(&out); i++)
		if (is_shown(cli, &log->events[i]))
			show_event(&log->events[i], &out);
	if (cli_value(cli, "denials")) {
		cli_log_find_ways(log, &ways);
		show_ways(&ways, &out);
	}
	return cli_show_close(&out, CLI_OK);
}

/* --- for programs --- */

static void add_escape(struct buf *out, uint32_t c)
{
	if (c <= 0xffff)
		buf_printf(out, "\\u%04x", (unsigned)c);
	else
		buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
			(unsigned)(0xdc00 + (c & 0x3ff)));
}

/* An event as the record has it, on one line, and with escapes for what a terminal would obey. */
static void add_event(struct buf *out, const struct cli_event *x)
{
	for (size_t at = 0, width; at < x->size; at += width) {
		uint32_t c = (unsigned char)x->bytes[at];

		width = c < 0x80 ? 1 : utf8_decode(x->bytes + at, x->size - at, &c);
		if (width == 0)
			break; /* never: it was read */
		if (c < ' ')
			continue; /* white space between values: texts have none of these */
		if (utf8_is_hidden(c))
			add_escape(out, c);
		else
			buf_add(out, x->bytes + at, width);
	}
}

static void print_ways(struct json *j, const struct cli_ways *ways)
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

static int print(const struct cli *cli, struct cli_log *log)
{
	own(buf) struct buf out = { .max = 8 * RECORD_MAX_SIZE };
	struct cli_ways ways;
	struct json j;

	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	json_text(&j, "run", log->id[0] ? log->id : NULL);
	json_text(&j, "outcome", log->outcome[0] ? log->outcome : NULL);
	json_bool(&j, "going_on", log->is_going_on);
	json_open_list(&j, "events");
	for (size_t i = 0; i < log->count; i++) {
		own(buf) struct buf event = { .max = 8 * RECORD_MAX_SIZE };

		if (!is_shown(cli, &log->events[i]))
			continue;
		add_event(&event, &log->events[i]);
		out.failed |= event.failed;
		json_raw(&j, NULL, buf_text(&event));
	}
	json_close_list(&j);
	if (cli_value(cli, "denials")) {
		cli_log_find_ways(log, &ways);
		print_ways(&j, &ways);
	}
	json_close_map(&j);
	buf_putc(&out, '\n');
	return cli_write(&out, CLI_OK);
}

/* --- the command --- */

/* A run has its folder locked while it lasts. */
static bool is_locked(int folder)
{
	if (flock(folder, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(folder, LOCK_UN);
	return false;
}

static void cli_log_done(struct cli_log *log)
{
	arena_done(&log->arena);
}

/* The record's own text, which is in the first envelope. */
static int open_envelope(struct cli_log *log, const char *bytes, size_t n,
	struct record_statement *ret, struct err *e)
{
	const char *end = memchr(bytes, '\n', n);
	struct sign_envelope envelope;
	int r = sign_read_envelope(
		bytes, end ? (size_t)(end - bytes) : n, &log->arena, &envelope, e);

	return r < 0 ? r
		     : record_read_statement(
			       (const char *)envelope.payload, envelope.size, &log->arena, ret, e);
}

/* *ret_bytes are what the events are borrowed from. */
static int load(struct cli_log *log, int folder, char **ret_bytes)
{
	own_fd int fd = file_open_name(folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	struct record_statement statement;
	struct err e = { 0 };
	size_t n = 0;
	int r = fd < 0 ? fd : file_read_all(fd, 4 * RECORD_MAX_SIZE, ret_bytes, &n);

	if (r == 0 &&
		(open_envelope(log, *ret_bytes, n, &statement, &e) < 0 ||
			cli_log_read(statement.predicate, statement.predicate_size, log, &e) < 0)) {
		cli_complain("cannot use the record of run %s: %s", log->id, e.text);
		return CLI_FAILED;
	}
	/* Nobody lived to write it, or nobody has come to that. */
	if (r == -ENOENT)
		log->outcome = "interrupted";
	else if (r < 0) {
		cli_complain("cannot read the record of run %s: %s", log->id, strerror(-r));
		return CLI_FAILED;
	}
	log->is_going_on = str_eq(log->outcome, "interrupted") && is_locked(folder);
	return CLI_OK;
}

static void say_state(const struct cli *cli, const struct cli_log *log)
{
	bool is_empty = count_shown(cli, log) == 0;

	if (log->is_going_on)
		cli_complain("run %s is still going on: what happens in it is known when it ends",
			log->id);
	else if (str_eq(log->outcome, "interrupted"))
		cli_complain("run %s was interrupted: what happened in it is not known", log->id);
	else if (is_empty && !cli->is_quiet && !cli->is_json)
		cli_complain(cli_value(cli, "denials")
				     ? "nothing was denied to run %s"
				     : "nothing is on record that happened in run %s",
			log->id);
}

int cmd_log(struct cli *cli)
{
	own(cli_log) struct cli_log log = { .outcome = "", .arena.max = MOST_EVENTS };
	own_free char *bytes = NULL;
	own_fd int folder = -1;
	int status;

	if (cli->word_count > 1) {
		cli_complain("log shows one run, and takes no '%s'", cli->words[1]);
		return CLI_MISUSE;
	}
	status = cli_open_run(cli, cli->word_count ? cli->words[0] : NULL, log.id, &folder);
	if (status == CLI_OK && folder >= 0)
		status = load(&log, folder, &bytes);
	if (status != CLI_OK)
		return status;
	if (folder >= 0)
		say_state(cli, &log);
	if (cli->is_json)
		return print(cli, &log);
	return folder >= 0 && count_shown(cli, &log) ? show(cli, &log) : CLI_OK;
}
