/*
 * Taking a run: which, by whom, and under which lease.
 *
 * The session is chosen and locked by its row alone. Then its oldest queued run is the worker's,
 * and with it the lease: all of it, or nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "session/store/store_inside.h"

/*
 * Sessions with a run for worker $1 of place $2, the one that waited longest first. Somebody else's
 * is left to it while it is alive and has room: what it has of the session is warm. One whose files
 * are in another place is left to the workers there, while there are any: what was saved of it may
 * be older than they are.
 */
#define SQL_CANDIDATES                                                                             \
	"FROM bawn_sessions s WHERE queued > 0 AND state = " SQL_OPEN " AND "                      \
	"((running = 0 AND (worker = '' OR worker = $1 OR lease_ms <= {now} OR "                   \
	"worker IN (" SQL_FULL "))) OR (running > 0 AND worker <> $1 AND lease_ms <= {now})) "     \
	"AND (place = $2 OR place NOT IN (" SQL_PEOPLED ")) "

/* These do not depend on the session: so they are found out once. */
#define SQL_FULL                                                                                   \
	"SELECT h.name FROM bawn_workers h WHERE h.slots <= (SELECT count(*) FROM bawn_runs r "    \
	"WHERE r.worker = h.name AND r.state = " SQL_RUNNING ")"
#define SQL_PEOPLED                                                                                \
	"SELECT p.place FROM bawn_workers p WHERE p.slots > 0 AND p.seen_ms + p.lease_ms > {now}"

struct taking {
	const struct store_worker *worker;
	struct store_taken *taken;
	char session[STORE_ID_SIZE];
	bool is_new, is_held, is_running;
	int64_t token;
};

static int see_candidate(void *of, const struct store_value *v)
{
	struct taking *t = of;
	size_t n = strlen(t->worker->name);

	t->is_new = v[1].size != n || memcmp(v[1].bytes, t->worker->name, n) != 0;
	t->token = v[2].num + (t->is_new ? 1 : 0);
	t->is_held = v[3].num;
	t->is_running = v[4].num > 0;
	return store_copy_text(&v[0], t->session, sizeof(t->session));
}

static int take_oldest(struct store *s, struct taking *t, struct err *e)
{
	int r = store_ask(s, store_see_run, &t->taken->run, e,
		"UPDATE bawn_runs SET state = " SQL_RUNNING ", worker = $2, token = $3, "
		"taken_ms = {now} WHERE seq = (SELECT min(seq) FROM bawn_runs WHERE session = $1 "
		"AND "
		"state = " SQL_QUEUED ") RETURNING " SQL_RUN,
		VALUE_TEXT(t->session), VALUE_TEXT(t->worker->name), VALUE_NUM(t->token));

	if (r == 0)
		return err_set(e, ERR_SYS, ENODATA,
			"cannot find a run of session %s, which %s counts: counted anew",
			t->session, s->name);
	return r;
}

/* Otherwise everybody would go on to find this session first, and nothing in it. */
static int count_anew(struct store *s, void *of, struct err *e)
{
	const struct taking *t = of;
	/* Changed, so that who is queueing one has done so when they are counted. */
	int r = store_tell(s, e, "UPDATE bawn_sessions SET used_ms = used_ms WHERE id = $1",
		VALUE_TEXT(t->session));

	if (r < 0)
		return r;
	return store_tell(s, e,
		"UPDATE bawn_sessions SET queued = (SELECT count(*) FROM bawn_runs r WHERE "
		"r.session = $1 AND r.state = " SQL_QUEUED "), head_ms = coalesce((SELECT "
		"r.queued_ms FROM bawn_runs r WHERE r.session = $1 AND r.state = " SQL_QUEUED
		" ORDER BY r.seq LIMIT 1), 0) WHERE id = $1",
		VALUE_TEXT(t->session));
}

static int take_lease(struct store *s, struct taking *t, struct err *e)
{
	return store_ask(s, store_see_session, &t->taken->session, e,
		"UPDATE bawn_sessions SET worker = $2, token = $3, lease_ms = {now} + $4, "
		"used_ms = {now}, is_held = 1, running = 1, queued = queued - 1, head_ms = "
		"coalesce("
		"(SELECT r.queued_ms FROM bawn_runs r WHERE r.session = $1 AND r.state "
		"= " SQL_QUEUED " ORDER BY r.seq LIMIT 1), 0) WHERE id = $1 RETURNING " SQL_SESSION,
		VALUE_TEXT(t->session), VALUE_TEXT(t->worker->name), VALUE_NUM(t->token),
		VALUE_NUM(t->worker->lease_ms));
}

