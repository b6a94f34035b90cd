/*
 * cli_runs - which run is meant.
 *
 * Runs as: the operator.
 * Reads:   the names of all runs, and the projects they were in.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli_kept.h"

#define LEAST_PREFIX 8 /* a day */
#define MOST_RUNS    ((size_t)64 << 20)

/* A run of this project. */
struct seen {
	struct record_run run;
	bool has_layer;
};

struct runs {
	int fd; /* -1: no run was ever kept */
	char here[PATH_MAX];
	char project[PATH_MAX]; /* the nearest folder that was a run's project; "": none was */
	struct arena arena;
	struct seen *items; /* the newest first */
	size_t count, room;
};

static void runs_done(struct runs *r)
{
	if (r->fd >= 0)
		close(r->fd);
	arena_done(&r->arena);
}

static int runs_open(struct runs *r)
{
	struct err e = { 0 };

	r->fd = -1;
	arena_init(&r->arena, MOST_RUNS);
	if (!getcwd(r->here, sizeof(r->here)) || r->here[0] != '/') {
		cli_complain("the current directory cannot be named: %s",
			strerror(r->here[0] != '/' ? ENOENT : errno));
		return CLI_FAILED;
	}
	r->fd = record_open_runs(run_home(), &e);
	if (r->fd >= 0 || e.kind == ERR_NONE)
		return CLI_OK;
	cli_complain_err(&e);
	return CLI_FAILED;
}

