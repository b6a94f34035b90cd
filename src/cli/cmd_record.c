/*
 * cmd_record - lists the records of runs, shows one, and exports all there is of it as one file.
 *
 * Runs as:  the operator.
 * Leaves:   records of runs whose keepers died, signed; otherwise nothing.
 * Must not: say that a record is good: bawn verify does that.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_record.h"
#include "cli/cli_result.h"
#include "cli/commands.h"
#include "result/result_record.h"

#define MOST_LISTED  20
#define MOST_COMMAND ((size_t)1 << 20) /* bytes of a command that are shown */

const struct cli_option cmd_record_options[] = {
	CLI_OWN("lines", 'n', "N", "list: show the N newest, 0 for all [20]"),
	CLI_OWN("all", 'a', NULL, "show: print every guarantee"),
	CLI_OWN("output", 'o', "FILE",
		"export: write the tar archive to FILE, - for standard output"),
	{ 0 },
};

/* --- one row of a list --- */

/* Adds how a run ended: "exit 1", "signal 9" or the outcome's word. */
static void record_add_end(struct buf *out, const struct record_read *r)
{
	if (r->outcome == RECORD_EXITED)
		buf_printf(out, "exit %" PRId64, r->status);
	else if (r->outcome == RECORD_SIGNALED)
		buf_printf(out, "signal %" PRId64, r->signal);
	else
		buf_puts(out, record_outcome_words[r->outcome]);
}

/* Adds the effects in numbers, "+1 ~2 -0"; "-" where they are unknown. */
static void record_add_changes(struct buf *out, const struct record_read *r)
{
	if (r->effects.sha256)
		buf_printf(out, "+%" PRId64 " ~%" PRId64 " -%" PRId64, r->effects.added,
			r->effects.changed + r->effects.renamed, r->effects.deleted);
	else
		buf_putc(out, '-');
}

