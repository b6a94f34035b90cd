/*
 * result_find - which run or session is meant, and which paths of its project.
 *
 * Runs as: the operator.
 * Reads:   the names of all runs, and the projects they were in; the store, if there is one: makes
 *          none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "result/result.h"
#include "run/run_sessions.h"

#define LEAST_PREFIX 8 /* a day */
#define MOST_RUNS    ((size_t)64 << 20)

struct runs {
	int fd; /* -1: no run was ever kept */
	char here[PATH_MAX];
	char project[PATH_MAX]; /* the nearest folder that was a run's project; "": none was */
	struct arena arena;
	struct record_run *items; /* that wait, the newest first */
	size_t count;
};

static void runs_done(struct runs *r)
{
	if (r->fd >= 0)
		close(r->fd);
	arena_done(&r->arena);
}

static int runs_open(struct runs *r, struct err *e)
{
	r->fd = -1;
	arena_init(&r->arena, MOST_RUNS);
	if (!getcwd(r->here, sizeof(r->here)) || r->here[0] != '/')
		return err_sys(
			e, r->here[0] != '/' ? ENOENT : errno, "cannot name the current directory");
	r->fd = record_open_runs(run_home(), e);
	if (r->fd >= 0 || e->kind == ERR_NONE)
		return 0;
	/* No state is another thing than no run. */
	e->kind = ERR_SYS;
	return r->fd;
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

/* Finds the pending runs of the nearest folder, from here upwards, that is a run's project. */
static int runs_find(struct runs *r, struct err *e)
{
	own_free struct record_run *found = NULL;
	size_t count = 0;
	int failure = r->fd < 0 ? 0 : record_list_pending(r->fd, &found, &count);

	if (failure < 0)
		return err_sys(e, -failure, "cannot list the runs with changes");
	r->items = arena_array(&r->arena, count + 1, sizeof(*r->items));
	if (!r->items)
		return err_set(e, ERR_SYS, ENOMEM, "cannot list the runs: out of memory");
	for (size_t i = 0; i < count; i++) {
		char project[PATH_MAX];

		if (!runs_read_project(r->fd, found[i].id, project) ||
			!str_path_within(r->here, project) || strlen(project) < strlen(r->project))
			continue;
		if (!str_eq(project, r->project))
			r->count = 0;
		memcpy(r->project, project, strlen(project) + 1);
		r->items[r->count++] = found[i];
	}
	return 0;
}

/* --- a run by its name --- */

/* Returns how many runs begin with the word; sets `ret` to the last of them. */
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

/* 0 with an empty `ret` where the word may be a path; with is_run it must be a run. */
static int name_run(
	int runs, const char *word, bool is_run, char ret[static RECORD_RUN_SIZE], struct err *e)
{
	bool is_name = strlen(word) >= LEAST_PREFIX && record_is_run(word, false);
	struct stat st;
	size_t count;

	/* A whole name needs no look at the others. */
	if (record_is_run(word, true) && runs >= 0 &&
		fstatat(runs, word, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		snprintf(ret, RECORD_RUN_SIZE, "%s", word);
		return 0;
	}
	count = is_name ? match(runs, word, ret) : 0;
	if (count == 1)
		return 0;
	ret[0] = '\0';
	if (count > 1)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOTUNIQ,
				"cannot tell which run is meant: '%s' begins the names of %zu runs",
				word, count),
			"write more of it");
	if (is_run || record_is_run(word, true))
		return err_set(
			e, ERR_REFUSED, ENOENT, "cannot choose a run: there is no run '%s'", word);
	return 0;
}

/* --- paths: from the current folder, as git has them, to the project's top --- */

/* Adds the parts of a path to an absolute one, by their spelling. */
static void add_parts(struct buf *path, const char *parts)
{
	while (*parts) {
		size_t n = strcspn(parts, "/");

		if (n == 2 && memcmp(parts, "..", 2) == 0) {
			while (path->len && path->data[--path->len] != '/')
				;
		} else if (n && !(n == 1 && *parts == '.')) {
			buf_putc(path, '/');
			buf_add(path, parts, n);
		}
		parts += n + (parts[n] == '/');
	}
}

