/*
 * result - what a run or a session left: opened, locked, its effects read or found out, removed.
 *
 * Runs as:  the operator.
 * Reads:    the run's folder; of a run that was interrupted, or goes on, its whole layer.
 * Leaves:   effects.json where an interrupted run has none.
 * Must not: write to the project, or to a run that somebody else has locked; remove anything of a
 *           run that is not locked.
 */
#include "result/result.h"

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
#include "base/str.h"
#include "base/tree.h"
#include "change/copy/change_copy.h"
#include "change/patch/change_patch.h"
#include "keeper/keeper.h"

#define MOST_EFFECTS ((size_t)1 << 30) /* bytes of effects.json */
#define MOST_PROTECT ((size_t)1 << 20)
#define MOST_PATHS   ((size_t)64 << 20)

/* The workspace holder exits a moment after the last command. */
#define SESSION_TRIES 50

void result_init(struct result *k)
{
	memset(k, 0, sizeof(*k));
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

void result_done(struct result *k)
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

static int fail_reading(const struct result *k, const char *what, int num, struct err *e)
{
	return err_sys(e, num, "cannot read %s of %s %s", what, k->what, k->id);
}

/* --- opening --- */

/* -1 where it is not there; whatever else is wrong is in errno's form in *ret_failure. */
static int open_inner(int folder, const char *path, int *ret_failure)
{
	int fd = file_open_beneath(folder, path, O_RDONLY | O_DIRECTORY, 0);

	*ret_failure = fd < 0 && fd != -ENOENT ? -fd : 0;
	return fd < 0 ? -1 : fd;
}

/* Opens the folder that a link of the run's names; there may be none. */
static int open_linked(struct result *k, const char *name, char ret_path[static PATH_MAX],
	struct timespec *ret_time, int *ret_fd, struct err *e)
{
	ssize_t n = readlinkat(k->folder, name, ret_path, PATH_MAX - 1);
	struct stat st;

	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0 || ret_path[0] != '/' || fstatat(k->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_reading(k, "the project", n < 0 ? errno : EINVAL, e);
	*ret_time = st.st_mtim;
	*ret_fd = file_open_real(ret_path, O_RDONLY | O_DIRECTORY);
	if (*ret_fd < 0) {
		k->unopened = ret_path;
		k->below_failure = -*ret_fd;
	}
	return 0;
}

static int read_project(struct result *k, struct err *e)
{
	struct timespec later;
	int r = open_linked(k, RECORD_PROJECT_LINK, k->project, &k->began, &k->below, e);

	if (r == 0 && k->git.layer >= 0)
		r = open_linked(k, "git", k->git_path, &later, &k->git.below, e);
	/* One without the other would be half of what the run did. */
	if (k->git.layer >= 0 && k->git.below < 0)
		close_fd(&k->below);
	return r;
}

int result_check_below(const struct result *k, struct err *e)
{
	if (k->below >= 0)
		return 0;
	return err_sys(e, k->below_failure, "cannot open '%s' of %s %s",
		k->unopened ? k->unopened : "the project", k->what, k->id);
}

bool result_has_layer(const struct result *k)
{
	return k->layer >= 0 || k->has_copy;
}

const struct change_git_tops *result_git(const struct result *k)
{
	return k->git.layer >= 0 ? &k->git : NULL;
}

static bool has_file(const struct result *k, const char *name)
{
	struct stat st;

	return fstatat(k->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_layer(struct result *k, struct err *e)
{
	/*
	 * As long as one of these is there, a layer is not only what the run wrote: change_copy.h.
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
		return fail_reading(k, "the layer", failure, e);
	k->base = open_inner(k->folder, "base", &failure);
	return failure ? fail_reading(k, "the base", failure, e) : 0;
}

/* Somebody else may have changed it. */
static int reopen(struct result *k, struct err *e)
{
	int r;

	close_fd(&k->below);
	close_fd(&k->git.below);
	r = open_layer(k, e);
	return r == 0 ? read_project(k, e) : r;
}

int result_open(struct result *k, int runs, const char *id, struct err *e)
{
	snprintf(k->id, sizeof(k->id), "%s", id);
	k->folder = record_open_folder(runs, k->id, e);
	return k->folder < 0 ? k->folder : reopen(k, e);
}

int result_take_workspace(struct result *k, int *workspace, const char *session, struct err *e)
{
	snprintf(k->id, sizeof(k->id), "%s", session);
	k->what = "session";
	k->is_session = true;
	k->folder = take_fd(workspace);
	k->lock = file_open_name(k->folder, "lock", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (k->lock < 0)
		return fail_reading(k, "the lock", -k->lock, e);
	return reopen(k, e);
}

/* --- the lock --- */

static int try_lock(const struct result *k)
{
	const struct timespec wait = { .tv_nsec = 5000000 };
	int tries = k->is_session ? SESSION_TRIES : 1;

	while (flock(k->lock >= 0 ? k->lock : k->folder, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || --tries == 0)
			return -errno;
		/* A worker, or bawn mcp, keeps it mounted for the next command. */
		if (k->is_session && tries == SESSION_TRIES - 1)
			keeper_yield_workspace(k->folder);
		nanosleep(&wait, NULL);
	}
	return 0;
}

static void unlock(const struct result *k)
{
	flock(k->lock >= 0 ? k->lock : k->folder, LOCK_UN);
}

int result_lock(struct result *k, const char *verb, struct err *e)
{
	int r = try_lock(k);

	if (r == 0) {
		k->is_locked = true;
		/* The process that had the lock before may have applied or discarded everything. */
		return reopen(k, e);
	}
	if (r != -EWOULDBLOCK)
		return fail_reading(k, "the lock", -r, e);
	if (k->is_session)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EWOULDBLOCK,
				"cannot %s session %s: a command is running in it", verb, k->id),
			"wait for it, or: bawn session stop %s", k->id);
	if (has_file(k, RECORD_EFFECTS_FILE))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EWOULDBLOCK,
				"cannot %s run %s: another bawn is working on it", verb, k->id),
			"try again when it is done");
	return err_hint(e,
		err_set(e, ERR_REFUSED, EWOULDBLOCK, "cannot %s run %s: it is still running", verb,
			k->id),
		"try again when it has ended");
}

const char *result_state(const struct result *k)
{
	if (k->is_going_on)
		return "it is still going on, and this is what it wrote so far";
	return k->was_interrupted ? "it was interrupted, and this is what it wrote until then" : "";
}

/* --- the end --- */

/* A session goes on, from the project as it is now: what changes there later it did not see. */
static int begin_anew(const struct result *k)
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

static void forget_pending(const struct result *k)
{
	own_fd int runs = openat(k->folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (runs >= 0)
		record_forget_pending(runs, k->id);
}

int result_remove(struct result *k, struct err *e)
{
	static const char *const names[] = { RECORD_LAYER_GONE, "git-layer", "base" };

	close_fd(&k->layer);
	close_fd(&k->git.layer);
	close_fd(&k->base);
	k->has_copy = false;
	/* One step: half a layer would be taken for what the run did. */
	if (tree_remove(k->folder, RECORD_LAYER_GONE, e) == 0 &&
		renameat(k->folder, RECORD_LAYER, k->folder, RECORD_LAYER_GONE) < 0 &&
		errno != ENOENT)
		err_sys(e, errno, "cannot rename the layer");
	if (e->kind == ERR_NONE)
		change_clear(k->folder, RECORD_LAYER_GONE "/upper");
	for (size_t i = 0; i < COUNT_OF(names) && e->kind == ERR_NONE; i++)
		tree_remove(k->folder, names[i], e);
	if (e->kind == ERR_NONE && !k->is_session)
		forget_pending(k);
	if (e->kind == ERR_NONE && k->is_session && begin_anew(k) < 0)
		err_sys(e, errno, "cannot update the session's timestamp");
	if (e->kind == ERR_NONE)
		return 0;
	err_prefix(e, "cannot remove the changes of %s %s", k->what, k->id);
	return err_hint(e, e->num > 0 ? -e->num : -EIO, "try again: bawn %sdiscard %s",
		k->is_session ? "session " : "", k->id);
}

/* --- effects --- */

/* 1: read; 0: there are none yet; or -errno. */
static int read_effects(struct result *k, struct err *e)
{
	own_fd int fd = file_open_name(k->folder, RECORD_EFFECTS_FILE, O_RDONLY | O_NOCTTY);
	own_free char *bytes = NULL;
	size_t n = 0;
	int r;

	if (fd == -ENOENT)
		return 0;
	r = fd < 0 ? fd : file_read_all(fd, MOST_EFFECTS, &bytes, &n);
	if (r < 0)
		return fail_reading(k, RECORD_EFFECTS_FILE, -r, e);
	r = change_effects_read(bytes, n, &k->effects, e);
	if (r < 0)
		err_prefix(e, "cannot use effects.json of run %s", k->id);
	return r < 0 ? r : 1;
}

/* Reads the paths that the operator protects, as the keeper wrote them; the arena owns them. */
static int read_protected(struct result *k)
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
	for (; k->protected_count < count; text += strlen(text) + 1)
		held[k->protected_count++] = text;
	k->protected = held;
	return 0;
}

/* A folder for the base, without what an interrupted scan left in it. */
static int make_base(struct result *k, struct err *e)
{
	if (k->base >= 0)
		close(take_fd(&k->base));
	if (tree_remove(k->folder, "base", e) < 0)
		return -EIO;
	if (mkdirat(k->folder, "base", 0700) < 0)
		return err_sys(e, errno, "cannot make a folder");
	k->base = file_open_name(k->folder, "base", O_RDONLY | O_DIRECTORY);
	return 0;
}

static int write_effects(struct result *k, struct err *e)
{
	own(buf) struct buf out = { .max = MOST_EFFECTS };

	change_effects_print(&k->effects, NULL, NULL, &out);
	return record_write_file(k->folder, RECORD_EFFECTS_FILE, &out, false, e);
}

/* Does what the keeper does at the end of a run whose project was captured by copying. */
static int finish_in(const struct result *k, const char *name,
	const struct change_progress *progress, struct err *e)
{
	own_fd int layer = file_open_name(k->folder, name, O_RDONLY | O_DIRECTORY);

	if (layer == -ENOENT)
		return 0;
	if (layer < 0)
		return err_sys(e, -layer, "cannot open its layer");
	return change_copy_finish(layer, progress, e);
}

/* 1: there is a layer now; 0: no command was ever started on the copy. */
static int finish_copy(struct result *k, const struct change_progress *progress, struct err *e)
{
	/* The project's comes last: by it is seen that there is something to be finished. */
	int r = finish_in(k, "git-layer", progress, e);

	if (r == 0)
		r = finish_in(k, RECORD_LAYER, progress, e);
	if (r < 0)
		return r;
	r = reopen(k, e);
	if (r < 0)
		return r;
	if (k->below < 0)
		return err_sys(e, k->below_failure, "cannot open '%s'",
			k->unopened ? k->unopened : "the project");
	return k->layer >= 0;
}

static int scan(struct result *k, const struct change_progress *progress, struct err *e)
{
	struct change_scan q = { .began = k->began,
		.held = k->protected,
		.held_count = k->protected_count,
		.progress = *progress };
	/* The effects are not kept: they may change at any moment. */
	bool is_fleeting = k->is_going_on || (k->is_session && !k->is_locked);
	int r = k->has_copy ? finish_copy(k, &q.progress, e) : 1;

	if (r == 0)
		return result_remove(k, e);
	if (r > 0)
		r = is_fleeting ? 0 : make_base(k, e);
	q.below = k->below;
	q.layer = k->layer;
	q.git = result_git(k);
	q.base = is_fleeting ? -1 : k->base;
	if (r == 0)
		r = change_scan(&q, &k->effects, e);
	if (r == 0 && !is_fleeting && !k->is_session && k->effects.count == 0)
		return result_remove(k, e);
	if (r == 0 && !is_fleeting && !k->is_session)
		r = write_effects(k, e);
	return r;
}

/* The scan's own sentence begins with what is said here. */
static int find_out(struct result *k, const struct change_progress *progress, struct err *e)
{
	static const char same[] = "cannot find out what the run changed: ";
	int r = scan(k, progress, e);

	if (r == 0 || str_starts(e->text, "cannot remove the changes"))
		return r;
	if (str_starts(e->text, same))
		memmove(e->text, e->text + strlen(same), strlen(e->text) + 1 - strlen(same));
	err_prefix(e, "cannot find out what %s %s changed", k->what, k->id);
	return r;
}

/* Finds the effects if effects.json is missing: the run goes on, or its keeper was killed. */
static int find_effects(struct result *k, const struct change_progress *progress, struct err *e)
{
	bool was_locked = k->is_locked;
	int r = result_check_below(k, e);

	if (r < 0)
		return r;
	if (!was_locked && try_lock(k) < 0) {
		k->is_going_on = true;
		if (!k->has_copy)
			return find_out(k, progress, e);
		return err_set(e, ERR_REFUSED, EWOULDBLOCK,
			"cannot tell yet what %s %s changed: it is still going on, on a copy of the "
			"project",
			k->what, k->id);
	}
	/* Its keeper may have ended between the two looks. */
	r = reopen(k, e);
	if (r == 0)
		r = read_effects(k, e);
	k->was_interrupted = r == 0 && !k->is_session;
	if (r == 0)
		r = find_out(k, progress, e);
	if (!was_locked)
		unlock(k);
	return r < 0 ? r : 0;
}

int result_load(struct result *k, const struct change_progress *progress, struct err *e)
{
	static const struct change_progress silent = { 0 };
	int r = read_protected(k);

	if (r < 0)
		return fail_reading(k, "the protected paths", -r, e);
	r = read_effects(k, e);
	if (r < 0)
		return r;
	return r > 0 || !result_has_layer(k) ? 0
					     : find_effects(k, progress ? progress : &silent, e);
}

/* --- paths --- */

bool result_is_chosen(const struct result *k, const struct change_effect *x)
{
	return change_is_chosen(x, k->paths, k->path_count);
}

/* One of the effects is of this path, or below it. */
static bool has_effect(const struct result *k, const char *path)
{
	for (size_t i = 0; i < k->effects.count; i++)
		if (change_effect_is_within(&k->effects.items[i], path))
			return true;
	return false;
}

const char *result_find_unchanged(const struct result *k, size_t *from)
{
	while (*from < k->path_count) {
		const char *path = k->paths[(*from)++];

		if (!has_effect(k, path))
			return path;
	}
	return NULL;
}

/* --- what the host has already --- */

struct looking {
	struct result *k;
	struct result_there *ret;
};

static void note_there(
	void *of, const struct change_effect *x, enum change_verdict v, const char *why)
{
	struct looking *l = of;
	struct result_there *f = l->ret;
	struct result *k = l->k;

	k->is_there[x - k->effects.items] = v == CHANGE_THERE;
	if (v == CHANGE_FAILED && f->unknown++ == 0) {
		f->example = x;
		snprintf(f->why, sizeof(f->why), ": %s", why ? why : "for no known reason");
	}
}

void result_find_there(struct result *k, struct result_there *ret)
{
	struct looking l = { k, ret };
	struct change_apply q = {
		.run = k->id,
		.folder = k->folder,
		.layer = k->layer,
		.below = k->below,
		.git = result_git(k),
		.is_dry = true,
		.takes_held = true,
		.paths = k->paths,
		.path_count = k->path_count,
		.tell = note_there,
		.of = &l,
	};
	struct change_applied result;
	int r;

	if (k->is_going_on)
		return;
	k->is_there = arena_array(&k->arena, k->effects.count, sizeof(*k->is_there));
	if (k->below < 0)
		r = err_sys(&ret->e, k->below_failure, "cannot open '%s'",
			k->unopened ? k->unopened : "the project");
	else if (!k->is_there)
		r = err_set(
			&ret->e, ERR_SYS, ENOMEM, "cannot find out what is applied: out of memory");
	else
		r = change_apply(&q, &k->effects, &result, &ret->e);
	ret->has_failed = r < 0;
	if (r < 0)
		k->is_there = NULL;
}

size_t result_count_there(const struct result *k)
{
	size_t n = 0;

	for (size_t i = 0; k->is_there && i < k->effects.count; i++)
		n += k->is_there[i] && !k->effects.items[i].is_implied;
	return n;
}