/* Adds a duration with at most three digits: 120ms, 1.2s, 3m05s, 2h03m. */
static void record_add_took(struct buf *out, int64_t us)
{
	int64_t s = us / 1000000;

	if (us < 0)
		buf_putc(out, '-');
	else if (s < 1)
		buf_printf(out, "%" PRId64 "ms", us / 1000);
	else if (s < 60)
		buf_printf(out, "%" PRId64 ".%" PRId64 "s", s, us / 100000 % 10);
	else if (s < 3600)
		buf_printf(out, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else
		buf_printf(out, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
}

#define ROW_FORM "%-24s  %-12s  %6s  %-10s  %s"

void cli_record_head(struct cli_show *show)
{
	if (show->for_person)
		cli_show_text(show, CLI_INK_HEAD, ROW_FORM, "run", "result", "took", "changes",
			"command");
}

static void row_text(const struct cli_record_rows *l, const char *id, const struct result_record *k,
	const char *command, const char *project)
{
	own(buf) struct buf line = { .max = 8 * PATH_MAX }, end = { .max = 64 };
	own(buf) struct buf took = { .max = 32 }, changes = { .max = 128 };
	const struct record_read *r = &k->record;

	if (!k->state) {
		record_add_end(&end, r);
		record_add_took(&took, r->outcome == RECORD_REFUSED ? -1 : r->run_us);
		record_add_changes(&changes, r);
	}
	buf_printf(&line, ROW_FORM, id, k->state ? k->state : buf_text(&end),
		k->state ? "-" : buf_text(&took), k->state ? "-" : buf_text(&changes), command);
	if (!k->state && !r->is_hardened)
		buf_printf(&line, "  [%s]", r->level);
	if (project[0])
		buf_printf(&line, "  in %s", project);
	cli_show_cut(l->show, CLI_INK_PLAIN, buf_text(&line));
}

static void row_json(const struct cli_record_rows *l, const char *id, const struct result_record *k,
	const char *command, const char *project)
{
	const struct record_read *r = &k->record;

	json_open_map(l->json, NULL);
	json_text(l->json, "run", id);
	json_text(l->json, "command", command[0] ? command : NULL);
	json_text(l->json, "project", project[0] ? project : NULL);
	json_text(l->json, "state", k->state ? k->state : "signed");
	if (!k->state) {
		json_text(l->json, "session", r->session);
		json_text(l->json, "level", r->level);
		json_bool(l->json, "in_chain", r->in_chain);
		json_text(l->json, "outcome", record_outcome_words[r->outcome]);
		if (r->outcome == RECORD_EXITED)
			json_int(l->json, "status", r->status);
		json_text(l->json, "began", r->began);
		json_text(l->json, "ended", r->ended);
		json_int(l->json, "run_us", r->run_us);
		json_text(l->json, "effects", r->effects.sha256);
		if (r->effects.sha256) {
			json_int(l->json, "added", r->effects.added);
			json_int(l->json, "changed", r->effects.changed);
			json_int(l->json, "renamed", r->effects.renamed);
			json_int(l->json, "deleted", r->effects.deleted);
		}
	}
	json_close_map(l->json);
}

int cli_record_row(const struct cli_record_rows *l, const char *id)
{
	own(result_record) struct result_record k = { 0 };
	struct err e = { 0 };
	own_fd int folder = record_open_folder(l->runs, id, &e);
	own(buf) struct buf command = { .max = MOST_COMMAND };
	char project[PATH_MAX];

	if (folder < 0 || result_record_load(&k, folder, &e) < 0) {
		cli_complain_about(&e, "cannot use the record of run %s: %s", id, e.text);
		return CLI_FAILED;
	}
	result_read_project(folder, project);
	record_read_command(folder, k.state ? NULL : k.record.plan_sha256, &command);
	if (l->json)
		row_json(l, id, &k, buf_text(&command), project);
	else
		row_text(l, id, &k, buf_text(&command), project);
	return CLI_OK;
}

/* --- list --- */

struct listing {
	const struct cli *cli;
	int runs;
	struct record_run *found;
	size_t count;
	struct cli_show show;
	struct buf out;
	struct json json;
};

static int list_runs(struct listing *l, size_t most)
{
	const struct cli_record_rows rows = { l->runs, &l->show,
		l->cli->is_json ? &l->json : NULL };
	int status = CLI_OK;
	int r = l->runs == -ENOENT ? 0
		: l->runs < 0      ? l->runs
				   : record_list_newest(l->runs, most, &l->found, &l->count);

	if (r < 0) {
		cli_complain("cannot list the runs: %s", strerror(-r));
		return CLI_FAILED;
	}
	if (!l->count && !l->cli->is_json)
		cli_complain("there is no run yet");
	json_init(&l->json, &l->out, 0);
	if (l->cli->is_json) {
		json_open_map(&l->json, NULL);
		json_int(&l->json, "version", 1);
		json_open_list(&l->json, "records");
	} else {
		cli_show_open(&l->show, l->cli, true);
		if (l->count)
			cli_record_head(&l->show);
	}
	for (size_t i = 0; i < l->count && (most == 0 || i < most); i++) {
		int one = cli_record_row(&rows, l->found[i].id);

		status = one != CLI_OK ? one : status;
	}
	if (!l->cli->is_json)
		return cli_show_close(&l->show, status);
	json_close_list(&l->json);
	cli_json_end(&l->json);
	return cli_write(&l->out, status);
}

static int do_list(const struct cli *cli, int state)
{
	struct listing l = { .cli = cli, .runs = -ENOENT, .out.max = (size_t)256 << 20 };
	const char *text = cli_value(cli, CLI_OPT_LINES);
	int64_t most = MOST_LISTED;
	struct err e = { 0 };
	int status;

	if (cli->word_count > 1 || (text && num_parse_int(text, 0, INT32_MAX, &most, &e) < 0)) {
		cli_complain("record list takes only options, and -n takes a number");
		return CLI_MISUSE;
	}
	if (state >= 0)
		l.runs = file_open_name(state, "runs", O_RDONLY | O_DIRECTORY);
	status = list_runs(&l, (size_t)most);
	if (l.runs >= 0)
		close(l.runs);
	free(l.found);
	buf_done(&l.out);
	return status;
}

/* --- show --- */

static void show_guarantees(const struct record_read *r, bool is_all, struct cli_show *out)
{
	static const char *const vantages[] = { "", "said inside", "kept by the keeper",
		"seen from outside" };

	size_t holding = 0;

	for (size_t i = 0; i < r->guarantees.count; i++)
		holding += r->guarantees.items[i].holds;
	cli_show_text(out, CLI_INK_HEAD, "guarantees: %zu of %zu hold%s", holding,
		r->guarantees.count, is_all || holding == 0 ? "" : "; --all shows them");
	for (size_t i = 0; i < r->guarantees.count; i++) {
		const struct record_read_guarantee *g = &r->guarantees.items[i];

		if (g->holds && !is_all)
			continue;
		cli_show_text(out, g->holds ? CLI_INK_PLAIN : CLI_INK_REMOVED,
			"  %-15s %-10s %-17s %-19s %s", g->name, g->declared,
			g->holds     ? "holds"
			: g->is_must ? "NOT"
				     : "not enforced here",
			vantages[g->vantage], g->seen ? g->seen : "");
	}
}

/* A stream by its size and digest; nothing where neither is known. */
static void add_stream(struct buf *out, const struct record_read *r, int i)
{
	const struct record_read_stream *s = &r->output.streams[i];

	if (s->sha256)
		buf_printf(out, "%" PRId64 " bytes, %s%s%s", s->bytes, s->sha256,
			r->output.is_together ? ", standard error with it" : "",
			s->kept_sha256 ? ", kept" : "");
}

static int record_show(const struct cli *cli, const char *id, int folder, struct result_record *k)
{
	bool is_all = cli_value(cli, CLI_OPT_ALL) != NULL;
	struct record_read *r = &k->record;
	own(buf) struct buf command = { .max = MOST_COMMAND }, end = { .max = 64 };
	own(buf) struct buf took = { .max = 32 }, changes = { .max = 128 };
	own(buf) struct buf output = { .max = 256 }, error = { .max = 256 };
	char project[PATH_MAX];
	struct cli_show out;

	record_read_seen(folder, &k->arena, r);
	record_read_command(folder, r->plan_sha256, &command);
	result_read_project(folder, project);
	record_add_end(&end, r);
	record_add_took(&took, r->outcome == RECORD_REFUSED ? -1 : r->run_us);
	record_add_changes(&changes, r);
	add_stream(&output, r, 0);
	add_stream(&error, r, 1);
	const struct {
		const char *name, *value;
	} lines[] = {
		{ "command", buf_text(&command) },
		{ "outcome", buf_text(&end) },
		{ "took", buf_text(&took) },
		{ "changes", buf_text(&changes) },
		{ "error", r->error },
		{ "project", project },
		{ "session", r->session },
		{ "level", r->level },
		{ "reasons", r->level_reasons },
		{ "began", r->began },
		{ "ended", r->ended },
		{ "bawn", r->bawn },
		{ "kernel", r->kernel },
		{ "engine", r->engine },
		{ "image", r->image.name },
		{ "spec", r->spec_sha256 },
		{ "plan", r->plan_sha256 },
		{ "effects", r->effects.sha256 ? r->effects.sha256 : r->effects.error },
		{ "stdout", buf_text(&output) },
		{ "stderr", buf_text(&error) },
		{ "log", r->log.last },
	};

	cli_show_open(&out, cli, true);
	cli_show_text(&out, CLI_INK_HEAD, "# run %s", id);
	for (size_t i = 0; i < COUNT_OF(lines); i++)
		if (lines[i].value && lines[i].value[0])
			cli_show_text(
				&out, CLI_INK_PLAIN, "%-9s %s", lines[i].name, lines[i].value);
	if (!r->in_chain)
		cli_show_text(&out, CLI_INK_WARNING,
			"it was relaxed: signed, and outside the chain of trust");
	show_guarantees(r, is_all, &out);
	if (r->events.count)
		cli_show_text(&out, CLI_INK_HEAD, "denials, decisions and limits");
	for (size_t i = 0; i < r->events.count; i++)
		cli_show_text(&out, CLI_INK_PLAIN, "  %-15s %s", r->events.items[i].type,
			r->events.items[i].text ? r->events.items[i].text : "");
	return cli_show_close(&out, CLI_OK);
}

static int do_show(const struct cli *cli, const char *id, int folder)
{
	own(result_record) struct result_record k = { 0 };
	own(buf) struct buf out = { .max = 2 * RESULT_RECORD_MOST };
	struct err e = { 0 };

	if (result_record_load(&k, folder, &e) < 0) {
		cli_complain_about(&e, "cannot use the record of run %s: %s", id, e.text);
		return CLI_FAILED;
	}
	if (k.state) {
		cli_complain("run %s %s", id, k.state);
		return CLI_NO;
	}
	if (!cli->is_json)
		return record_show(cli, id, folder, &k);
	buf_add(&out, k.statement.predicate, k.statement.predicate_size);
	buf_putc(&out, '\n');
	return cli_write(&out, CLI_OK);
}

/* --- export --- */

static int do_export(const struct cli *cli, const char *id, int folder)
{
	const char *path = cli_value(cli, CLI_OPT_OUTPUT);
	bool is_stdout = !path || str_eq(path, "-");
	own_fd int file = -1;
	struct err e = { 0 };
	int to = STDOUT_FILENO;

	if (is_stdout && isatty(STDOUT_FILENO)) {
		cli_complain("export writes a tar archive: redirect it, or name a file with -o");
		return CLI_MISUSE;
	}
	if (!is_stdout) {
		file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (file < 0) {
			cli_complain("cannot make '%s': %s", path, strerror(errno));
			return CLI_FAILED;
		}
		to = file;
	}
	if (result_write_archive(to, folder, id, &e) == 0)
		return CLI_OK;
	cli_complain_about(&e, "cannot export run %s: %s", id, e.text);
	if (!is_stdout)
		unlink(path);
	return CLI_FAILED;
}

/* --- the command --- */

static const struct {
	const char *name;
	int (*run)(const struct cli *cli, const char *id, int folder);
} verbs[] = {
	{ "show", do_show },
	{ "export", do_export },
};

static int record_run_verb(const struct cli *cli, const char *verb)
{
	char id[RECORD_RUN_SIZE] = "";
	own_fd int folder = -1;
	int status;

	for (size_t i = 0; i < COUNT_OF(verbs); i++) {
		if (!str_eq(verbs[i].name, verb))
			continue;
		if (cli->word_count > 2) {
			cli_complain("record %s takes one run", verb);
			return CLI_MISUSE;
		}
		status = cli_open_run(cli, cli->words[1], id, &folder);
		if (status != CLI_OK || folder < 0)
			return status != CLI_OK ? status : CLI_NO;
		return verbs[i].run(cli, id, folder);
	}
	cli_complain("record wants list, show or export%s%s", verb[0] ? ", not " : "", verb);
	if (str_eq(verb, "verify"))
		cli_hint("bawn verify%s%s", cli->word_count > 1 ? " " : "",
			cli->word_count > 1 ? cli->words[1] : "");
	return CLI_MISUSE;
}

/* Each option belongs to one verb. */
static const char *find_misplaced(const struct cli *cli, const char *verb)
{
	static const struct {
		enum cli_name option;
		const char *verb, *text;
	} places[] = {
		{ CLI_OPT_LINES, "list", "-n is for record list" },
		{ CLI_OPT_ALL, "show", "--all is for record show" },
		{ CLI_OPT_OUTPUT, "export", "-o is for record export" },
	};

	for (size_t i = 0; i < COUNT_OF(places); i++)
		if (cli_value(cli, places[i].option) && !str_eq(verb, places[i].verb))
			return places[i].text;
	return cli->is_json && str_eq(verb, "export")
		       ? "record export writes a tar archive, and takes no --json"
		       : NULL;
}

int cmd_record(struct cli *cli)
{
	const char *home = run_home(), *verb = cli_habit_verb(cli);
	const char *misplaced = find_misplaced(cli, verb);
	struct err e = { 0 };
	own_fd int state = record_open_state(home, false, &e);

	if (misplaced) {
		cli_complain("%s", misplaced);
		return CLI_MISUSE;
	}
	if (state < 0 && e.kind != ERR_NONE) {
		cli_complain_err(&e);
		return CLI_FAILED;
	}
	if (state >= 0 && record_sign_interrupted(state, &e) < 0)
		cli_complain_err(&e);
	return str_eq(verb, "list") ? do_list(cli, state) : record_run_verb(cli, verb);
}