/* Below the project's top, "" for the top itself; NULL where it is elsewhere. */
static const char *locate(struct result *k, const char *here, const char *word, struct err *e)
{
	own(buf) struct buf path = { .max = CHANGE_MAX_PATH };
	size_t top = str_eq(k->project, "/") ? 0 : strlen(k->project);

	if (word[0] != '/')
		add_parts(&path, here);
	add_parts(&path, word);
	/* The end may lie before what once was written. */
	buf_add(&path, "", 0);
	if (path.failed) {
		err_set(e, ERR_USE, ENAMETOOLONG, "cannot use the path '%.200s': it is too long",
			word);
		return NULL;
	}
	if (!str_path_within(path.len ? path.data : "/", k->project)) {
		err_set(e, ERR_USE, EXDEV,
			"cannot use a path: '%s' is not in the project '%s' of %s %s", word,
			k->project, k->what, k->id);
		return NULL;
	}
	top += top < path.len;
	return arena_copy(&k->arena, path.data + top, path.len - top);
}

static int take_paths(struct result *k, const struct result_words *w, size_t first, struct err *e)
{
	size_t count = w->count - first;
	const char **paths = arena_array(&k->arena, count + 1, sizeof(*paths));

	for (size_t i = 0; paths && i < count; i++) {
		const char *word = w->words[first + i];

		if (!word[0])
			return err_set(e, ERR_USE, EINVAL,
				"cannot use a path: an empty path names nothing");
		paths[i] = locate(k, w->here, word, e);
		if (!paths[i])
			return -EINVAL;
	}
	if (!paths)
		return err_set(e, ERR_SYS, ENOMEM, "cannot read the paths: out of memory");
	k->paths = paths;
	k->path_count = count;
	/* The project's top is everything, and is like naming nothing. */
	for (size_t i = 0; i < count; i++)
		if (!paths[i][0])
			k->path_count = 0;
	return 0;
}

/* --- a session --- */

/* A word that is a path here, and is of no more than seven digits if it is to be an id. */
static bool is_path(const char *word)
{
	struct stat st;

	return lstat(word, &st) == 0 || (session_check_name(word) && !session_is_id(word, false));
}

static int open_workspace(struct result *k, const struct run_sessions *at,
	const struct store_session *s, struct err *e)
{
	own_fd int workspace = -1;

	if (!run_sessions_is_here(at, s))
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT,
				"cannot open session %s: its files are in another root", s->id),
			"set BAWN_SANDBOX_ROOT");
	workspace = session_open_present(at->root, s, e);
	if (workspace < 0) {
		e->kind = workspace == -ENOENT ? ERR_REFUSED : ERR_SYS;
		return workspace;
	}
	return result_take_workspace(k, &workspace, s->id, e);
}

/* 0 with no folder where the word is no session's, and may be a path. */
static int choose_session(struct result *k, const char *word, bool may_be_path, struct err *e)
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	own(store_session) struct store_session s = { 0 };
	int r;

	if (may_be_path && is_path(word))
		return 0;
	r = run_sessions_open(&at, false, e);
	if (r < 0) {
		e->kind = ERR_SYS;
		return r;
	}
	r = run_sessions_look_up(&at, word, &s, e);
	if (r == 1)
		return open_workspace(k, &at, &s, e);
	if ((r == 0 || r == -ENOTUNIQ) && may_be_path) {
		*e = (struct err){ 0 };
		return 0;
	}
	if (r == 0)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT, "cannot find session '%s'", word),
			"bawn session list");
	e->kind = r == -ENOTUNIQ ? ERR_REFUSED : ERR_SYS;
	return r;
}

int result_choose_session(struct result *k, const char *word, struct err *e)
{
	return choose_session(k, word, false, e);
}

struct search {
	const struct run_sessions *at;
	const char *here;
	char *ret;
};

static int see_session(void *of, const struct store_session *s)
{
	const struct search *q = of;

	if (!str_path_within(q->here, s->project) || !run_sessions_is_here(q->at, s) ||
		session_count_writes(q->at->root, s->id, NULL) <= 0)
		return 0;
	snprintf(q->ret, RESULT_NAME_SIZE, "%s", s->name[0] ? s->name : s->id);
	return 1;
}

bool result_find_session(const char *here, char ret[static RESULT_NAME_SIZE])
{
	own(run_sessions) struct run_sessions at = { .state = -1, .root = -1 };
	struct search q = { .at = &at, .here = here, .ret = ret };
	struct err e = { 0 };

	ret[0] = '\0';
	/* On an error there is no hint. */
	if (run_sessions_open(&at, false, &e) == 0 && at.store && at.root >= 0)
		(void)store_each_session(at.store, see_session, &q, &e);
	return ret[0] != '\0';
}

