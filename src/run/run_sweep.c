/*
 * run_sweep - removes the sessions whose time is over.
 *
 * Runs as:  the operator; a worker.
 * Leaves:   sessions that were used meanwhile, those with changes that nobody applied or
 *           discarded, those of other roots, and folders of stores that this one knows nothing of.
 * Must not: let one that cannot be removed keep the others.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/own.h"
#include "proof/log/log.h"
#include "run/run_sessions.h"

#define UNFINISHED_S 3600 /* how old a folder without a session is before it is removed */
#define BATCH        64   /* sessions at one time */

/* What is to be removed: what of a session its removal needs. */
struct found {
	struct store_session *items;
	size_t count, room;
	const struct run_sessions *at;
	bool is_cut; /* not enough memory for the rest, which the next sweep finds */
};

static void found_done(struct found *f)
{
	free(f->items);
}

static struct store_session *sweep_add(struct found *f)
{
	if (f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 64;
		struct store_session *grown = reallocarray(f->items, room, sizeof(*grown));

		if (!grown) {
			f->is_cut = true;
			return NULL;
		}
		f->items = grown;
		f->room = room;
	}
	f->items[f->count] = (struct store_session){ 0 };
	return &f->items[f->count++];
}

static int see_session(void *of, const struct store_session *s)
{
	struct found *f = of;
	struct store_session *x;

	if ((!s->is_expired && s->state != STORE_REMOVING) || !run_sessions_is_here(f->at, s))
		return 0;
	x = sweep_add(f);
	if (!x)
		return 0;
	*x = *s;
	/* These are the store's, and gone when it goes on. */
	x->spec = x->project = NULL;
	return 0;
}

static int see_folder(void *of, const struct session_folder *folder)
{
	struct found *f = of;
	struct store_session *x;

	if (!folder->is_new || folder->age_s < UNFINISHED_S)
		return 0;
	x = sweep_add(f);
	if (x)
		snprintf(x->id, sizeof(x->id), "%s", folder->id);
	return 0;
}

static void log_removed(struct log *log, const struct store_session *s, const char *why)
{
	struct json *j;

	log->session = s->id;
	j = log_begin(log, "session_removed");
	json_text(j, "name", s->name[0] ? s->name : NULL);
	json_text(j, "why", why);
	log_end(log);
}

/* --- some of them at one time --- */

struct sweep {
	struct run_sessions *at;
	struct run_swept *done;
	struct log log;
};

/* The store is asked, and told, once for all of them: what that takes would be most of it. */
struct batch {
	int root;
	const struct store_session *items;
	size_t count;
	atomic_size_t next;
	bool is_begun[BATCH]; /* by us; or by somebody who did not live to finish it */
	struct err errors[BATCH];
};

static void sweep_tell(
	struct sweep *w, const struct store_session *s, const char *why, const struct err *e)
{
	if (e->kind != ERR_NONE)
		w->done->failed++;
	else
		w->done->removed++;
	w->done->swept(w->done->of, s, why, e);
}

/* Has it changes that would be lost, which nobody said may be? Then that is told. */
static bool spare(struct sweep *w, const struct store_session *s)
{
	own(buf) struct buf names = { .max = 200 };

	if (w->done->discards || s->state == STORE_REMOVING ||
		session_count_writes(w->at->root, s->id, &names) == 0)
		return false;
	w->done->kept++;
	w->done->spared(w->done->of, s, &names);
	return true;
}

/* Those that are kept make room for the others, whose order stays. */
static void spare_some(struct sweep *w, struct found *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++)
		if (!spare(w, &f->items[i]))
			f->items[n++] = f->items[i];
	f->count = n;
}

/* Those that somebody used meanwhile, or removes, are not begun. */
static int sweep_begin(struct sweep *w, struct batch *b, struct err *e)
{
	const char *ids[BATCH];
	bool begun[BATCH] = { false };
	size_t n = 0;
	int r;

	for (size_t i = 0; i < b->count; i++)
		if (b->items[i].state != STORE_REMOVING)
			ids[n++] = b->items[i].id;
	r = n ? store_begin_sweeps(w->at->store, ids, n, begun, e) : 0;
	for (size_t i = 0, at = 0; r >= 0 && i < b->count; i++)
		b->is_begun[i] = b->items[i].state == STORE_REMOVING || begun[at++];
	return r;
}

