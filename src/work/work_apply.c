/*
 * work_apply - carries the effects of a run out on the host's tree.
 *
 * Runs as:     the operator, after the run; other programs of his may be at work in the tree.
 * Enters with: the top of the tree, open; the layer, in which names and contents are a stranger's;
 *              the effects, found when the run ended.
 * Leaves:      each chosen effect carried out whole, or what was there; no file of ours, unless it
 * is killed: then the journal names them, and the next call removes them. Must not:    change
 * anything outside the tree, or where something is mounted in it: the run has not seen what lies
 * there; follow a link; replace what it has not compared.
 *
 * Folders are made first, and files put into them; then what is deleted goes, children first; then
 * comes what takes the place of a folder. The working tree precedes git's own folders, of which the
 * objects precede the refs, and the index is the last: no moment shows a ref without its object.
 *
 * What is resolved is the folder that something is put into, once; all that follows is done by its
 * descriptor. If somebody moves that folder out of the tree meanwhile, it is written to where it is
 * then: it is the same folder.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/own.h"
#include "work/work_carrier.h"

#define FEW     32 /* synced one by one */
#define MAX_RUN 48

/* Every temporary file there may be. */
static int begin_journal(const struct work_carrier *c, struct work_journal *w)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct work_effect *x = work_carrier_effect(c, &c->turns[i]);
		struct work_put p = { .x = x, .index = c->turns[i].index, .path = x->path };
		char name[WORK_NAME_SIZE];

		p.git = work_git_place_of(p.path);
		work_put_name(&c->job, &p, name);
		if (x->change != WORK_DELETED || p.git.is_locked)
			work_journal_add(w, p.path, name, p.git.is_locked);
		if (!x->from)
			continue;
		p.path = x->from;
		p.git = work_git_place_of(p.path);
		work_put_name(&c->job, &p, name);
		if (p.git.is_locked)
			work_journal_add(w, p.path, name, true);
	}
	return work_journal_begin(w, c->job.q->folder, c->e);
}

/* Why a path is held by itself; NULL: it is not. */
static const char *reason_of(const struct work_apply *q, const char *path)
{
	if (work_mark_of(path, NULL, 0) == WORK_HELD)
		return work_mark_reason(path);
	return work_mark_of(path, q->held, q->held_count) == WORK_HELD ? "a protected path" : NULL;
}

/* What is held for the place it is in has a note that says so. */
static void hold_back(struct work_carrier *c, const struct work_effect *x)
{
	const char *why = reason_of(c->job.q, x->path);

	if (!why)
		why = x->note;
	if (!why && x->from)
		why = reason_of(c->job.q, x->from);
	work_carrier_decide(c, x, WORK_HELD_BACK, why ? why : "a protected path");
}

/* Chooses the effects, tells what is held back, and gives the others their order. */
static int take_turns(struct work_carrier *c)
{
	const struct work_effects *x = c->job.x;

	c->choices = calloc(x->count + 1, 1);
	c->turns = calloc(x->count + 1, sizeof(*c->turns));
	c->verdicts = malloc(x->count + 1);
	if (work_repositories_init(&c->repositories, x) < 0 || !c->choices || !c->turns ||
		!c->verdicts || (c->job.q->is_dry && work_foresee_init(c) < 0))
		return -ENOMEM;
	memset(c->verdicts, WORK_UNDECIDED, x->count + 1);
	work_choose(c->job.q, x, &c->repositories, c->choices);
	for (size_t i = 0; i < x->count; i++) {
		if (c->choices[i] == WORK_CHOSEN)
			c->turns[c->count++].index = (uint32_t)i;
		else if (c->choices[i] == WORK_CHOSEN_HELD)
			hold_back(c, &x->items[i]);
	}
	work_turns_sort(x, c->turns, c->count);
	c->job.syncs_each = c->count <= FEW;
	return 0;
}

static int name_temporaries(struct work_carrier *c)
{
	const char *run = c->job.q->run;
	uint32_t token = 0;

	if (!run || !*run || strlen(run) > MAX_RUN || strchr(run, '/'))
		return err_set(
			c->e, ERR_USE, EINVAL, "cannot apply: that is not the name of a run");
	if (getrandom(&token, sizeof(token), 0) != sizeof(token))
		return err_set(c->e, ERR_SYS, EIO, "cannot apply: no random numbers");
	snprintf(c->job.prefix, sizeof(c->job.prefix), WORK_TEMPORARY "%08x-", run, token);
	return 0;
}

void work_carrier_done(struct work_carrier *c)
{
	work_batch_done(&c->batch);
	free(c->choices);
	free(c->turns);
	free(c->verdicts);
	free(c->moved);
	work_repositories_done(&c->repositories);
	pthread_mutex_destroy(&c->job.rights);
}

static int run(struct work_carrier *c, struct work_journal *w)
{
	int r = 0;

	if (take_turns(c) < 0 || work_batch_init(&c->batch, &c->job) < 0)
		r = err_set(c->e, ERR_SYS, ENOMEM, "cannot apply: not enough memory");
	if (r == 0 && !c->job.q->is_dry)
		r = begin_journal(c, w);
	return r == 0 ? work_carrier_run(c) : r;
}

int work_apply(const struct work_apply *q, const struct work_effects *x, struct work_applied *ret,
	struct err *e)
{
	struct work_carrier c = { .ret = ret, .e = e };
	struct work_journal journal = { .fd = -1 };
	int r;

	memset(ret, 0, sizeof(*ret));
	c.job.q = q;
	c.job.x = x;
	c.job.uid = geteuid();
	c.job.gid = getegid();
	r = name_temporaries(&c);
	if (r == 0 && !q->is_dry)
		r = work_journal_open(
			&journal, q->folder, q->below, q->git, q->run, &ret->was_interrupted, e);
	if (r == 0) {
		pthread_mutex_init(&c.job.rights, NULL);
		r = run(&c, &journal);
		work_carrier_done(&c);
		if (!q->is_dry)
			work_journal_end(&journal, q->folder);
	}
	work_journal_done(&journal);
	return r;
}
