/* Runs: queued, looked at, taken by a worker and ended under its lease; and saved workspaces. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "session/store/store_inside.h"

static_assert(STORE_QUEUED == 0 && STORE_RUNNING == 1 && STORE_LOST == 4 && STORE_CANCELLED == 5,
	"SQL_QUEUED and so on");

#define PAGE 16 /* runs that are read at once; each may have megabytes */

int store_lose_runs(struct store *s, const char *session, struct err *e)
{
	return store_tell(s, e,
		"UPDATE bawn_runs SET state = " SQL_LOST ", ended_ms = {now}, error = $2 "
		"WHERE session = $1 AND state = " SQL_RUNNING,
		VALUE_TEXT(session),
		VALUE_STRING("its worker was lost; nobody knows how far it came"));
}

/* Why a run cannot be queued in a session. */
static int say_closed(struct store *s, const char *session, struct err *e)
{
	int64_t state = 0;
	int r = store_ask(s, store_see_num, &state, e,
		"SELECT state FROM bawn_sessions WHERE id = $1", VALUE_TEXT(session));

	if (r < 0)
		return r;
	if (r == 0)
		return err_set(
			e, ERR_USE, ENOENT, "cannot queue a run: there is no session %s", session);
	return err_set(e, ERR_REFUSED, ECANCELED, "cannot queue a run: session %s is %s", session,
		state == STORE_STOPPED ? "stopped" : "being removed");
}

static int queue_run(struct store *s, void *of, struct err *e)
{
	const struct store_run *x = *(const struct store_run **)of;
	int r = store_tell(s, e,
		"UPDATE bawn_sessions SET used_ms = {now}, queued = queued + 1, "
		"head_ms = CASE WHEN queued = 0 THEN {now} ELSE head_ms END "
		"WHERE id = $1 AND state = " SQL_OPEN,
		VALUE_TEXT(x->session));

	if (r == 0)
		return say_closed(s, x->session, e);
	if (r > 0)
		r = store_tell(s, e,
			"INSERT INTO bawn_runs (id, session, request, queued_ms) "
			"VALUES ($1, $2, $3, {now})",
			VALUE_TEXT(x->id), VALUE_TEXT(x->session), VALUE_STRING(x->request));
	store_ring(s);
	return r;
}

int store_queue_run(struct store *s, const struct store_run *x, struct err *e)
{
	int r;

	s->doing = "queue a run";
	if (strlen(x->request) > STORE_MAX_REQUEST)
		return err_set(e, ERR_USE, EFBIG,
			"cannot queue a run: its request is larger than %zu bytes",
			STORE_MAX_REQUEST);
	r = store_within(s, true, queue_run, &x, e);
	if (r == -EEXIST)
		return err_set(
			e, ERR_USE, EEXIST, "cannot queue a run: %s is queued already", x->id);
	return r < 0 ? r : 0;
}

int store_find_run(struct store *s, const char *id, struct store_run *ret, struct err *e)
{
	own(store_run) struct store_run found = { 0 };
	int r = 0;

	s->doing = "find a run";
	if (store_is_word(id, STORE_RUN_SIZE))
		r = store_ask(s, store_see_run, &found, e,
			"SELECT " SQL_RUN " FROM bawn_runs WHERE id = $1", VALUE_TEXT(id));
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(e, ERR_USE, ENOENT, "cannot find the queued run '%s'", id);
	*ret = found;
	found = (struct store_run){ 0 };
	return 0;
}

struct page {
	struct store_run rows[PAGE];
	size_t count;
	int64_t last; /* seq */
};

static void page_done(struct page *p)
{
	for (size_t i = 0; i < p->count; i++)
		store_run_done(&p->rows[i]);
	p->count = 0;
}

static int runs_see_in_page(void *of, const struct store_value *v)
{
	struct page *p = of;

	p->last = v[12].num;
	return store_see_run_short(&p->rows[p->count++], v);
}

