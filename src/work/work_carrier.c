/*
 * work_carrier - takes the effects in turns, and git's state as a whole.
 *
 * Runs as:     part of work_apply.
 * Enters with: the turns in their order; the journal on the disk.
 * Leaves:      a verdict on each effect that was reached.
 * Must not:    put a ref where one of its objects could not be put; half of a repository's state.
 */
#include "work/work_carrier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"

#define OFTEN 100 /* how many between two words of progress */
#define WHOLE "git's state is taken as a whole, and another part of it conflicts"

/* Beyond the verdicts: a folder that is there, and gets its mode at the end. */
#define LATE (WORK_UNDECIDED + 1)

static bool is_over(struct work_carrier *c)
{
	const struct work_apply *q = c->job.q;

	if (!c->ret->was_stopped && q->is_stopped && q->is_stopped(q->of))
		c->ret->was_stopped = true;
	return c->failure || c->ret->was_stopped;
}

/* --- verdicts --- */

static void finish(struct work_carrier *c, const struct work_put *p)
{
	const struct work_apply *q = c->job.q;

	if (p->verdict == WORK_UNDECIDED)
		return; /* not reached */
	c->verdicts[p->index] = (uint8_t)p->verdict;
	c->ret->counts[p->verdict]++;
	c->ret->implied[p->verdict] += p->x->is_implied;
	if (work_is_fatal(p->error) && !c->failure)
		c->failure = err_set(
			c->e, ERR_SYS, p->error, "cannot apply '%.200s': %s", p->x->path, p->why);
	if (q->tell && (p->verdict != WORK_APPLIED || *p->why))
		q->tell(q->of, p->x, p->verdict, *p->why ? p->why : NULL);
	if (++c->done % OFTEN == 0 && q->progress.tell)
		q->progress.tell(q->progress.of, "applied", c->done, c->count);
}

void work_carrier_decide(
	struct work_carrier *c, const struct work_effect *x, enum work_verdict v, const char *why)
{
	struct work_put p = { .x = x, .index = (size_t)(x - c->job.x->items) };

	if (c->verdicts[p.index] != WORK_UNDECIDED)
		return;
	work_put_decide(&p, v, "%s", why);
	finish(c, &p);
}

/* What is never taken, whatever the host has. */
static void decide_early(struct work_put *p)
{
	const struct work_effect *x = p->x;

	if (!work_is_path(x->path) || (x->from && !work_is_path(x->from)))
		work_put_decide(p, WORK_FAILED, "this is no path below the project");
	else if (x->mark == WORK_LOCK)
		work_put_decide(
			p, WORK_NOT_TAKEN, "a lock of git's: it belongs to one running command");
	else if (x->after.type == WORK_SPECIAL)
		work_put_decide(p, WORK_NOT_TAKEN, "neither a file, a folder nor a link");
	else if (x->after.type == WORK_FILE && !x->after.has_hash)
		work_put_decide(
			p, WORK_NOT_TAKEN, "%s", x->note ? x->note : "its content was not read");
	else if (p->git.kind == WORK_GIT_CACHE)
		work_put_decide(p, WORK_NOT_TAKEN, "git makes it again when it needs it");
	else if (p->git.kind == WORK_GIT_OBJECT && x->change == WORK_DELETED)
		work_put_decide(p, WORK_NOT_TAKEN, "an object of git's: its own gc removes them");
	else if (p->git.kind == WORK_GIT_OBJECT && x->change == WORK_CHANGED)
		work_put_decide(p, WORK_NOT_TAKEN, "an object of git's: they never change");
}

