/*
 * change_apply - carries the effects of a run out on the host's tree.
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
#include "change/apply/change_carrier.h"

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

void change_carrier_done(struct change_carrier *c)
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
