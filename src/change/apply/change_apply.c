/*
 * change_apply - carries the effects of a run out on the host's tree.
 *
 * Runs as:     the operator, after the run; other programs of his may be at work in the tree.
 * Enters with: the top of the tree, open; the layer, in which names and contents are a stranger's;
 *              the effects, found when the run ended.
 * Leaves:      each chosen effect carried out whole, or what was there, and a verdict on each that
 *              was reached; no file of ours, unless it is killed: then the journal names them, and
 *              the next call removes them. In a dry run the verdicts alone.
 * Must not:    change anything outside the tree, or where something is mounted in it: the run has
 *              not seen what lies there; follow a link; replace what it has not compared; put a ref
 *              where one of its objects could not be put, or half of a repository's state.
 *
 * Folders are made first, and files put into them; then what is deleted goes, children first; then
 * comes what takes the place of a folder. The working tree precedes git's own folders, of which the
 * objects precede the refs, and the index is the last: no moment shows a ref without its object.
 *
 * What is resolved is the folder that something is put into, once; all that follows is done by its
 * descriptor. If somebody moves that folder out of the tree meanwhile, it is written to where it is
 * then: it is the same folder.
 */
#include "change/apply/change_put.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/scan/change_scanner.h"

/* Everything that one call of change_apply knows. */
struct change_carrier {
	struct change_job job;
	struct change_batch batch;
	struct change_applied *ret;
	struct change_turn *turns;
	size_t count;
	uint8_t *choices, *verdicts; /* one for each effect */
	struct change_repositories repositories;
	const struct change_effect **moved; /* in a dry run: those with an old name, sorted by it */
	size_t moved_count;
	uint64_t done;
	int failure;
	struct err *e;
};

static inline const struct change_effect *change_carrier_effect(
	const struct change_carrier *c, const struct change_turn *t)
{
	return &c->job.x->items[t->index];
}

#define OFTEN 100 /* how many between two words of progress */
#define WHOLE "git's state is taken as a whole, and another part of it conflicts"

/* Beyond the verdicts: a folder that is there, and gets its mode at the end. */
#define LATE (CHANGE_UNDECIDED + 1)

static bool carrier_is_over(struct change_carrier *c)
{
	const struct change_apply *q = c->job.q;

	if (!c->ret->was_stopped && q->is_stopped && q->is_stopped(q->of))
		c->ret->was_stopped = true;
	return c->failure || c->ret->was_stopped;
}

/* --- a dry run: one effect by itself --- */

