/* Runs: queued by whoever wants one, and looked at. Taking and ending them is store_leases.c. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "session/store/store_inside.h"

static_assert(STORE_QUEUED == 0 && STORE_RUNNING == 1 && STORE_LOST == 4 && STORE_CANCELLED == 5,
	"SQL_QUEUED and so on");

#define PAGE 16 /* runs that are read at once; each may have megabytes */

int store_cancel_runs(struct store *s, const char *session, const char *why, struct err *e)
{
	return store_tell(s, e,
		"UPDATE bawn_runs SET state = " SQL_CANCELLED ", ended_ms = {now}, error = $2 "
		"WHERE session = $1 AND state = " SQL_QUEUED,
		VALUE_TEXT(session), VALUE_STRING(why));
}

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
			"cannot queue a run: what it asks for is longer than %zu bytes",
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
