/*
 * cli_kept - what is kept of one run: opened, locked, removed.
 *
 * Runs as:  the operator.
 * Must not: remove anything of a run that is not locked.
 */
#include "cli/cli_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/tree.h"

#define MOST_PATHS ((size_t)64 << 20)
#define GONE       "layer.gone" /* a layer that is being removed */

/* What had a session's workspace mounted goes a moment after the last command does. */
#define SESSION_TRIES 50

void cli_kept_init(struct cli_kept *k, const struct cli *cli)
{
	memset(k, 0, sizeof(*k));
	k->cli = cli;
	k->what = "run";
	k->lock = k->folder = k->layer = k->below = k->base = k->git.layer = k->git.below = -1;
	arena_init(&k->arena, MOST_PATHS);
	change_effects_init(&k->effects);
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
	close_fd(&k->lock);
	change_effects_done(&k->effects);
	arena_done(&k->arena);
}

static int kept_fail(const struct cli_kept *k, const char *what, int num)
{
	cli_complain("cannot read %s of %s %s: %s", what, k->what, k->id, strerror(num));
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
		return kept_fail(k, "the project", n < 0 ? errno : EINVAL);
	*ret_time = st.st_mtim;
	*ret_fd = file_open_real(ret_path, O_RDONLY | O_DIRECTORY);
	if (*ret_fd < 0) {
		k->unopened = ret_path;
		k->below_failure = -*ret_fd;
	}
	return CLI_OK;
}

static int kept_read_project(struct cli_kept *k)
{
	struct timespec later;
	int status = open_linked(k, RECORD_PROJECT_LINK, k->project, &k->began, &k->below);

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
	cli_complain("cannot open '%s' of %s %s: %s", k->unopened ? k->unopened : "the project",
		k->what, k->id, strerror(k->below_failure));
	return CLI_FAILED;
}

bool cli_kept_has_layer(const struct cli_kept *k)
{
	return k->layer >= 0 || k->has_copy;
}

const struct change_git_tops *cli_kept_git(const struct cli_kept *k)
{
	return k->git.layer >= 0 ? &k->git : NULL;
}