static bool can_merge(struct change_job *j, struct change_put *p)
{
	own(buf) struct buf merged = { .max = 3 * CHANGE_MAX_TEXT };
	own_fd int layer =
		change_put_open_layer(j, p->x->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	int r = layer < 0 ? 0 : change_put_open_old(j, p);

	if (layer < 0)
		change_put_fail_layer(p, -layer);
	else if (r < 0)
		change_put_fail_host(p, -r);
	return layer >= 0 && r == 0 && change_put_merge(j, p, layer, &merged);
}

void change_put_foresee(struct change_job *j, struct change_put *p)
{
	bool is_merge = p->step == CHANGE_STEP_MERGE;

	if (p->step == CHANGE_STEP_NONE || (is_merge && !can_merge(j, p)))
		return;
	p->verdict = is_merge ? CHANGE_MERGED : CHANGE_APPLIED;
	p->step = CHANGE_STEP_NONE;
}

/* --- a dry run: with what was foreseen of others --- */

static bool is_applied(const struct change_carrier *c, const struct change_effect *x)
{
	uint8_t verdict = c->verdicts[x - c->job.x->items];

	return verdict == CHANGE_APPLIED || verdict == CHANGE_MERGED || verdict == CHANGE_THERE;
}

static void change_foresee_folder(const struct change_carrier *c, struct change_put *p)
{
	const struct change_effect *folder;

	if (p->verdict != CHANGE_UNDECIDED || p->folder->fd >= 0)
		return;
	folder = change_effect_find(c->job.x, p->path, p->folder->len);
	if (folder && folder->after.type == CHANGE_FOLDER && is_applied(c, folder))
		p->verdict = CHANGE_APPLIED;
}

static int compare_old(const void *a, const void *b)
{
	const struct change_effect *const *x = a, *const *y = b;

	return strcmp((*x)->from, (*y)->from);
}

static int change_foresee_init(struct change_carrier *c)
{
	const struct change_effects *x = c->job.x;

	c->moved = calloc(x->count + 1, sizeof(*c->moved));
	if (!c->moved)
		return -ENOMEM;
	for (size_t i = 0; i < x->count; i++)
		if (x->items[i].from)
			c->moved[c->moved_count++] = &x->items[i];
	qsort(c->moved, c->moved_count, sizeof(const struct change_effect *), compare_old);
	return 0;
}

/* Would nothing have this name any more? */
static bool would_go(const struct change_carrier *c, const char *path)
{
	const struct change_effect key = { .from = path }, *wanted = &key;
	const struct change_effect *found = change_effect_find(c->job.x, path, strlen(path));
	const struct change_effect *const *moved;

	if (found && found->change == CHANGE_DELETED)
		return is_applied(c, found);
	moved = bsearch(&wanted, c->moved, c->moved_count, sizeof(const struct change_effect *),
		compare_old);
	return moved && is_applied(c, *moved);
}

static void change_foresee_removal(const struct change_carrier *c, struct change_put *p)
{
	own(buf) struct buf path = { .max = CHANGE_MAX_PATH };
	own_fd int folder = -1;
	struct file_entries entries = { .fd = -1 };
	const struct file_entry *entry;

	if (p->verdict != CHANGE_UNDECIDED || p->folder->fd < 0)
		return;
	folder = file_open_same_mount(p->folder->fd, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	entries.fd = folder;
	while (folder >= 0 && p->verdict == CHANGE_UNDECIDED &&
		(entry = file_next_entry(&entries))) {
		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		path.len = 0;
		buf_printf(&path, "%s/%s", p->path, entry->name);
		if (path.failed || !would_go(c, path.data))
			change_put_decide(p, CHANGE_CONFLICT, "it is not empty");
	}
}

/* --- verdicts --- */

static void carrier_finish(struct change_carrier *c, const struct change_put *p)
{
	const struct change_apply *q = c->job.q;

	if (p->verdict == CHANGE_UNDECIDED)
		return; /* not reached */
	c->verdicts[p->index] = (uint8_t)p->verdict;
	c->ret->counts[p->verdict]++;
	c->ret->implied[p->verdict] += p->x->is_implied;
	if (change_is_fatal(p->error) && !c->failure)
		c->failure = err_set(
			c->e, ERR_SYS, p->error, "cannot apply '%.200s': %s", p->x->path, p->why);
	if (q->tell && (p->verdict != CHANGE_APPLIED || *p->why))
		q->tell(q->of, p->x, p->verdict, *p->why ? p->why : NULL);
	if (++c->done % OFTEN == 0 && q->progress.tell)
		q->progress.tell(q->progress.of, "applied", c->done, c->count);
}

/* The verdict on an effect that needs no look, unless it has one. */
static void change_carrier_decide(struct change_carrier *c, const struct change_effect *x,
	enum change_verdict v, const char *why)
{
	struct change_put p = { .x = x, .index = (size_t)(x - c->job.x->items) };

	if (c->verdicts[p.index] != CHANGE_UNDECIDED)
		return;
	change_put_decide(&p, v, "%s", why);
	carrier_finish(c, &p);
}

/* What is never taken, whatever the host has. */
static void decide_early(struct change_put *p)
{
	const struct change_effect *x = p->x;

	if (!change_is_path(x->path) || (x->from && !change_is_path(x->from)))
		change_put_decide(p, CHANGE_FAILED, "this is no path below the project");
	else if (x->mark == CHANGE_LOCK)
		change_put_decide(
			p, CHANGE_NOT_TAKEN, "a lock of git's: it belongs to one running command");
	else if (x->after.type == CHANGE_SPECIAL)
		change_put_decide(p, CHANGE_NOT_TAKEN, "neither a file, a folder nor a link");
	else if (x->after.type == CHANGE_FILE && !x->after.has_hash)
		change_put_decide(
			p, CHANGE_NOT_TAKEN, "%s", x->note ? x->note : "its content was not read");
	else if (p->git.kind == CHANGE_GIT_CACHE)
		change_put_decide(p, CHANGE_NOT_TAKEN, "git makes it again when it needs it");
	else if (p->git.kind == CHANGE_GIT_OBJECT && x->change == CHANGE_DELETED)
		change_put_decide(
			p, CHANGE_NOT_TAKEN, "an object of git's: its own gc removes them");
	else if (p->git.kind == CHANGE_GIT_OBJECT && x->change == CHANGE_CHANGED)
		change_put_decide(p, CHANGE_NOT_TAKEN, "an object of git's: they never change");
}

/* git writes where its index says, into .git too, and a hook there would run. */
static void decide_index(struct change_job *j, struct change_put *p)
{
	own_fd int fd = -1;
	own_free char *bytes = NULL;
	size_t size = 0;
	int r = -EFBIG;

	if (p->verdict != CHANGE_UNDECIDED || !p->git.lists_paths ||
		p->x->change == CHANGE_DELETED || p->x->after.type == CHANGE_FOLDER)
		return;
	if (p->x->after.type == CHANGE_FILE) {
		r = fd = change_put_open_layer(j, p->x->path, O_RDONLY | O_NONBLOCK);
		if (fd >= 0)
			r = file_read_all(fd, CHANGE_GIT_MAX_INDEX, &bytes, &size);
	}
	if (r < 0 && r != -EFBIG)
		change_put_fail_layer(p, -r);
	else if (r < 0 || !change_git_index_is_safe(bytes, size))
		change_put_decide(p, CHANGE_NOT_TAKEN,
			"an index of git's that names a path in .git or outside the project, or that "
			"bawn cannot read ('git reset' makes it anew)");
}

static struct change_put *carrier_add(struct change_carrier *c, const struct change_effect *x)
{
	struct change_put *p = change_batch_add(&c->batch, x);

	decide_early(p);
	decide_index(&c->job, p);
	if (c->job.q->is_dry)
		change_foresee_folder(c, p);
	return p;
}

/* --- steps --- */

/* One effect by itself; the folders it needs stay open for the next ones. */
static struct change_put *begin_one(struct change_carrier *c, const struct change_effect *x)
{
	if (change_batch_is_full(&c->batch))
		change_batch_clear(&c->batch);
	return carrier_add(c, x);
}

static void end_one(struct change_carrier *c, struct change_put *p)
{
	carrier_finish(c, p);
	if (p->host >= 0)
		close(take_fd(&p->host));
	c->batch.count = 0;
}

static void carrier_make_folders(
	struct change_carrier *c, const struct change_turn *turns, size_t count)
{
	for (size_t i = 0; i < count && !carrier_is_over(c); i++) {
		const struct change_effect *x = change_carrier_effect(c, &turns[i]);
		struct change_put *p;

		if (x->after.type != CHANGE_FOLDER ||
			c->verdicts[turns[i].index] != CHANGE_UNDECIDED)
			continue;
		p = begin_one(c, x);
		if (p->verdict == CHANGE_UNDECIDED)
			change_put_make_folder(&c->job, p);
		if (p->verdict == CHANGE_UNDECIDED)
			c->verdicts[turns[i].index] = LATE;
		end_one(c, p);
	}
	change_batch_clear(&c->batch);
}

/* Those whose mode would have kept us from putting things into them. */
static void finish_folders(struct change_carrier *c, const struct change_turn *turns, size_t count)
{
	for (size_t i = count; i-- > 0;) {
		uint8_t *verdict = &c->verdicts[turns[i].index];
		struct change_put *p;

		if (*verdict != LATE)
			continue;
		p = begin_one(c, change_carrier_effect(c, &turns[i]));
		*verdict = CHANGE_UNDECIDED;
		if (change_put_see(p))
			change_put_finish_folder(&c->job, p);
		end_one(c, p);
	}
	change_batch_clear(&c->batch);
}

static void remove_things(struct change_carrier *c, const struct change_turn *turns, size_t count)
{
	for (size_t i = count; i-- > 0 && !carrier_is_over(c);) {
		const struct change_effect *x = change_carrier_effect(c, &turns[i]);
		struct change_put *p;

		if (x->change != CHANGE_DELETED || c->verdicts[turns[i].index] != CHANGE_UNDECIDED)
			continue;
		p = begin_one(c, x);
		if (c->job.q->is_dry)
			change_foresee_removal(c, p);
		if (p->verdict == CHANGE_UNDECIDED)
			change_put_look_removal(&c->job, p);
		if (c->job.q->is_dry)
			change_put_foresee(&c->job, p);
		change_put_remove(&c->job, p);
		end_one(c, p);
	}
	change_batch_clear(&c->batch);
}

static void run_batch(struct change_carrier *c)
{
	int r = change_batch_run(&c->batch);

	for (size_t i = 0; i < c->batch.count; i++)
		carrier_finish(c, &c->batch.puts[i]);
	change_batch_clear(&c->batch);
	if (r < 0 && !c->failure)
		c->failure = err_sys(c->e, -r, "cannot write to the project's file system");
}

/* Files and links; with `is_late` those that replace a folder, which is empty by then. */
static void put_files(
	struct change_carrier *c, const struct change_turn *turns, size_t count, bool is_late)
{
	for (size_t i = 0; i < count && !carrier_is_over(c); i++) {
		const struct change_effect *x = change_carrier_effect(c, &turns[i]);
		struct change_put *p;

		if (x->after.type == CHANGE_FOLDER || x->change == CHANGE_DELETED ||
			(x->before.type == CHANGE_FOLDER) != is_late ||
			c->verdicts[turns[i].index] != CHANGE_UNDECIDED)
			continue;
		p = carrier_add(c, x);
		if (is_late && c->job.q->is_dry)
			change_foresee_removal(c, p);
		if (change_batch_is_full(&c->batch))
			run_batch(c);
	}
	run_batch(c);
}

/* --- repositories --- */

static bool is_left(const struct change_carrier *c, const struct change_turn *turn)
{
	return c->repositories.is_left[c->repositories.of[turn->index]];
}

/* The state of the repository that it is in stays as it is. */
static void leave_repository(struct change_carrier *c, const struct change_turn *turn)
{
	uint32_t number = c->repositories.of[turn->index];

	if (number)
		c->repositories.is_left[number] = true;
}

static void leave_group(struct change_carrier *c, const struct change_turn *turns, size_t count)
{
	leave_repository(c, turns);
	for (size_t i = 0; i < count; i++)
		change_carrier_decide(
			c, change_carrier_effect(c, &turns[i]), CHANGE_CONFLICT, WHOLE);
}

/* Does nothing on the host stand in the way of any of them? */
static bool can_take_all(struct change_carrier *c, const struct change_turn *turns, size_t count)
{
	const struct change_put *conflict = NULL;

	for (size_t i = 0; i < count && !conflict; i++) {
		carrier_add(c, change_carrier_effect(c, &turns[i]));
		if (i + 1 == count || change_batch_is_full(&c->batch)) {
			conflict = change_batch_find_conflict(&c->batch);
			if (conflict)
				carrier_finish(c, conflict);
			change_batch_clear(&c->batch);
		}
	}
	return !conflict;
}

static bool has_conflict(
	const struct change_carrier *c, const struct change_turn *turns, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t verdict = c->verdicts[turns[i].index];

		if (verdict == CHANGE_CONFLICT || verdict == CHANGE_FAILED)
			return true;
	}
	return false;
}

/* --- all of them --- */

static void run_group(struct change_carrier *c, const struct change_turn *turns, size_t count)
{
	bool is_state = turns->kind == CHANGE_GIT_STATE;

	if (is_state && (is_left(c, turns) || !can_take_all(c, turns, count)))
		leave_group(c, turns, count);
	for (size_t i = 0; turns->kind == CHANGE_GIT_REST && i < count; i++)
		if (is_left(c, &turns[i]) &&
			change_carrier_effect(c, &turns[i])->mark != CHANGE_HELD)
			change_carrier_decide(
				c, change_carrier_effect(c, &turns[i]), CHANGE_CONFLICT, WHOLE);
	c->batch.is_together = is_state;
	carrier_make_folders(c, turns, count);
	put_files(c, turns, count, false);
	if (is_state && !carrier_is_over(c) && has_conflict(c, turns, count))
		leave_group(c, turns, count);
	remove_things(c, turns, count);
	put_files(c, turns, count, true);
	finish_folders(c, turns, count);
	/* Refs without their objects would be worse than none. */
	for (size_t i = 0; turns->kind == CHANGE_GIT_OBJECT && i < count; i++)
		if (has_conflict(c, &turns[i], 1))
			leave_repository(c, &turns[i]);
}

/* All turns, in their order. 0 or -errno. */
static int change_carrier_run(struct change_carrier *c)
{
	int r;

	for (size_t i = 0, n; i < c->count && !carrier_is_over(c); i += n) {
		n = change_turns_group(c->job.x, c->turns + i, c->count - i);
		run_group(c, c->turns + i, n);
	}
	r = c->job.needs_sync ? change_job_sync(&c->job) : 0;
	if (r < 0 && !c->failure)
		c->failure = err_sys(c->e, -r, "cannot write to the project's file system");
	return c->failure;
}

#define FEW     32 /* synced one by one */
#define MAX_RUN 48

/* Every temporary file there may be. */
static int begin_journal(const struct change_carrier *c, struct change_journal *w)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct change_effect *x = change_carrier_effect(c, &c->turns[i]);
		struct change_put p = { .x = x, .index = c->turns[i].index, .path = x->path };
		char name[CHANGE_NAME_SIZE];

		p.git = change_git_place_of(p.path);
		change_put_name(&c->job, &p, name);
		if (x->change != CHANGE_DELETED || p.git.is_locked)
			change_journal_add(w, p.path, name, p.git.is_locked);
		if (!x->from)
			continue;
		p.path = x->from;
		p.git = change_git_place_of(p.path);
		change_put_name(&c->job, &p, name);
		if (p.git.is_locked)
			change_journal_add(w, p.path, name, true);
	}
	return change_journal_begin(w, c->job.q->folder, c->e);
}