static void *remove_files(void *of)
{
	struct batch *b = of;

	for (size_t i = b->next++; i < b->count; i = b->next++)
		if (b->is_begun[i])
			run_remove_files(b->root, &b->items[i], &b->errors[i]);
	return NULL;
}

/* By two at one time: one waits for the disk, or the kernel, while the other works. */
static void remove_all_files(struct batch *b)
{
	pthread_t other;
	bool has_other = b->count > 1 && pthread_create(&other, NULL, remove_files, b) == 0;

	remove_files(b);
	if (has_other)
		pthread_join(other, NULL);
}

static int sweep_finish(struct sweep *w, const struct batch *b, struct err *e)
{
	const char *ids[BATCH];
	size_t n = 0;

	for (size_t i = 0; i < b->count; i++)
		if (b->is_begun[i] && b->errors[i].kind == ERR_NONE)
			ids[n++] = b->items[i].id;
	return n ? store_remove_sessions(w->at->store, ids, n, e) : 0;
}

static void sweep_batch(struct sweep *w, const struct store_session *items, size_t count)
{
	struct batch b = { .root = w->at->root, .items = items, .count = count };
	struct err e = { 0 };
	int r = 0;

	if (!w->done->is_dry) {
		r = sweep_begin(w, &b, &e);
		if (r >= 0)
			remove_all_files(&b);
		if (r >= 0)
			r = sweep_finish(w, &b, &e);
	}
	for (size_t i = 0; i < count; i++) {
		const char *why = items[i].is_expired ? "expired" : "removed";

		if (r >= 0 && !w->done->is_dry && !b.is_begun[i])
			continue;
		if (r >= 0 && b.errors[i].kind == ERR_NONE && !w->done->is_dry)
			log_removed(&w->log, &items[i], why);
		sweep_tell(w, &items[i], why, r < 0 ? &e : &b.errors[i]);
	}
	if (log_write(&w->log) < 0)
		w->done->unlogged = w->log.failure;
}

/* --- what was left --- */

/* A folder that was never confirmed; its session may be there all the same. */
static void run_sweep_sweep_folder(struct sweep *w, const struct store_session *s)
{
	own(store_session) struct store_session row = { 0 };
	struct err e = { 0 };
	int r = store_find_session(w->at->store, s->id, &row, &e);

	if (r != -ENOENT) {
		if (r == 0 && !w->done->is_dry)
			session_confirm_folder(w->at->root, s->id, &e);
		return;
	}
	e = (struct err){ 0 };
	if (!w->done->is_dry)
		session_remove_folder(w->at->root, s->id, &e);
	sweep_tell(w, s, "unfinished", &e);
}

/* --- all of them --- */

int run_sweep(struct run_sessions *at, struct run_swept *x, struct err *e)
{
	own(found) struct found sessions = { .at = at }, folders = { .at = at };
	struct sweep w = { .at = at, .done = x };
	int r = 0;

	if (!at->store || at->root < 0)
		return 0;
	if (flock(at->root, LOCK_EX | LOCK_NB) < 0) {
		x->is_other = true;
		return 0;
	}
	log_init(&w.log, at->state, NULL, NULL);
	r = store_each_session(at->store, see_session, &sessions, e);
	if (r == 0)
		spare_some(&w, &sessions);
	for (size_t i = 0; r == 0 && i < sessions.count; i += BATCH)
		sweep_batch(&w, sessions.items + i,
			sessions.count - i < BATCH ? sessions.count - i : BATCH);
	if (r == 0)
		r = session_each_folder(at->root, see_folder, &folders, e);
	for (size_t i = 0; r == 0 && i < folders.count; i++)
		run_sweep_sweep_folder(&w, &folders.items[i]);
	x->is_cut = sessions.is_cut || folders.is_cut;
	log_done(&w.log);
	flock(at->root, LOCK_UN);
	return r;
}