static int runs_read_page(struct store *s, const char *session, struct page *p, struct err *e)
{
	page_done(p);
	s->doing = "list the runs";
	if (session)
		return store_ask(s, runs_see_in_page, p, e,
			"SELECT " SQL_RUN_SHORT " FROM bawn_runs "
			"WHERE session = $3 AND seq > $1 ORDER BY seq LIMIT $2",
			VALUE_NUM(p->last), VALUE_NUM(PAGE), VALUE_TEXT(session));
	return store_ask(s, runs_see_in_page, p, e,
		"SELECT " SQL_RUN_SHORT " FROM bawn_runs WHERE seq > $1 ORDER BY seq LIMIT $2",
		VALUE_NUM(p->last), VALUE_NUM(PAGE));
}

int store_each_run(struct store *s, const char *session,
	int (*see)(void *of, const struct store_run *x), void *of, struct err *e)
{
	own(page) struct page p = { 0 };
	int r;

	if (session && !store_is_word(session, STORE_ID_SIZE))
		return 0;
	do {
		r = runs_read_page(s, session, &p, e);
		for (size_t i = 0; r >= 0 && i < p.count; i++) {
			int seen = see(of, &p.rows[i]);

			if (seen)
				return seen;
		}
	} while (r == PAGE);
	return r < 0 ? r : 0;
}

static int see_queue(void *of, const struct store_value *v)
{
	struct store_queue *q = of;

	q->runs = v[0].num > 0 ? (uint64_t)v[0].num : 0;
	q->oldest_ms = v[1].num > 0 ? (uint64_t)v[1].num : 0;
	return 0;
}

int store_measure_queue(struct store *s, struct store_queue *ret, struct err *e)
{
	int r;

	*ret = (struct store_queue){ 0 };
	s->doing = "measure the queue";
	r = store_ask(s, see_queue, ret, e,
		"SELECT CAST(coalesce(sum(queued), 0) AS BIGINT), "
		"coalesce({now} - min(head_ms), 0) FROM bawn_sessions WHERE queued >= $1",
		VALUE_NUM(1));
	return r < 0 ? r : 0;
}

/* --- leases --- */

/*
 * A token belongs to one lease only. So the worker with the newest token has the lease, as long as
 * the row names a worker: it names none once the lease was given back or ended from outside.
 */

static int store_say_stale(struct store *s, const char *session, struct err *e)
{
	return err_set(e, ERR_REFUSED, ESTALE,
		"cannot %s: the lease on session %s has ended, and another worker may have it",
		s->doing, session);
}

static int store_hold_lease(struct store *s, const char *session, uint64_t token, struct err *e)
{
	int r = store_tell(s, e,
		"UPDATE bawn_sessions SET used_ms = {now} "
		"WHERE id = $1 AND token = $2 AND worker <> ''",
		VALUE_TEXT(session), VALUE_NUM(token));

	return r == 0 ? store_say_stale(s, session, e) : r;
}

/* --- writing under a lease --- */

struct move {
	const char *session, *place;
	uint64_t token, workspace;
	bool is_left_open;
};

static int set_workspace(struct store *s, void *of, struct err *e)
{
	const struct move *m = of;
	int r = store_tell(s, e,
		"UPDATE bawn_sessions SET place = $3, workspace = $4 "
		"WHERE id = $1 AND token = $2 AND worker <> ''",
		VALUE_TEXT(m->session), VALUE_NUM(m->token), VALUE_TEXT(m->place),
		VALUE_NUM(m->workspace));

	return r == 0 ? store_say_stale(s, m->session, e) : r;
}

int store_set_workspace(struct store *s, const char *id, uint64_t token, const char *place,
	uint64_t workspace, struct err *e)
{
	struct move m = { id, place, token, workspace, false };
	int r;

	s->doing = "move a workspace";
	r = store_within(s, true, set_workspace, &m, e);
	return r < 0 ? r : 0;
}

/* The end of what was printed is kept. */
static struct store_value value_of_output(const char *bytes, size_t size)
{
	size_t skipped = bytes && size > STORE_MAX_OUTPUT ? size - STORE_MAX_OUTPUT : 0;

	return VALUE_BYTES(bytes ? bytes + skipped : NULL, size - skipped);
}

/*
 * Nothing was changed. It may be that this is said a second time, because the connection broke
 * before the first was confirmed: then it is well.
 */