/* Why a path is held by itself; NULL: it is not. */
static const char *apply_reason_of(const struct change_apply *q, const char *path)
{
	if (change_mark_of(path, NULL, 0) == CHANGE_HELD)
		return change_mark_reason(path);
	return change_mark_of(path, q->held, q->held_count) == CHANGE_HELD ? "a protected path"
									   : NULL;
}

/* What is held for the place it is in has a note that says so. */
static void hold_back(struct change_carrier *c, const struct change_effect *x)
{
	const char *why = apply_reason_of(c->job.q, x->path);

	if (!why)
		why = x->note;
	if (!why && x->from)
		why = apply_reason_of(c->job.q, x->from);
	change_carrier_decide(c, x, CHANGE_HELD_BACK, why ? why : "a protected path");
}

/* Chooses the effects, tells what is held back, and gives the others their order. */
static int take_turns(struct change_carrier *c)
{
	const struct change_effects *x = c->job.x;

	c->choices = calloc(x->count + 1, 1);
	c->turns = calloc(x->count + 1, sizeof(*c->turns));
	c->verdicts = malloc(x->count + 1);
	if (change_repositories_init(&c->repositories, x) < 0 || !c->choices || !c->turns ||
		!c->verdicts || (c->job.q->is_dry && change_foresee_init(c) < 0))
		return -ENOMEM;
	memset(c->verdicts, CHANGE_UNDECIDED, x->count + 1);
	change_choose(c->job.q, x, &c->repositories, c->choices);
	for (size_t i = 0; i < x->count; i++) {
		if (c->choices[i] == CHANGE_CHOSEN)
			c->turns[c->count++].index = (uint32_t)i;
		else if (c->choices[i] == CHANGE_CHOSEN_HELD)
			hold_back(c, &x->items[i]);
	}
	change_turns_sort(x, c->turns, c->count);
	c->job.syncs_each = c->count <= FEW;
	return 0;
}

