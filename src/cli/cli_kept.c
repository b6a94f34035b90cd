/*
 * cli_kept - what is kept of one run: opened, locked, read, removed.
 *
 * Runs as:  the operator.
 * Reads:    the run's folder; of a run that was interrupted its whole layer.
 * Leaves:   effects.json where an interrupted run has none.
 * Must not: write to the project, or to a run that somebody else has locked.
 */
#include "cli/cli_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/tree.h"
#include "cli/cli_progress.h"
#include "work/work_copy.h"

#define MOST_EFFECTS ((size_t)1 << 30) /* bytes of effects.json */
#define MOST_PROTECT ((size_t)1 << 20)
#define MOST_PATHS   ((size_t)64 << 20)
#define GONE         "layer.gone" /* a layer that is being removed */

void cli_kept_init(struct cli_kept *k, const struct cli *cli)
{
	memset(k, 0, sizeof(*k));
	k->cli = cli;
	k->folder = k->layer = k->below = k->base = k->git.layer = k->git.below = -1;
	arena_init(&k->arena, MOST_PATHS);
	work_effects_init(&k->effects);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void cli_kept_done(struct cli_kept *k)
{
	close_fd(&k->layer);
	close_fd(&k->below);
	close_fd(&k->git.layer);
	close_fd(&k->git.below);
	close_fd(&k->base);
	close_fd(&k->folder);
	work_effects_done(&k->effects);
	arena_done(&k->arena);
}

static int fail(const struct cli_kept *k, const char *what, int num)
{
	cli_complain("cannot read %s of run %s: %s", what, k->id, strerror(num));
	return CLI_FAILED;
}

/* --- opening --- */

/* -1 where it is not there; whatever else is wrong is in errno's form in *ret_failure. */
static int open_inner(int folder, const char *path, int *ret_failure)
{
	int fd = file_open_beneath(folder, path, O_RDONLY | O_DIRECTORY, 0);

	*ret_failure = fd < 0 && fd != -ENOENT ? -fd : 0;
	return fd < 0 ? -1 : fd;
}

/* Opens the folder that a link of the run's names; there may be none. A status. */
static int open_linked(struct cli_kept *k, const char *name, char ret_path[static PATH_MAX],
	struct timespec *ret_time, int *ret_fd)
{
	ssize_t n = readlinkat(k->folder, name, ret_path, PATH_MAX - 1);
	struct stat st;

	if (n < 0 && errno == ENOENT)
		return CLI_OK;
	if (n < 0 || ret_path[0] != '/' || fstatat(k->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(k, "the project", n < 0 ? errno : EINVAL);
	*ret_time = st.st_mtim;
	*ret_fd = file_open_real(ret_path, O_RDONLY | O_DIRECTORY);
	if (*ret_fd < 0) {
		k->unopened = ret_path;
		k->below_failure = -*ret_fd;
	}
	return CLI_OK;
}

static int read_project(struct cli_kept *k)
{
	struct timespec later;
	int status = open_linked(k, "project", k->project, &k->began, &k->below);

	if (status == CLI_OK && k->git.layer >= 0)
		status = open_linked(k, "git", k->git_path, &later, &k->git.below);
	/* One without the other would be half of what the run did. */
	if (k->git.layer >= 0 && k->git.below < 0)
		close_fd(&k->below);
	return status;
}

int cli_kept_check_below(const struct cli_kept *k)
{
	if (k->below >= 0)
		return CLI_OK;
	cli_complain("cannot open '%s' of run %s: %s", k->unopened ? k->unopened : "the project",
		k->id, strerror(k->below_failure));
	return CLI_FAILED;
}

bool cli_kept_has_layer(const struct cli_kept *k)
{
	return k->layer >= 0 || k->has_copy;
}

const struct work_git_tops *cli_kept_git(const struct cli_kept *k)
{
	return k->git.layer >= 0 ? &k->git : NULL;
}

static bool has_file(const struct cli_kept *k, const char *name)
{
	struct stat st;

	return fstatat(k->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_layer(struct cli_kept *k)
{
	int failure;

	close_fd(&k->layer);
	close_fd(&k->git.layer);
	close_fd(&k->base);
	k->has_copy = has_file(k, "layer/copy");
	k->layer = open_inner(k->folder, "layer/upper", &failure);
	if (!failure && k->layer >= 0)
		k->git.layer = open_inner(k->folder, "git-layer/upper", &failure);
	if (failure)
		return fail(k, "the layer", failure);
	k->base = open_inner(k->folder, "base", &failure);
	return failure ? fail(k, "the base", failure) : CLI_OK;
}

int cli_kept_open(struct cli_kept *k, int runs, const char *id)
{
	struct err e = { 0 };
	int status;

	snprintf(k->id, sizeof(k->id), "%s", id);
	k->folder = record_open_folder(runs, k->id, &e);
	if (k->folder < 0) {
		cli_complain("%s", e.text);
		return k->folder == -ENOENT ? CLI_NO : CLI_FAILED;
	}
	status = open_layer(k);
	return status == CLI_OK ? read_project(k) : status;
}

/* --- the lock --- */

int cli_kept_lock(struct cli_kept *k)
{
	if (flock(k->folder, LOCK_EX | LOCK_NB) == 0) {
		k->is_locked = true;
		/* Whoever had it before may have applied or discarded everything. */
		return open_layer(k);
	}
	if (errno != EWOULDBLOCK)
		return fail(k, "the lock", errno);
	if (has_file(k, "effects.json"))
		cli_complain("another bawn is at work on run %s; try again when it is done", k->id);
	else
		cli_complain("run %s is still going on: %s it when it has ended", k->id,
			k->cli->command->name);
	return CLI_NO;
}

/* --- the effects --- */

/* 1: read; 0: there are none yet; a status below 0 is -errno, told. */
static int read_effects(struct cli_kept *k)
{
	own_fd int fd = file_open_name(k->folder, "effects.json", O_RDONLY | O_NOCTTY);
	own_free char *bytes = NULL;
	struct err e = { 0 };
	size_t n = 0;
	int r;

	if (fd == -ENOENT)
		return 0;
	r = fd < 0 ? fd : file_read_all(fd, MOST_EFFECTS, &bytes, &n);
	if (r < 0)
		return fail(k, "effects.json", -r), r;
	r = work_effects_read(bytes, n, &k->effects, &e);
	if (r < 0)
		cli_complain("cannot use effects.json of run %s: %s", k->id, e.text);
	return r < 0 ? r : 1;
}

/* What the operator protects, as the keeper wrote it down; owned by the arena. */
static int read_protected(struct cli_kept *k)
{
	own_fd int fd = file_open_name(k->folder, "protect", O_RDONLY | O_NOCTTY);
	own_free char *bytes = NULL;
	const char **held;
	size_t n = 0, count = 0;
	char *text;
	int r;

	if (fd == -ENOENT)
		return 0;
	r = fd < 0 ? fd : file_read_all(fd, MOST_PROTECT, &bytes, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		count += bytes[i] == '\0';
	text = arena_copy(&k->arena, bytes, n);
	held = arena_array(&k->arena, count + 1, sizeof(*held));
	if (!text || !held)
		return -ENOMEM;
	for (; k->held_count < count; text += strlen(text) + 1)
		held[k->held_count++] = text;
	k->held = held;
	return 0;
}

/* A folder for the base, without what an interrupted scan left in it. */
static int make_base(struct cli_kept *k, struct err *e)
{
	close_fd(&k->base);
	if (tree_remove(k->folder, "base", e) < 0)
		return -EIO;
	if (mkdirat(k->folder, "base", 0700) < 0)
		return err_set(e, ERR_SYS, errno, "cannot make a folder: %s", strerror(errno));
	k->base = file_open_name(k->folder, "base", O_RDONLY | O_DIRECTORY);
	return 0;
}

static int write_effects(struct cli_kept *k, struct err *e)
{
	own(buf) struct buf out = { .max = MOST_EFFECTS };

	work_effects_print(&k->effects, NULL, NULL, &out);
	return record_write_file(k->folder, "effects.json", &out, e);
}

/* What the keeper does when a run ends whose project was captured by copying it. */
static int finish_in(const struct cli_kept *k, const char *name,
	const struct work_progress *progress, struct err *e)
{
	own_fd int layer = file_open_name(k->folder, name, O_RDONLY | O_DIRECTORY);

	if (layer == -ENOENT)
		return 0;
	if (layer < 0)
		return err_set(e, ERR_SYS, -layer, "cannot open its layer: %s", strerror(-layer));
	return work_copy_finish(layer, progress, e);
}

/* 1: there is a layer now; 0: no command was ever started on the copy. */
static int finish_copy(struct cli_kept *k, const struct work_progress *progress, struct err *e)
{
	/* The project's comes last: by it is seen that there is something to be finished. */
	int r = finish_in(k, "git-layer", progress, e);

	if (r == 0)
		r = finish_in(k, "layer", progress, e);
	if (r < 0)
		return r;
	close_fd(&k->below);
	if (open_layer(k) != CLI_OK || read_project(k) != CLI_OK)
		return err_set(e, ERR_SYS, EIO, "it cannot be opened");
	if (k->below < 0)
		return err_set(e, ERR_SYS, k->below_failure, "cannot open '%s': %s",
			k->unopened ? k->unopened : "the project", strerror(k->below_failure));
	return k->layer >= 0;
}

static int scan(struct cli_kept *k)
{
	own(cli_progress) struct cli_progress progress = cli_progress_begin(k->cli);
	struct work_scan q = { .began = k->began,
		.held = k->held,
		.held_count = k->held_count,
		.progress = cli_progress_of(&progress) };
	struct err e = { 0 };
	int r = k->has_copy ? finish_copy(k, &q.progress, &e) : 1;

	if (r == 0)
		return cli_kept_remove(k);
	if (r > 0)
		r = k->is_going_on ? 0 : make_base(k, &e);
	q.below = k->below;
	q.layer = k->layer;
	q.git = cli_kept_git(k);
	q.base = k->is_going_on ? -1 : k->base;
	if (r == 0)
		r = work_scan(&q, &k->effects, &e);
	if (r == 0 && !k->is_going_on && k->effects.count == 0)
		return cli_kept_remove(k);
	if (r == 0 && !k->is_going_on)
		r = write_effects(k, &e);
	if (r == 0)
		return CLI_OK;
	cli_complain("cannot find out what run %s changed: %s", k->id, e.text);
	return CLI_FAILED;
}

/* Nobody wrote the effects down: the run goes on, or its keeper did not live to. */
static int find_effects(struct cli_kept *k)
{
	bool was_locked = k->is_locked;
	int status, r;

	if (cli_kept_check_below(k) != CLI_OK)
		return CLI_FAILED;
	if (!was_locked && flock(k->folder, LOCK_EX | LOCK_NB) < 0) {
		k->is_going_on = true;
		if (!k->has_copy)
			return scan(k);
		cli_complain(
			"run %s is still going on, on a copy of the project: what it changed is "
			"known when it has ended",
			k->id);
		return CLI_NO;
	}
	/* Its keeper may have ended between the two looks. */
	r = read_effects(k);
	k->was_interrupted = r == 0;
	status = r == 0 ? scan(k) : r < 0 ? CLI_FAILED : CLI_OK;
	if (!was_locked)
		flock(k->folder, LOCK_UN);
	return status;
}

int cli_kept_load(struct cli_kept *k)
{
	int r = read_protected(k);

	if (r < 0)
		return fail(k, "the protected paths", -r);
	r = read_effects(k);
	if (r < 0)
		return CLI_FAILED;
	return r > 0 || !cli_kept_has_layer(k) ? CLI_OK : find_effects(k);
}

const char *cli_kept_state(const struct cli_kept *k)
{
	if (k->is_going_on)
		return "it is still going on, and this is what it wrote so far";
	return k->was_interrupted ? "it was interrupted, and this is what it wrote until then" : "";
}

/* --- the end --- */

int cli_kept_remove(struct cli_kept *k)
{
	static const char *const names[] = { GONE, "git-layer", "base" };
	struct err e = { 0 };

	close_fd(&k->layer);
	close_fd(&k->git.layer);
	close_fd(&k->base);
	/* One step: half a layer would be taken for what the run did. */
	if (tree_remove(k->folder, GONE, &e) == 0 &&
		renameat(k->folder, "layer", k->folder, GONE) < 0 && errno != ENOENT)
		err_set(&e, ERR_SYS, errno, "cannot rename the layer: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && e.kind == ERR_NONE; i++)
		tree_remove(k->folder, names[i], &e);
	if (e.kind == ERR_NONE)
		return CLI_OK;
	cli_complain("cannot remove what run %s wrote: %s; bawn discard %s tries again", k->id,
		e.text, k->id);
	return CLI_FAILED;
}