static int take_run(struct store *s, void *of, struct err *e)
{
	struct taking *t = of;
	int r;

	store_taken_done(t->taken);
	r = store_ask(s, see_candidate, t, e,
		"SELECT id, worker, token, is_held, running " SQL_CANDIDATES
		"ORDER BY head_ms, seq LIMIT 1 {skip}",
		VALUE_TEXT(t->worker->name), VALUE_TEXT(t->worker->place));
	if (r <= 0)
		return r;
	t->taken->is_new = t->is_new;
	t->taken->is_left_open = t->is_new && t->is_held;
	/* Somebody may be at work there, and should learn of it. */
	if (t->taken->is_left_open)
		store_ring(s);
	if (t->is_running)
		r = store_lose_runs(s, t->session, e);
	if (r >= 0)
		r = take_oldest(s, t, e);
	return r < 0 ? r : take_lease(s, t, e);
}

/* --- what was taken when the connection broke --- */

static int take_settle(struct store *s, void *of, struct err *e)
{
	const struct store_taken *t = of;
	int64_t found = 0;
	/* Changed, so that it is not looked at before what was under way has ended. */
	int r = store_tell(s, e, "UPDATE bawn_sessions SET used_ms = used_ms WHERE id = $1",
		VALUE_TEXT(t->session.id));

	if (r >= 0)
		r = store_ask(s, store_see_num, &found, e,
			"SELECT count(*) FROM bawn_runs r JOIN bawn_sessions s ON s.id = r.session "
			"WHERE r.id = $1 AND r.token = $2 AND s.token = $2 AND r.worker = $3 AND "
			"s.worker = $3 AND r.state = " SQL_RUNNING,
			VALUE_TEXT(t->run.id), VALUE_NUM(t->run.token), VALUE_TEXT(t->run.worker));
	return r < 0 ? r : found > 0;
}

/* 1: it was taken after all, and is handed out now. */
static int settle_unsure(struct store *s, struct store_taken *ret, struct err *e)
{
	int r = store_within(s, false, take_settle, s->unsure, e);

	if (r < 0)
		return r;
	if (r > 0) {
		*ret = *s->unsure;
		*s->unsure = (struct store_taken){ 0 };
	}
	store_taken_done(s->unsure);
	free(s->unsure);
	s->unsure = NULL;
	return r;
}

static void keep_unsure(struct store *s, struct store_taken *t)
{
	s->unsure = calloc(1, sizeof(*s->unsure));
	if (!s->unsure)
		return;
	*s->unsure = *t;
	*t = (struct store_taken){ 0 };
}

int store_take_run(
	struct store *s, const struct store_worker *w, struct store_taken *ret, struct err *e)
{
	own(store_taken) struct store_taken taken = { 0 };
	struct taking t = { .worker = w, .taken = &taken };
	struct err failure = { 0 };
	int64_t found = 0;
	int r;

	s->doing = "take a run";
	if (s->unsure) {
		r = settle_unsure(s, ret, e);
		if (r)
			return r;
	}
	/* Where only one can write at a time, one that finds nothing does not ask for it. */
	if (!s->driver->has_row_locks) {
		r = store_ask(s, store_see_num, &found, e,
			"SELECT count(*) FROM (SELECT 1 " SQL_CANDIDATES "LIMIT 1) AS one",
			VALUE_TEXT(w->name), VALUE_TEXT(w->place));
		if (r < 0 || !found)
			return r < 0 ? r : 0;
	}
	r = store_within(s, true, take_run, &t, e);
	if (r == -ENODATA) {
		r = store_within(s, true, count_anew, &t, &failure);
		if (r < 0 && e)
			*e = failure;
		return r < 0 ? r : -ENODATA;
	}
	if (r == -EPIPE && taken.session.id[0])
		keep_unsure(s, &taken);
	if (r <= 0)
		return r;
	*ret = taken;
	taken = (struct store_taken){ 0 };
	return 1;
}