static int check_ended(struct store *s, const struct store_run *x, struct err *e)
{
	int64_t found = 0;
	int r = store_ask(s, store_see_num, &found, e,
		"SELECT count(*) FROM bawn_runs WHERE id = $1 AND session = $2 AND token = $3 AND "
		"worker = $4 AND state = $5 AND status = $6",
		VALUE_TEXT(x->id), VALUE_TEXT(x->session), VALUE_NUM(x->token),
		VALUE_TEXT(x->worker), VALUE_NUM(x->state), VALUE_NUM(x->status));

	if (r < 0)
		return r;
	return found ? 0 : store_say_stale(s, x->session, e);
}

static int leases_end_run(struct store *s, void *of, struct err *e)
{
	const struct store_run *x = *(const struct store_run **)of;
	int r = store_tell(s, e,
		"UPDATE bawn_sessions SET used_ms = {now}, running = running - 1 "
		"WHERE id = $1 AND token = $2 AND worker = $3 AND running > 0",
		VALUE_TEXT(x->session), VALUE_NUM(x->token), VALUE_TEXT(x->worker));

	if (r == 0)
		return check_ended(s, x, e);
	if (r < 0)
		return r;
	r = store_tell(s, e,
		"UPDATE bawn_runs SET state = $5, status = $6, error = $7, record = $8, out = $9, "
		"err = $10, ended_ms = {now} WHERE id = $1 AND session = $2 AND token = $3 AND "
		"worker = $4 AND state = " SQL_RUNNING,
		VALUE_TEXT(x->id), VALUE_TEXT(x->session), VALUE_NUM(x->token),
		VALUE_TEXT(x->worker), VALUE_NUM(x->state), VALUE_NUM(x->status),
		VALUE_STRING(x->error), VALUE_STRING(x->record),
		value_of_output(x->out, x->out_size), value_of_output(x->err, x->err_size));
	store_ring(s);
	return r == 0 ? store_say_stale(s, x->session, e) : r;
}

int store_end_run(struct store *s, const struct store_run *x, struct err *e)
{
	int r;

	s->doing = "report the end of a run";
	if (x->state < STORE_ENDED || x->state >= STORE_RUN_STATE_COUNT)
		return err_set(e, ERR_SYS, EINVAL, "cannot %s: '%d' is not how a run ends",
			s->doing, x->state);
	r = store_within(s, true, leases_end_run, &x, e);
	return r < 0 ? r : 0;
}

static int release(struct store *s, void *of, struct err *e)
{
	const struct move *m = of;
	int64_t running = 0;
	int r = store_tell(s, e,
		"UPDATE bawn_sessions SET worker = '', lease_ms = 0, is_held = $3 "
		"WHERE id = $1 AND token = $2 AND worker <> '' AND running = 0",
		VALUE_TEXT(m->session), VALUE_NUM(m->token), VALUE_NUM(m->is_left_open));

	store_ring(s);
	if (r)
		return r;
	r = store_ask(s, store_see_num, &running, e,
		"SELECT running FROM bawn_sessions WHERE id = $1 AND token = $2 AND worker <> ''",
		VALUE_TEXT(m->session), VALUE_NUM(m->token));
	if (r < 0)
		return r;
	if (running > 0)
		return err_set(e, ERR_REFUSED, EBUSY,
			"cannot give back session %s: a run in it has not ended", m->session);
	return store_say_stale(s, m->session, e);
}

static int leases_give_back(struct store *s, struct move m, struct err *e)
{
	int r;

	s->doing = "give a session back";
	r = store_within(s, true, release, &m, e);
	return r < 0 ? r : 0;
}

int store_release(struct store *s, const char *session, uint64_t token, struct err *e)
{
	return leases_give_back(s, (struct move){ session, NULL, token, 0, false }, e);
}

int store_give_up(struct store *s, const char *session, uint64_t token, struct err *e)
{
	return leases_give_back(s, (struct move){ session, NULL, token, 0, true }, e);
}

/* --- looking --- */