/* git writes where its index says, into .git too, and a hook there would run. */
static void decide_index(struct work_job *j, struct work_put *p)
{
	own_fd int fd = -1;
	own_free char *bytes = NULL;
	size_t size = 0;
	int r = -EFBIG;

	if (p->verdict != WORK_UNDECIDED || !p->git.lists_paths || p->x->change == WORK_DELETED ||
		p->x->after.type == WORK_FOLDER)
		return;
	if (p->x->after.type == WORK_FILE) {
		r = fd = work_put_open_layer(j, p->x->path, O_RDONLY | O_NONBLOCK);
		if (fd >= 0)
			r = file_read_all(fd, WORK_GIT_MAX_INDEX, &bytes, &size);
	}
	if (r < 0 && r != -EFBIG)
		work_put_fail_layer(p, -r);
	else if (r < 0 || !work_git_index_is_safe(bytes, size))
		work_put_decide(p, WORK_NOT_TAKEN,
			"an index of git's that names a path in .git or outside the project, or that "
			"bawn cannot read ('git reset' makes it anew)");
}

static struct work_put *add(struct work_carrier *c, const struct work_effect *x)
{
	struct work_put *p = work_batch_add(&c->batch, x);

	decide_early(p);
	decide_index(&c->job, p);
	if (c->job.q->is_dry)
		work_foresee_folder(c, p);
	return p;
}

/* --- steps --- */

/* One effect by itself; the folders it needs stay open for the next ones. */
static struct work_put *begin_one(struct work_carrier *c, const struct work_effect *x)
{
	if (work_batch_is_full(&c->batch))
		work_batch_clear(&c->batch);
	return add(c, x);
}

static void end_one(struct work_carrier *c, struct work_put *p)
{
	finish(c, p);
	if (p->host >= 0)
		close(take_fd(&p->host));
	c->batch.count = 0;
}

static void make_folders(struct work_carrier *c, const struct work_turn *turns, size_t count)
{
	for (size_t i = 0; i < count && !is_over(c); i++) {
		const struct work_effect *x = work_carrier_effect(c, &turns[i]);
		struct work_put *p;

		if (x->after.type != WORK_FOLDER || c->verdicts[turns[i].index] != WORK_UNDECIDED)
			continue;
		p = begin_one(c, x);
		if (p->verdict == WORK_UNDECIDED)
			work_put_make_folder(&c->job, p);
		if (p->verdict == WORK_UNDECIDED)
			c->verdicts[turns[i].index] = LATE;
		end_one(c, p);
	}
	work_batch_clear(&c->batch);
}

/* Those whose mode would have kept us from putting things into them. */
static void finish_folders(struct work_carrier *c, const struct work_turn *turns, size_t count)
{
	for (size_t i = count; i-- > 0;) {
		uint8_t *verdict = &c->verdicts[turns[i].index];
		struct work_put *p;

		if (*verdict != LATE)
			continue;
		p = begin_one(c, work_carrier_effect(c, &turns[i]));
		*verdict = WORK_UNDECIDED;
		if (work_put_see(p))
			work_put_finish_folder(&c->job, p);
		end_one(c, p);
	}
	work_batch_clear(&c->batch);
}

static void remove_things(struct work_carrier *c, const struct work_turn *turns, size_t count)
{
	for (size_t i = count; i-- > 0 && !is_over(c);) {
		const struct work_effect *x = work_carrier_effect(c, &turns[i]);
		struct work_put *p;

		if (x->change != WORK_DELETED || c->verdicts[turns[i].index] != WORK_UNDECIDED)
			continue;
		p = begin_one(c, x);
		if (c->job.q->is_dry)
			work_foresee_removal(c, p);
		if (p->verdict == WORK_UNDECIDED)
			work_put_look_removal(&c->job, p);
		if (c->job.q->is_dry)
			work_put_foresee(&c->job, p);
		work_put_remove(&c->job, p);
		end_one(c, p);
	}
	work_batch_clear(&c->batch);
}

static void run_batch(struct work_carrier *c)
{
	int r = work_batch_run(&c->batch);

	for (size_t i = 0; i < c->batch.count; i++)
		finish(c, &c->batch.puts[i]);
	work_batch_clear(&c->batch);
	if (r < 0 && !c->failure)
		c->failure = err_sys(c->e, -r, "cannot write to the project's file system");
}

