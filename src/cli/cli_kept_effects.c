/*
 * cli_kept_effects - what a run did, read, or found out where nobody wrote it down.
 *
 * Runs as:  the operator.
 * Reads:    the run's folder; of a run that was interrupted, or goes on, its whole layer.
 * Leaves:   effects.json where an interrupted run has none.
 * Must not: write to the project, or to a run that somebody else has locked.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/copy/change_copy.h"
#include "cli/cli_kept.h"
#include "cli/cli_progress.h"

#define MOST_EFFECTS ((size_t)1 << 30) /* bytes of effects.json */
#define MOST_PROTECT ((size_t)1 << 20)

static int kept_effects_fail(const struct cli_kept *k, const char *what, int num)
{
	cli_complain("cannot read %s of %s %s: %s", what, k->what, k->id, strerror(num));
	return CLI_FAILED;
}

/* 1: read; 0: there are none yet; a status below 0 is -errno, told. */
static int kept_effects_read_effects(struct cli_kept *k)
{
	own_fd int fd = file_open_name(k->folder, RECORD_EFFECTS_FILE, O_RDONLY | O_NOCTTY);
	own_free char *bytes = NULL;
	struct err e = { 0 };
	size_t n = 0;
	int r;

	if (fd == -ENOENT)
		return 0;
	r = fd < 0 ? fd : file_read_all(fd, MOST_EFFECTS, &bytes, &n);
	if (r < 0)
		return kept_effects_fail(k, RECORD_EFFECTS_FILE, -r), r;
	r = change_effects_read(bytes, n, &k->effects, &e);
	if (r < 0)
		cli_complain_about(&e, "cannot use effects.json of run %s: %s", k->id, e.text);
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
	if (k->base >= 0)
		close(take_fd(&k->base));
	if (tree_remove(k->folder, "base", e) < 0)
		return -EIO;
	if (mkdirat(k->folder, "base", 0700) < 0)
		return err_sys(e, errno, "cannot make a folder");
	k->base = file_open_name(k->folder, "base", O_RDONLY | O_DIRECTORY);
	return 0;
}

static int write_effects(struct cli_kept *k, struct err *e)
{
	own(buf) struct buf out = { .max = MOST_EFFECTS };

	change_effects_print(&k->effects, NULL, NULL, &out);
	return record_write_file(k->folder, RECORD_EFFECTS_FILE, &out, false, e);
}

/* What the keeper does when a run ends whose project was captured by copying it. */
static int finish_in(const struct cli_kept *k, const char *name,
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
static int finish_copy(struct cli_kept *k, const struct change_progress *progress, struct err *e)
{
	/* The project's comes last: by it is seen that there is something to be finished. */
	int r = finish_in(k, "git-layer", progress, e);

	if (r == 0)
		r = finish_in(k, RECORD_LAYER, progress, e);
	if (r < 0)
		return r;
	if (cli_kept_reopen(k) != CLI_OK)
		return err_set(e, ERR_SYS, EIO, "cannot open it");
	if (k->below < 0)
		return err_sys(e, k->below_failure, "cannot open '%s'",
			k->unopened ? k->unopened : "the project");
	return k->layer >= 0;
}

static int kept_effects_scan(struct cli_kept *k)
{
	own(cli_progress) struct cli_progress progress = cli_progress_begin(k->cli);
	struct change_scan q = { .began = k->began,
		.held = k->held,
		.held_count = k->held_count,
		.progress = cli_progress_of(&progress) };
	/* What is found is for now: nobody will ask for it again. */
	bool is_fleeting = k->is_going_on || (k->is_session && !k->is_locked);
	static const char same[] = "cannot find out what the run changed: ";
	struct err e = { 0 };
	int r = k->has_copy ? finish_copy(k, &q.progress, &e) : 1;

	if (r == 0)
		return cli_kept_remove(k);
	if (r > 0)
		r = is_fleeting ? 0 : make_base(k, &e);
	q.below = k->below;
	q.layer = k->layer;
	q.git = cli_kept_git(k);
	q.base = is_fleeting ? -1 : k->base;
	if (r == 0)
		r = change_scan(&q, &k->effects, &e);
	if (r == 0 && !is_fleeting && !k->is_session && k->effects.count == 0)
		return cli_kept_remove(k);
	if (r == 0 && !is_fleeting && !k->is_session)
		r = write_effects(k, &e);
	if (r == 0)
		return CLI_OK;
	cli_complain_about(&e, "cannot find out what %s %s changed: %s", k->what, k->id,
		e.text + (str_starts(e.text, same) ? strlen(same) : 0));
	return CLI_FAILED;
}

/* Nobody wrote the effects down: the run goes on, or its keeper did not live to. */
static int kept_effects_find_effects(struct cli_kept *k)
{
	bool was_locked = k->is_locked;
	int status, r;

	if (cli_kept_check_below(k) != CLI_OK)
		return CLI_FAILED;
	if (!was_locked && cli_kept_try_lock(k) < 0) {
		k->is_going_on = true;
		if (!k->has_copy)
			return kept_effects_scan(k);
		cli_complain(
			"%s %s is still going on, on a copy of the project: what it changed is "
			"known when it has ended",
			k->what, k->id);
		return CLI_NO;
	}
	/* Its keeper may have ended between the two looks. */
	r = cli_kept_reopen(k) == CLI_OK ? kept_effects_read_effects(k) : -EIO;
	k->was_interrupted = r == 0 && !k->is_session;
	status = r == 0 ? kept_effects_scan(k) : r < 0 ? CLI_FAILED : CLI_OK;
	if (!was_locked)
		cli_kept_unlock(k);
	return status;
}

int cli_kept_load(struct cli_kept *k)
{
	int r = read_protected(k);

	if (r < 0)
		return kept_effects_fail(k, "the protected paths", -r);
	r = kept_effects_read_effects(k);
	if (r < 0)
		return CLI_FAILED;
	return r > 0 || !cli_kept_has_layer(k) ? CLI_OK : kept_effects_find_effects(k);
}