int store_check_token(struct store *s, const char *session, uint64_t token, struct err *e)
{
	int64_t found = 0;
	int r;

	s->doing = "check a lease";
	r = store_ask(s, store_see_num, &found, e,
		"SELECT count(*) FROM bawn_sessions WHERE id = $1 AND token = $2 AND worker <> ''",
		VALUE_TEXT(session), VALUE_NUM(token));
	if (r < 0)
		return r;
	return found ? 0 : store_say_stale(s, session, e);
}

struct looking {
	const struct store_session *const *held;
	size_t count;
	bool *is_lost;
};

static int see_lease(void *of, const struct store_value *v)
{
	struct looking *l = of;

	for (size_t i = 0; i < l->count; i++)
		if (strlen(l->held[i]->id) == v[0].size &&
			!memcmp(l->held[i]->id, v[0].bytes, v[0].size) &&
			l->held[i]->token == (uint64_t)v[1].num)
			l->is_lost[i] = false;
	return 0;
}

int store_check_leases(struct store *s, const char *worker, const struct store_session *const *held,
	size_t count, bool *ret_is_lost, struct err *e)
{
	struct looking l = { held, count, ret_is_lost };
	int r;

	s->doing = "check the leases";
	for (size_t i = 0; i < count; i++)
		ret_is_lost[i] = true;
	r = store_ask(s, see_lease, &l, e,
		"SELECT id, token FROM bawn_sessions WHERE worker = $1 AND worker <> ''",
		VALUE_TEXT(worker));
	return r < 0 ? r : 0;
}

/* --- leases that are over --- */

#define LOST_AT_ONCE 64

struct lost {
	char ids[LOST_AT_ONCE][STORE_ID_SIZE];
	size_t count;
	uint64_t runs;
};

static int see_lost(void *of, const struct store_value *v)
{
	struct lost *l = of;

	/* A planner may look twice at what is to be found once, and then finds more. */
	if (l->count == LOST_AT_ONCE)
		return -EOVERFLOW;
	return store_copy_text(&v[0], l->ids[l->count++], STORE_ID_SIZE);
}

/*
 * The lease ends with them: should the worker wake up after all, its next run must not begin beside
 * one that it believes it has.
 */
static int report_lost(struct store *s, void *of, struct err *e)
{
	struct lost *l = of;
	int r;

	l->count = 0;
	l->runs = 0;
	r = store_ask(s, see_lost, l, e,
		"UPDATE bawn_sessions SET running = 0, worker = '', lease_ms = 0 WHERE seq IN "
		"(SELECT seq FROM bawn_sessions WHERE running > 0 AND lease_ms <= {now} LIMIT $1 "
		"{skip}) RETURNING id",
		VALUE_NUM(LOST_AT_ONCE));
	for (size_t i = 0; r >= 0 && i < l->count; i++) {
		r = store_lose_runs(s, l->ids[i], e);
		l->runs += r > 0 ? (uint64_t)r : 0;
		store_ring(s);
	}
	if (r >= 0)
		r = store_tell(s, e,
			"DELETE FROM bawn_workers WHERE seen_ms < {now} - $1 AND NOT EXISTS "
			"(SELECT 1 "
			"FROM bawn_sessions s WHERE s.worker = bawn_workers.name AND s.worker <> "
			"'')",
			VALUE_NUM(STORE_FORGET_MS));
	return r < 0 ? r : (int)l->count;
}

static int has_lost(struct store *s, struct err *e)
{
	int64_t found = 0;
	int r = store_ask(s, store_see_num, &found, e,
		"SELECT (SELECT count(*) FROM bawn_sessions WHERE running > 0 AND lease_ms <= "
		"{now}) "
		"+ (SELECT count(*) FROM bawn_workers WHERE seen_ms < {now} - $1)",
		VALUE_NUM(STORE_FORGET_MS));

	return r < 0 ? r : found > 0;
}

int store_report_lost(struct store *s, uint64_t *ret_count, struct err *e)
{
	struct lost l = { 0 };
	int r;

	s->doing = "report lost runs";
	*ret_count = 0;
	r = has_lost(s, e);
	if (r <= 0)
		return r;
	do {
		r = store_within(s, true, report_lost, &l, e);
		*ret_count += r > 0 ? l.runs : 0;
	} while (r == LOST_AT_ONCE);
	return r < 0 ? r : 0;
}

