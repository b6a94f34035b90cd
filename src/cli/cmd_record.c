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
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_kept.h"
#include "cli/cli_show.h"
#include "cli/cli_tar.h"
#include "cli/commands.h"
#include "record/record_read.h"
#include "sign/sign.h"

#define MOST_FILE   (4 * RECORD_MAX_SIZE)
#define MOST_LISTED 20

const struct cli_option cmd_record_options[] = {
	{ "lines", 'n', "N", SPEC_KEY_COUNT, NULL, "list: how many, the newest first; 0: all" },
	{ "output", 'o', "FILE", SPEC_KEY_COUNT, NULL, "export: where to; - is standard output" },
	{ 0 },
};

/* A record as it lies in a run's folder, signed by whomever. */
struct kept_record {
	struct arena arena;
	char *bytes;
	struct record_statement statement;
	struct record_read record;
	const char *state; /* why there is none: "goes on", …; NULL: there is one */
};

static void kept_record_done(struct kept_record *k)
{
	free(k->bytes);
	arena_done(&k->arena);
}

/* A run has its folder locked while it lasts. */
static bool is_going_on(int folder)
{
	bool is_locked = flock(folder, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (!is_locked)
		flock(folder, LOCK_UN);
	return is_locked;
}

static int load(struct kept_record *ret, int folder, struct err *e)
{
	own_fd int fd = file_open_name(folder, RECORD_FILE, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	struct sign_envelope envelope;
	const char *end;
	size_t n = 0;
	int r = fd < 0 ? fd : file_read_all(fd, MOST_FILE, &ret->bytes, &n);

	arena_init(&ret->arena, RECORD_READ_MEMORY + MOST_FILE);
	if (r == -ENOENT) {
		ret->state = is_going_on(folder) ? "goes on" : "has no record";
		return 0;
	}
	if (r < 0)
		return err_set(e, ERR_SYS, -r, "%s", strerror(-r));
	end = memchr(ret->bytes, '\n', n);
	r = sign_read_envelope(
		ret->bytes, end ? (size_t)(end - ret->bytes) : n, &ret->arena, &envelope, e);
	return r < 0 ? r
		     : record_read((const char *)envelope.payload, envelope.size, &ret->arena,
			       &ret->statement, &ret->record, e);
}

/* How it ended, in a word or two. */
static void add_end(struct buf *out, const struct record_read *r)
{
	if (r->outcome == RECORD_EXITED)
		buf_printf(out, "exit %" PRId64, r->status);
	else if (r->outcome == RECORD_SIGNALED)
		buf_printf(out, "signal %" PRId64, r->signal);
	else
		buf_puts(out, record_outcome_words[r->outcome]);
}

/* --- list --- */

struct listing {
	const struct cli *cli;
	int runs;
	char (*names)[RECORD_RUN_SIZE];
	size_t count, room;
	struct buf out;
	struct json json;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(b, a);
}

static int add_name(struct listing *l, const char *name)
{
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 256;
		void *grown = reallocarray(l->names, room, sizeof(*l->names));

		if (!grown)
			return -ENOMEM;
		l->names = grown;
		l->room = room;
	}
	snprintf(l->names[l->count++], RECORD_RUN_SIZE, "%s", name);
	return 0;
}

static int find_names(struct listing *l)
{
	struct file_entries entries = { .fd = l->runs };
	const struct file_entry *entry;
	int r = 0;

	while (r == 0 && (entry = file_next_entry(&entries)))
		if (record_is_run(entry->name, true))
			r = add_name(l, entry->name);
	if (l->count)
		qsort(l->names, l->count, sizeof(*l->names), compare_names);
	return r < 0 ? r : -entries.failure;
}

static void read_project(int folder, char ret[static PATH_MAX])
{
	ssize_t n = readlinkat(folder, "project", ret, PATH_MAX - 1);

	ret[n > 0 ? n : 0] = '\0';
}

static void list_text(
	struct listing *l, const char *id, const struct kept_record *k, const char *project)
{
	own(buf) struct buf line = { .max = 2 * PATH_MAX }, end = { .max = 64 };
	const struct record_read *r = &k->record;

	if (k->state) {
		buf_printf(&line, "%s  %-8s  %-12s", id, "-", k->state);
	} else {
		add_end(&end, r);
		buf_printf(&line, "%s  %-8s  %-12s", id, r->level, buf_text(&end));
		if (r->effects.sha256)
			buf_printf(&line, "  +%" PRId64 " ~%" PRId64 " -%" PRId64, r->effects.added,
				r->effects.changed + r->effects.renamed, r->effects.deleted);
	}
	if (project[0])
		buf_printf(&line, "  %s", project);
	buf_add_visible(&l->out, buf_text(&line), line.len);
	buf_putc(&l->out, '\n');
}

static void list_json(
	struct listing *l, const char *id, const struct kept_record *k, const char *project)
{
	const struct record_read *r = &k->record;

	json_open_map(&l->json, NULL);
	json_text(&l->json, "run", id);
	json_text(&l->json, "project", project[0] ? project : NULL);
	json_text(&l->json, "state", k->state ? k->state : "signed");
	if (!k->state) {
		json_text(&l->json, "session", r->session);
		json_text(&l->json, "level", r->level);
		json_bool(&l->json, "in_chain", r->in_chain);
		json_text(&l->json, "outcome", record_outcome_words[r->outcome]);
		if (r->outcome == RECORD_EXITED)
			json_int(&l->json, "status", r->status);
		json_text(&l->json, "began", r->began);
		json_text(&l->json, "ended", r->ended);
		json_text(&l->json, "effects", r->effects.sha256);
	}
	json_close_map(&l->json);
}

static int list_one(struct listing *l, const char *id)
{
	own(kept_record) struct kept_record k = { 0 };
	struct err e = { 0 };
	own_fd int folder = record_open_folder(l->runs, id, &e);
	char project[PATH_MAX];

	if (folder < 0 || load(&k, folder, &e) < 0) {
		cli_complain("cannot use the record of run %s: %s", id, e.text);
		return CLI_FAILED;
	}
	read_project(folder, project);
	if (l->cli->is_json)
		list_json(l, id, &k, project);
	else
		list_text(l, id, &k, project);
	return CLI_OK;
}

static int list_runs(struct listing *l, size_t most)
{
	int status = CLI_OK;
	int r = l->runs == -ENOENT ? 0 : l->runs < 0 ? l->runs : find_names(l);

	if (r < 0) {
		cli_complain("cannot list the runs: %s", strerror(-r));
		return CLI_FAILED;
	}
	if (!l->count && !l->cli->is_json)
		cli_complain("there is no run yet");
	json_init(&l->json, &l->out, 0);
	if (l->cli->is_json)
		json_open_list(&l->json, NULL);
	for (size_t i = 0; i < l->count && (most == 0 || i < most); i++) {
		int one = list_one(l, l->names[i]);

		status = one != CLI_OK ? one : status;
	}
	if (l->cli->is_json) {
		json_close_list(&l->json);
		buf_putc(&l->out, '\n');
	}
	return cli_write(&l->out, status);
}

static int do_list(const struct cli *cli, int state)
{
	struct listing l = { .cli = cli, .runs = -ENOENT, .out.max = (size_t)256 << 20 };
	const char *text = cli_value(cli, "lines");
	int64_t most = MOST_LISTED;
	struct err e = { 0 };
	int status;

	if (cli->word_count > 1 || (text && num_parse_int(text, 0, INT32_MAX, &most, &e) < 0)) {
		cli_complain("record list takes no words, and -n a number of runs");
		return CLI_MISUSE;
	}
	if (state >= 0)
		l.runs = file_open_name(state, "runs", O_RDONLY | O_DIRECTORY);
	status = list_runs(&l, (size_t)most);
	if (l.runs >= 0)
		close(l.runs);
	free(l.names);
	buf_done(&l.out);
	return status;
}

/* --- show --- */

static void show_guarantees(const struct record_read *r, struct cli_show *out)
{
	static const char *const vantages[] = { "not looked at", "said inside",
		"kept by the keeper", "seen from outside" };

	for (size_t i = 0; i < r->guarantees.count; i++) {
		const struct record_read_guarantee *g = &r->guarantees.items[i];

		cli_show_text(out, g->holds ? CLI_INK_PLAIN : CLI_INK_REMOVED,
			"  %-15s %-10s %-6s %-19s %s", g->name, g->declared,
			g->holds     ? "holds"
			: g->is_must ? "NOT"
				     : "misses",
			vantages[g->vantage], g->seen ? g->seen : "");
	}
}

static int show(const struct cli *cli, const char *id, const struct kept_record *k)
{
	const struct record_read *r = &k->record;
	own(buf) struct buf end = { .max = 64 };
	const struct {
		const char *name, *value;
	} lines[] = {
		{ "level", r->level },
		{ "reasons", r->level_reasons },
		{ "began", r->began },
		{ "ended", r->ended },
		{ "outcome", NULL },
		{ "error", r->error },
		{ "bawn", r->bawn },
		{ "kernel", r->kernel },
		{ "engine", r->engine },
		{ "image", r->image.name },
		{ "spec", r->spec_sha256 },
		{ "plan", r->plan_sha256 },
		{ "effects", r->effects.sha256 ? r->effects.sha256 : r->effects.error },
		{ "log", r->log.last },
	};
	struct cli_show out;

	add_end(&end, r);
	cli_show_open(&out, cli, true);
	cli_show_text(&out, CLI_INK_HEAD, "# run %s", id);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *value =
			str_eq(lines[i].name, "outcome") ? buf_text(&end) : lines[i].value;

		if (value && value[0])
			cli_show_text(&out, CLI_INK_PLAIN, "%-9s %s", lines[i].name, value);
	}
	if (!r->in_chain)
		cli_show_text(&out, CLI_INK_WARNING,
			"it was relaxed: signed, and outside the chain of trust");
	cli_show_text(&out, CLI_INK_HEAD, "guarantees");
	show_guarantees(r, &out);
	if (r->events.count)
		cli_show_text(&out, CLI_INK_HEAD, "denials, decisions and limits");
	for (size_t i = 0; i < r->events.count; i++)
		cli_show_text(&out, CLI_INK_PLAIN, "  %-15s %s", r->events.items[i].type,
			r->events.items[i].text ? r->events.items[i].text : "");
	return cli_show_close(&out, CLI_OK);
}