/* Files and links; with `is_late` those that replace a folder, which is empty by then. */
static void put_files(
	struct work_carrier *c, const struct work_turn *turns, size_t count, bool is_late)
{
	for (size_t i = 0; i < count && !is_over(c); i++) {
		const struct work_effect *x = work_carrier_effect(c, &turns[i]);
		struct work_put *p;

		if (x->after.type == WORK_FOLDER || x->change == WORK_DELETED ||
			(x->before.type == WORK_FOLDER) != is_late ||
			c->verdicts[turns[i].index] != WORK_UNDECIDED)
			continue;
		p = add(c, x);
		if (is_late && c->job.q->is_dry)
			work_foresee_removal(c, p);
		if (work_batch_is_full(&c->batch))
			run_batch(c);
	}
	run_batch(c);
}

/* --- repositories --- */

static bool is_left(const struct work_carrier *c, const struct work_turn *turn)
{
	return c->repositories.is_left[c->repositories.of[turn->index]];
}

/* The state of the repository that it is in stays as it is. */
static void leave_repository(struct work_carrier *c, const struct work_turn *turn)
{
	uint32_t number = c->repositories.of[turn->index];

	if (number)
		c->repositories.is_left[number] = true;
}

static void leave_group(struct work_carrier *c, const struct work_turn *turns, size_t count)
{
	leave_repository(c, turns);
	for (size_t i = 0; i < count; i++)
		work_carrier_decide(c, work_carrier_effect(c, &turns[i]), WORK_CONFLICT, WHOLE);
}

/* Does nothing on the host stand in the way of any of them? */
static bool can_take_all(struct work_carrier *c, const struct work_turn *turns, size_t count)
{
	const struct work_put *conflict = NULL;

	for (size_t i = 0; i < count && !conflict; i++) {
		add(c, work_carrier_effect(c, &turns[i]));
		if (i + 1 == count || work_batch_is_full(&c->batch)) {
			conflict = work_batch_find_conflict(&c->batch);
			if (conflict)
				finish(c, conflict);
			work_batch_clear(&c->batch);
		}
	}
	return !conflict;
}

static bool has_conflict(const struct work_carrier *c, const struct work_turn *turns, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t verdict = c->verdicts[turns[i].index];

		if (verdict == WORK_CONFLICT || verdict == WORK_FAILED)
			return true;
	}
	return false;
}

/* --- all of them --- */

static void run_group(struct work_carrier *c, const struct work_turn *turns, size_t count)
{
	bool is_state = turns->kind == WORK_GIT_STATE;

	if (is_state && (is_left(c, turns) || !can_take_all(c, turns, count)))
		leave_group(c, turns, count);
	for (size_t i = 0; turns->kind == WORK_GIT_REST && i < count; i++)
		if (is_left(c, &turns[i]) && work_carrier_effect(c, &turns[i])->mark != WORK_HELD)
			work_carrier_decide(
				c, work_carrier_effect(c, &turns[i]), WORK_CONFLICT, WHOLE);
	c->batch.is_together = is_state;
	make_folders(c, turns, count);
	put_files(c, turns, count, false);
	if (is_state && !is_over(c) && has_conflict(c, turns, count))
		leave_group(c, turns, count);
	remove_things(c, turns, count);
	put_files(c, turns, count, true);
	finish_folders(c, turns, count);
	/* Refs without their objects would be worse than none. */
	for (size_t i = 0; turns->kind == WORK_GIT_OBJECT && i < count; i++)
		if (has_conflict(c, &turns[i], 1))
			leave_repository(c, &turns[i]);
}

int work_carrier_run(struct work_carrier *c)
{
	int r;

	for (size_t i = 0, n; i < c->count && !is_over(c); i += n) {
		n = work_turns_group(c->job.x, c->turns + i, c->count - i);
		run_group(c, c->turns + i, n);
	}
	r = c->job.needs_sync ? work_job_sync(&c->job) : 0;
	if (r < 0 && !c->failure)
		c->failure = err_sys(c->e, -r, "cannot write to the project's file system");
	return c->failure;
}