/* --- runs that nobody waits for --- */

#define PRUNED_AT_ONCE 1000 /* so that others may write in between */

struct limits {
	int64_t age_ms, count;
};

/* Such a run has no session whose row could be locked: it was removed with its last run. */
static int prune_some(struct store *s, void *of, struct err *e)
{
	const struct limits *keep = of;

	return store_tell(s, e,
		"DELETE FROM bawn_runs WHERE seq IN (SELECT r.seq FROM bawn_runs r WHERE r.state > 1 "
		"AND NOT EXISTS (SELECT 1 FROM bawn_sessions s WHERE s.id = r.session) AND "
		"(r.ended_ms < {now} - $1 OR r.seq <= (SELECT max(seq) FROM bawn_runs) - $2) "
		"LIMIT $3)",
		VALUE_NUM(keep->age_ms), VALUE_NUM(keep->count), VALUE_NUM(PRUNED_AT_ONCE));
}

int store_prune_runs(
	struct store *s, uint64_t age_ms, uint64_t count, uint64_t *ret_count, struct err *e)
{
	/* Without a limit: longer than anybody has counted. */
	struct limits keep = { age_ms ? (int64_t)age_ms : INT64_MAX / 4,
		count ? (int64_t)count : INT64_MAX / 4 };
	int r;

	s->doing = "prune runs";
	*ret_count = 0;
	do {
		r = store_within(s, false, prune_some, &keep, e);
		*ret_count += r > 0 ? (uint64_t)r : 0;
	} while (r == PRUNED_AT_ONCE);
	return r < 0 ? r : 0;
}

/* --- taking a run --- */

/*
 * The session is chosen and locked by its row alone. Then its oldest queued run is the worker's,
 * and with it the lease: all of it, or nothing.
 */

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

/* These conditions do not depend on the session, so that a query evaluates them once. */
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

/* --- saved workspaces --- */

/* Workspaces that were saved, as one piece of bytes each. */

struct saving {
	const char *session;
	uint64_t token;
	const void *bytes;
	size_t n;
};

static int saved_save(struct store *s, void *of, struct err *e)
{
	const struct saving *x = of;
	int r = store_hold_lease(s, x->session, x->token, e);

	if (r < 0)
		return r;
	return store_tell(s, e,
		"INSERT INTO bawn_saved (session, token, saved_ms, bytes) "
		"VALUES ($1, $2, {now}, $3) ON CONFLICT (session) DO UPDATE SET "
		"token = excluded.token, saved_ms = excluded.saved_ms, bytes = excluded.bytes",
		VALUE_TEXT(x->session), VALUE_NUM(x->token), VALUE_BYTES(x->bytes, x->n));
}

int store_save(struct store *s, const char *session, uint64_t token, const void *bytes, size_t n,
	struct err *e)
{
	struct saving x = { session, token, bytes, n };
	int r;

	s->doing = "save a workspace";
	if (n > STORE_MAX_SAVED)
		return err_set(e, ERR_REFUSED, EFBIG,
			"cannot save a workspace: it is larger than %zu MB", STORE_MAX_SAVED >> 20);
	r = store_within(s, true, saved_save, &x, e);
	return r < 0 ? r : 0;
}

struct loading {
	char *bytes;
	size_t n;
};

static int see_bytes(void *of, const struct store_value *v)
{
	struct loading *l = of;

	return store_copy_bytes(&v[0], &l->bytes, &l->n);
}

int store_load(struct store *s, const char *session, char **ret, size_t *ret_size, struct err *e)
{
	struct loading l = { 0 };
	int r;

	s->doing = "load a saved workspace";
	r = store_ask(s, see_bytes, &l, e, "SELECT bytes FROM bawn_saved WHERE session = $1",
		VALUE_TEXT(session));
	if (r > 0) {
		*ret = l.bytes;
		*ret_size = l.n;
		return 0;
	}
	free(l.bytes);
	if (r == 0)
		return err_set(e, ERR_USE, ENOENT,
			"cannot load a saved workspace: none was saved of session %s", session);
	return r;
}