static bool runs_is_there(int runs, const char *id, const char *name)
{
	char path[RECORD_RUN_SIZE + 32];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", id, name);
	return fstatat(runs, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The project of a run; false where it has none. */
static bool runs_read_project(int runs, const char *id, char ret[static PATH_MAX])
{
	char path[RECORD_RUN_SIZE + 16];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/project", id);
	n = readlinkat(runs, path, ret, PATH_MAX - 1);
	if (n <= 0)
		return false;
	ret[n] = '\0';
	return ret[0] == '/';
}

static int runs_add(struct runs *r, const char *id)
{
	struct seen *s;

	if (r->count == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		struct seen *grown = arena_array(&r->arena, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		if (r->count)
			memcpy(grown, r->items, r->count * sizeof(*grown));
		r->items = grown;
		r->room = room;
	}
	s = &r->items[r->count++];
	snprintf(s->run.id, sizeof(s->run.id), "%s", id);
	record_find_began(r->fd, id, &s->run.began);
	s->has_layer =
		runs_is_there(r->fd, id, "layer/upper") || runs_is_there(r->fd, id, "layer/copy");
	return 0;
}

/* The runs of the nearest folder, from here upwards, that was the project of one. */
static int runs_find(struct runs *r)
{
	struct file_entries entries = { .fd = r->fd };
	const struct file_entry *entry;
	int failure = 0;

	while (r->fd >= 0 && !failure && (entry = file_next_entry(&entries))) {
		char project[PATH_MAX];

		if (!record_is_run(entry->name, true) ||
			!runs_read_project(r->fd, entry->name, project) ||
			!str_path_within(r->here, project) || strlen(project) < strlen(r->project))
			continue;
		if (!str_eq(project, r->project))
			r->count = 0;
		memcpy(r->project, project, strlen(project) + 1);
		failure = -runs_add(r, entry->name);
	}
	if (!failure)
		failure = entries.failure;
	if (failure) {
		cli_complain("cannot list the runs: %s", strerror(failure));
		return CLI_FAILED;
	}
	if (r->count)
		qsort(r->items, r->count, sizeof(*r->items), record_compare_runs);
	return CLI_OK;
}

/* --- a run by its name --- */

/* How many runs begin so; the last of them in `ret`. */
static size_t match(int runs, const char *prefix, char ret[static RECORD_RUN_SIZE])
{
	struct file_entries entries = { .fd = runs };
	const struct file_entry *entry;
	size_t count = 0;

	while (runs >= 0 && (entry = file_next_entry(&entries))) {
		if (!record_is_run(entry->name, true) || !str_starts(entry->name, prefix))
			continue;
		snprintf(ret, RECORD_RUN_SIZE, "%s", entry->name);
		count++;
	}
	if (runs >= 0)
		lseek(runs, 0, SEEK_SET);
	return count;
}

/* CLI_OK with an empty `ret` where the word may be a path; said with --run in any case. */
static int name_run(int runs, const char *word, bool is_run, char ret[static RECORD_RUN_SIZE])
{
	bool is_name = strlen(word) >= LEAST_PREFIX && record_is_run(word, false);
	size_t count = is_name ? match(runs, word, ret) : 0;

	if (count == 1)
		return CLI_OK;
	ret[0] = '\0';
	if (count > 1) {
		cli_complain("'%s' begins the names of %zu runs: write more of it", word, count);
		return CLI_NO;
	}
	if (is_run || record_is_run(word, true)) {
		cli_complain("there is no run '%s'", word);
		return CLI_NO;
	}
	return CLI_OK;
}

/* --- the one that is meant --- */

/* How many others wait beside it. */
static size_t choose_newest(struct runs *r, char ret[static RECORD_RUN_SIZE])
{
	size_t waiting = 0;

	for (size_t i = 0; i < r->count; i++) {
		if (!r->items[i].has_layer)
			continue;
		if (!waiting++)
			memcpy(ret, r->items[i].run.id, RECORD_RUN_SIZE);
	}
	return waiting ? waiting - 1 : 0;
}

static void runs_say_none(const struct cli *cli, const struct runs *r)
{
	if (cli->is_quiet)
		return;
	cli_complain(
		"no changes of a run are waiting in '%s'", r->project[0] ? r->project : r->here);
	cli_hint_session(r->here);
}

/* The session that the first word is, and the paths that follow. */
static int choose_session(struct cli_kept *k, const struct runs *r, bool may_be_path)
{
	int status;

	if (!k->cli->open_count) {
		cli_complain("%s wants a session", k->cli->command->name);
		cli_hint("bawn session list");
		return CLI_MISUSE;
	}
	status = cli_kept_choose_session(k, k->cli->words[0], may_be_path);
	if (status != CLI_OK || k->folder < 0)
		return status;
	k->has_named_run = true;
	return k->project[0] ? cli_kept_take_paths(k, r->here, 1) : CLI_OK;
}

int cli_kept_choose(struct cli_kept *k)
{
	const struct cli *cli = k->cli;
	const char *named = cli_value(cli, CLI_OPT_RUN);
	own(runs) struct runs r = { 0 };
	char id[RECORD_RUN_SIZE] = "";
	size_t first = 0;
	int status = runs_open(&r);

	if (status == CLI_OK && cli->command->names_session)
		return choose_session(k, &r, false);
	if (status == CLI_OK && named)
		status = name_run(r.fd, named, true, id);
	else if (status == CLI_OK && cli->open_count) {
		status = name_run(r.fd, cli->words[0], false, id);
		k->has_named_run = id[0] != '\0';
		first = k->has_named_run;
		if (status == CLI_OK && !id[0])
			status = choose_session(k, &r, true);
		if (status != CLI_OK || k->folder >= 0)
			return status;
	}
	if (status == CLI_OK && !id[0]) {
		status = runs_find(&r);
		k->other_count = choose_newest(&r, id);
	}
	if (status != CLI_OK)
		return status;
	if (!id[0]) {
		runs_say_none(cli, &r);
		return CLI_OK;
	}
	status = cli_kept_open(k, r.fd, id);
	return status == CLI_OK && k->project[0] ? cli_kept_take_paths(k, r.here, first) : status;
}

static int find_last(int runs, char ret[static RECORD_RUN_SIZE])
{
	own_free struct record_run *found = NULL;
	size_t count = 0;
	int r = runs < 0 ? 0 : record_list_runs(runs, NULL, &found, &count);

	if (r < 0) {
		cli_complain("cannot list the runs: %s", strerror(-r));
		return CLI_FAILED;
	}
	if (count)
		memcpy(ret, found[0].id, RECORD_RUN_SIZE);
	return CLI_OK;
}

int cli_open_run(
	const struct cli *cli, const char *word, char ret[static RECORD_RUN_SIZE], int *ret_folder)
{
	own(runs) struct runs r = { 0 };
	struct err e = { 0 };
	int status = runs_open(&r);

	ret[0] = '\0';
	*ret_folder = -1;
	if (status == CLI_OK && word)
		status = name_run(r.fd, word, true, ret);
	else if (status == CLI_OK)
		status = find_last(r.fd, ret);
	if (status != CLI_OK)
		return status;
	if (!ret[0]) {
		if (!cli->is_quiet)
			cli_complain("there is no run yet");
		return CLI_OK;
	}
	*ret_folder = record_open_folder(r.fd, ret, &e);
	if (*ret_folder >= 0)
		return CLI_OK;
	cli_complain_err(&e);
	return *ret_folder == -ENOENT ? CLI_NO : CLI_FAILED;
}

int cli_kept_each(const struct cli *cli, int (*see)(void *of, struct cli_kept *k), void *of)
{
	own(runs) struct runs r = { 0 };
	int status = runs_open(&r);
	size_t seen = 0;

	if (status == CLI_OK)
		status = runs_find(&r);
	for (size_t i = 0; status == CLI_OK && i < r.count; i++) {
		own(cli_kept) struct cli_kept k;

		cli_kept_init(&k, cli);
		if (!runs_is_there(r.fd, r.items[i].run.id, RECORD_LAYER) &&
			!runs_is_there(r.fd, r.items[i].run.id, "layer.gone"))
			continue;
		seen++;
		status = cli_kept_open(&k, r.fd, r.items[i].run.id);
		if (status == CLI_OK)
			status = see(of, &k);
	}
	if (status == CLI_OK && !seen)
		runs_say_none(cli, &r);
	return status;
}