/* --- the one that is meant --- */

/* Finds the newest run with pending changes; returns how many others have some. */
static size_t choose_newest(const struct runs *r, char ret[static RECORD_RUN_SIZE])
{
	size_t waiting = 0;

	for (size_t i = 0; i < r->count; i++)
		if (record_has_layer(r->fd, r->items[i].id) && !waiting++)
			memcpy(ret, r->items[i].id, RECORD_RUN_SIZE);
	return waiting ? waiting - 1 : 0;
}

static void note_where(const struct runs *r, struct result_words *ret)
{
	snprintf(ret->where, sizeof(ret->where), "%s", r->project[0] ? r->project : r->here);
	snprintf(ret->here, sizeof(ret->here), "%s", r->here);
}

/* The first word is a session, or may be one. */
static int choose_by_session(struct result *k, struct result_words *w, struct err *e)
{
	int r = choose_session(k, w->words[0], !w->is_session, e);

	if (r < 0 || k->folder < 0)
		return r;
	w->is_named = true;
	return k->project[0] ? take_paths(k, w, 1, e) : 0;
}

/* The run's id, or "" where there is none to be chosen. */
static int choose_run(
	struct runs *r, struct result_words *w, char id[static RECORD_RUN_SIZE], struct err *e)
{
	int ret = 0;

	if (w->run)
		return name_run(r->fd, w->run, true, id, e);
	if (w->is_named)
		return 0;
	ret = runs_find(r, e);
	w->others = choose_newest(r, id);
	return ret;
}

int result_choose(struct result *k, struct result_words *w, struct err *e)
{
	own(runs) struct runs r = { 0 };
	char id[RECORD_RUN_SIZE] = "";
	int ret = runs_open(&r, e);

	if (ret < 0)
		return ret;
	note_where(&r, w);
	if (w->is_session)
		return choose_by_session(k, w, e);
	if (!w->run && w->open_count) {
		ret = name_run(r.fd, w->words[0], false, id, e);
		w->is_named = id[0] != '\0';
		if (ret == 0 && !id[0])
			ret = choose_by_session(k, w, e);
		if (ret < 0 || k->folder >= 0)
			return ret;
	}
	ret = choose_run(&r, w, id, e);
	note_where(&r, w);
	if (ret == 0 && id[0])
		ret = result_open(k, r.fd, id, e);
	if (ret < 0 || !id[0] || !k->project[0])
		return ret;
	return take_paths(k, w, w->is_named && !w->run, e);
}

static int find_last(int runs, char ret[static RECORD_RUN_SIZE], struct err *e)
{
	own_free struct record_run *found = NULL;
	size_t count = 0;
	int r = runs < 0 ? 0 : record_list_newest(runs, 1, &found, &count);

	if (r < 0)
		return err_sys(e, -r, "cannot list the runs");
	if (count)
		memcpy(ret, found[0].id, RECORD_RUN_SIZE);
	return 0;
}

int result_open_run(
	const char *word, char ret[static RECORD_RUN_SIZE], int *ret_folder, struct err *e)
{
	own(runs) struct runs r = { 0 };
	int ok = runs_open(&r, e);

	ret[0] = '\0';
	*ret_folder = -1;
	if (ok == 0)
		ok = word ? name_run(r.fd, word, true, ret, e) : find_last(r.fd, ret, e);
	if (ok < 0 || !ret[0])
		return ok;
	*ret_folder = record_open_folder(r.fd, ret, e);
	return *ret_folder < 0 ? *ret_folder : 0;
}

int result_each(int (*see)(void *of, struct result *k), void *of, struct result_words *ret,
	size_t *ret_count, struct err *e)
{
	own(runs) struct runs r = { 0 };
	int ok = runs_open(&r, e);

	*ret_count = 0;
	if (ok == 0)
		ok = runs_find(&r, e);
	note_where(&r, ret);
	for (size_t i = 0; ok == 0 && i < r.count; i++) {
		own(result) struct result k;

		result_init(&k);
		++*ret_count;
		ok = result_open(&k, r.fd, r.items[i].id, e);
		if (ok == 0)
			ok = see(of, &k);
	}
	return ok;
}

bool result_is_going_on(int folder)
{
	if (flock(folder, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(folder, LOCK_UN);
	return false;
}