static bool has_file(const struct cli_kept *k, const char *name)
{
	struct stat st;

	return fstatat(k->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int kept_open_layer(struct cli_kept *k)
{
	/* As long as one of these is there, a layer is not only what the run wrote: change_copy.h.
	 */
	static const char *const unfinished[] = { "layer/copy", "layer/list", "layer/list.new",
		"git-layer/list", "git-layer/list.new" };
	int failure;

	close_fd(&k->layer);
	close_fd(&k->git.layer);
	close_fd(&k->base);
	k->has_copy = false;
	for (size_t i = 0; i < COUNT_OF(unfinished); i++)
		k->has_copy |= has_file(k, unfinished[i]);
	k->layer = open_inner(k->folder, "layer/upper", &failure);
	if (!failure && k->layer >= 0)
		k->git.layer = open_inner(k->folder, "git-layer/upper", &failure);
	if (failure)
		return kept_fail(k, "the layer", failure);
	k->base = open_inner(k->folder, "base", &failure);
	return failure ? kept_fail(k, "the base", failure) : CLI_OK;
}

int cli_kept_reopen(struct cli_kept *k)
{
	int status;

	close_fd(&k->below);
	close_fd(&k->git.below);
	status = kept_open_layer(k);
	return status == CLI_OK ? kept_read_project(k) : status;
}

int cli_kept_open(struct cli_kept *k, int runs, const char *id)
{
	struct err e = { 0 };

	snprintf(k->id, sizeof(k->id), "%s", id);
	k->folder = record_open_folder(runs, k->id, &e);
	if (k->folder < 0) {
		cli_complain_err(&e);
		return k->folder == -ENOENT ? CLI_NO : CLI_FAILED;
	}
	return cli_kept_reopen(k);
}

int cli_kept_take_workspace(struct cli_kept *k, int *workspace, const char *session)
{
	snprintf(k->id, sizeof(k->id), "%s", session);
	k->what = "session";
	k->is_session = true;
	k->folder = take_fd(workspace);
	k->lock = file_open_name(k->folder, "lock", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (k->lock < 0)
		return kept_fail(k, "the lock", -k->lock);
	return cli_kept_reopen(k);
}

/* --- the lock --- */

int cli_kept_try_lock(const struct cli_kept *k)
{
	const struct timespec wait = { .tv_nsec = 5000000 };
	int tries = k->is_session ? SESSION_TRIES : 1;

	while (flock(k->lock >= 0 ? k->lock : k->folder, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || --tries == 0)
			return -errno;
		nanosleep(&wait, NULL);
	}
	return 0;
}

void cli_kept_unlock(const struct cli_kept *k)
{
	flock(k->lock >= 0 ? k->lock : k->folder, LOCK_UN);
}

int cli_kept_lock(struct cli_kept *k)
{
	int r = cli_kept_try_lock(k);

	if (r == 0) {
		k->is_locked = true;
		/* Whoever had it before may have applied or discarded everything. */
		return cli_kept_reopen(k);
	}
	if (r != -EWOULDBLOCK)
		return kept_fail(k, "the lock", -r);
	if (k->is_session) {
		cli_complain("cannot %s session %s: a command is running in it",
			cli_command_word(k->cli->command), k->id);
		cli_hint("wait for it, or: bawn session stop %s", k->id);
	} else if (has_file(k, RECORD_EFFECTS_FILE)) {
		cli_complain("cannot %s run %s: another bawn is working on it",
			cli_command_word(k->cli->command), k->id);
		cli_hint("try again when it is done");
	} else {
		cli_complain("cannot %s run %s: it is still running", k->cli->command->name, k->id);
		cli_hint("try again when it has ended");
	}
	return CLI_NO;
}

const char *cli_kept_state(const struct cli_kept *k)
{
	if (k->is_going_on)
		return "it is still going on, and this is what it wrote so far";
	return k->was_interrupted ? "it was interrupted, and this is what it wrote until then" : "";
}

/* --- the end --- */

/* A session goes on, from the project as it is now: what changes there later it did not see. */
static int begin_anew(const struct cli_kept *k)
{
	struct timespec now[2];

	clock_gettime(CLOCK_REALTIME, &now[0]);
	now[1] = now[0];
	if (utimensat(k->folder, RECORD_PROJECT_LINK, now, AT_SYMLINK_NOFOLLOW) < 0 &&
		errno != ENOENT)
		return -errno;
	clock_pass_mark(&now[0]);
	return 0;
}

int cli_kept_remove(struct cli_kept *k)
{
	static const char *const names[] = { GONE, "git-layer", "base" };
	struct err e = { 0 };

	close_fd(&k->layer);
	close_fd(&k->git.layer);
	close_fd(&k->base);
	k->has_copy = false;
	/* One step: half a layer would be taken for what the run did. */
	if (tree_remove(k->folder, GONE, &e) == 0 &&
		renameat(k->folder, RECORD_LAYER, k->folder, GONE) < 0 && errno != ENOENT)
		err_sys(&e, errno, "cannot rename the layer");
	for (size_t i = 0; i < COUNT_OF(names) && e.kind == ERR_NONE; i++)
		tree_remove(k->folder, names[i], &e);
	if (e.kind == ERR_NONE && k->is_session && begin_anew(k) < 0)
		err_sys(&e, errno, "cannot update the session's timestamp");
	if (e.kind == ERR_NONE)
		return CLI_OK;
	cli_complain_about(&e, "cannot remove the changes of %s %s: %s", k->what, k->id, e.text);
	cli_hint("try again: bawn %sdiscard %s", k->is_session ? "session " : "", k->id);
	return CLI_FAILED;
}