static int name_temporaries(struct change_carrier *c)
{
	const char *run = c->job.q->run;
	uint32_t token = 0;

	if (!run || !*run || strlen(run) > MAX_RUN || strchr(run, '/'))
		return err_set(
			c->e, ERR_USE, EINVAL, "cannot apply: that is not the name of a run");
	if (getrandom(&token, sizeof(token), 0) != sizeof(token))
		return err_set(c->e, ERR_SYS, EIO, "cannot apply: no random numbers");
	snprintf(c->job.prefix, sizeof(c->job.prefix), CHANGE_TEMPORARY "%08x-", run, token);
	return 0;
}

static void change_carrier_done(struct change_carrier *c)
{
	change_batch_done(&c->batch);
	free(c->choices);
	free(c->turns);
	free(c->verdicts);
	free(c->moved);
	change_repositories_done(&c->repositories);
	pthread_mutex_destroy(&c->job.rights);
}

static int apply_run(struct change_carrier *c, struct change_journal *w)
{
	int r = 0;

	if (take_turns(c) < 0 || change_batch_init(&c->batch, &c->job) < 0)
		r = err_set(c->e, ERR_SYS, ENOMEM, "cannot apply: not enough memory");
	if (r == 0 && !c->job.q->is_dry)
		r = begin_journal(c, w);
	return r == 0 ? change_carrier_run(c) : r;
}

int change_apply(const struct change_apply *q, const struct change_effects *x,
	struct change_applied *ret, struct err *e)
{
	struct change_carrier c = { .ret = ret, .e = e };
	struct change_journal journal = { .fd = -1 };
	int r;

	memset(ret, 0, sizeof(*ret));
	c.job.q = q;
	c.job.x = x;
	c.job.uid = geteuid();
	c.job.gid = getegid();
	r = name_temporaries(&c);
	if (r == 0 && !q->is_dry)
		r = change_journal_open(
			&journal, q->folder, q->below, q->git, q->run, &ret->was_interrupted, e);
	if (r == 0) {
		pthread_mutex_init(&c.job.rights, NULL);
		r = apply_run(&c, &journal);
		change_carrier_done(&c);
		if (!q->is_dry)
			change_journal_end(&journal, q->folder);
	}
	change_journal_done(&journal);
	return r;
}