static int do_show(const struct cli *cli, const char *id, int folder)
{
	own(kept_record) struct kept_record k = { 0 };
	own(buf) struct buf out = { .max = 2 * MOST_FILE };
	struct err e = { 0 };

	if (load(&k, folder, &e) < 0) {
		cli_complain("cannot use the record of run %s: %s", id, e.text);
		return CLI_FAILED;
	}
	if (k.state) {
		cli_complain("run %s %s", id, k.state);
		return CLI_NO;
	}
	if (!cli->is_json)
		return show(cli, id, &k);
	buf_add(&out, k.statement.predicate, k.statement.predicate_size);
	buf_putc(&out, '\n');
	return cli_write(&out, CLI_OK);
}

/* --- export --- */

static int do_export(const struct cli *cli, const char *id, int folder)
{
	static const char *const files[] = { RECORD_FILE, LOG_RUN_FILE, "spec.json", "plan.json",
		"effects.json" };
	const char *path = cli_value(cli, "output");
	bool is_stdout = !path || str_eq(path, "-");
	own_fd int file = -1;
	struct err e = { 0 };
	int to = STDOUT_FILENO, r = 0;

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
	for (size_t i = 0; r == 0 && i < sizeof(files) / sizeof(files[0]); i++)
		r = cli_tar_add(to, folder, id, files[i], &e);
	if (r == 0)
		r = cli_tar_end(to, &e);
	if (r == 0)
		return CLI_OK;
	cli_complain("cannot export run %s: %s", id, e.text);
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

static int run_verb(const struct cli *cli, const char *verb)
{
	char id[RECORD_RUN_SIZE] = "";
	own_fd int folder = -1;
	int status;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
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
	return CLI_MISUSE;
}

/* Each option belongs to one verb. */
static const char *find_misplaced(const struct cli *cli, const char *verb)
{
	if (cli_value(cli, "lines") && !str_eq(verb, "list"))
		return "-n is for record list";
	return cli_value(cli, "output") && !str_eq(verb, "export") ? "-o is for record export"
								   : NULL;
}

int cmd_record(struct cli *cli)
{
	const char *home = getenv("HOME"), *verb = cli->word_count ? cli->words[0] : "";
	const char *misplaced = find_misplaced(cli, verb);
	struct err e = { 0 };
	own_fd int state = record_open_state(home && home[0] == '/' ? home : NULL, false, &e);

	if (misplaced) {
		cli_complain("%s", misplaced);
		return CLI_MISUSE;
	}
	if (state < 0 && e.kind != ERR_NONE) {
		cli_complain("%s", e.text);
		return CLI_FAILED;
	}
	if (state >= 0 && record_sign_interrupted(state, &e) < 0)
		cli_complain("cannot sign the record of a run that was interrupted: %s", e.text);
	return str_eq(verb, "list") ? do_list(cli, state) : run_verb(cli, verb);
}
