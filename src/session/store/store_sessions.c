/* Sessions: the rows that everything else hangs on. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "session/store/store_inside.h"

static_assert(STORE_OPEN == 0 && STORE_STOPPED == 1 && STORE_REMOVING == 2, "SQL_OPEN and so on");

#define PAGE 128 /* sessions that are read at once */

/* Too few rows were changed: there is no such session, or it is being removed. */
static int sessions_say_missing(struct store *s, const char *id, struct err *e)
{
	int64_t found = 0;
	int r = store_ask(s, store_see_num, &found, e,
		"SELECT count(*) FROM bawn_sessions WHERE id = $1", VALUE_TEXT(id));

	if (r < 0)
		return r;
	if (!found)
		return err_set(
			e, ERR_USE, ENOENT, "cannot %s: there is no session %s", s->doing, id);
	return err_set(
		e, ERR_REFUSED, ECANCELED, "cannot %s: session %s is being removed", s->doing, id);
}

/* Cancels the queued runs of a session. The same transaction has changed the session's row. */
static int cancel_runs(struct store *s, const char *session, const char *why, struct err *e)
{
	return store_tell(s, e,
		"UPDATE bawn_runs SET state = " SQL_CANCELLED ", ended_ms = {now}, error = $2 "
		"WHERE session = $1 AND state = " SQL_QUEUED,
		VALUE_TEXT(session), VALUE_STRING(why));
}

/* --- adding and finding --- */

static int sessions_add_session(struct store *s, void *of, struct err *e)
{
	struct store_session *x = of;

	return store_ask(s, store_see_num, &x->created_ms, e,
		"INSERT INTO bawn_sessions (id, name, place, workspace, state, created_ms, "
		"used_ms, "
		"ttl_ms, spec, project) "
		"SELECT $1, $2, $3, $4, $5, now_ms, now_ms, $6, $7, $8 "
		"FROM (SELECT {now} AS now_ms) AS clock WHERE true RETURNING created_ms",
		VALUE_TEXT(x->id), VALUE_TEXT(x->name), VALUE_TEXT(x->place),
		VALUE_NUM(x->workspace), VALUE_NUM(x->state), VALUE_NUM(x->ttl_ms),
		VALUE_STRING(x->spec), VALUE_STRING(x->project));
}

int store_add_session(struct store *s, struct store_session *x, struct err *e)
{
	int r;

	s->doing = "add a session";
	r = store_within(s, true, sessions_add_session, x, e);
	if (r == -EEXIST)
		return err_set(e, ERR_USE, EEXIST,
			"cannot add a session: there is one called '%s' already",
			x->name[0] ? x->name : x->id);
	if (r < 0)
		return r;
	x->used_ms = x->created_ms;
	return 0;
}

static int find_exactly(struct store *s, const char *word, struct store_session *ret, struct err *e)
{
	return store_ask(s, store_see_session, ret, e,
		"SELECT " SQL_SESSION
		" FROM bawn_sessions WHERE id = $1 OR (name = $1 AND name <> '')",
		VALUE_TEXT(word));
}

static bool is_beginning(const char *word)
{
	for (; *word; word++)
		if (str_hex_digit(*word) < 0)
			return false;
	return true;
}

int store_find_session(struct store *s, const char *word, struct store_session *ret, struct err *e)
{
	own(store_session) struct store_session found = { 0 };
	int r = 0;

	s->doing = "find a session";
	if (store_is_word(word, STORE_NAME_SIZE))
		r = find_exactly(s, word, &found, e);
	if (!r && store_is_word(word, STORE_ID_SIZE) && is_beginning(word))
		r = store_ask(s, store_see_session, &found, e,
			"SELECT " SQL_SESSION " FROM bawn_sessions "
			"WHERE substr(id, 1, CAST($2 AS integer)) = $1 ORDER BY seq LIMIT 2",
			VALUE_TEXT(word), VALUE_NUM(strlen(word)));
	if (r < 0)
		return r;
	if (r == 0)
		return err_hint(e, err_set(e, ERR_USE, ENOENT, "cannot find session '%s'", word),
			"bawn session list");
	if (r > 1)
		return err_hint(e,
			err_set(e, ERR_USE, ENOTUNIQ,
				"cannot find session '%s': several ids begin like this", word),
			"write more of it");
	*ret = found;
	found = (struct store_session){ 0 };
	return 0;
}

/* A page of them is read before any is shown: who sees them may ask the store. */
struct page {
	struct store_session rows[PAGE];
	size_t count;
	int64_t last; /* seq */
};

static void page_done(struct page **p)
{
	for (size_t i = 0; *p && i < (*p)->count; i++)
		store_session_done(&(*p)->rows[i]);
	free(*p);
}

static int sessions_see_in_page(void *of, const struct store_value *v)
{
	struct page *p = of;

	p->last = v[SQL_SESSION_COUNT - 1].num;
	return store_see_session(&p->rows[p->count++], v);
}

static int sessions_read_page(struct store *s, struct page *p, struct err *e)
{
	for (size_t i = 0; i < p->count; i++)
		store_session_done(&p->rows[i]);
	p->count = 0;
	s->doing = "list the sessions";
	return store_ask(s, sessions_see_in_page, p, e,
		"SELECT " SQL_SESSION " FROM bawn_sessions WHERE seq > $1 ORDER BY seq LIMIT $2",
		VALUE_NUM(p->last), VALUE_NUM(PAGE));
}

int store_each_session(struct store *s, int (*see)(void *of, const struct store_session *x),
	void *of, struct err *e)
{
	__attribute__((cleanup(page_done))) struct page *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_set(e, ERR_SYS, ENOMEM, "cannot list the sessions: no memory");
	do {
		r = sessions_read_page(s, p, e);
		for (size_t i = 0; r >= 0 && i < p->count; i++) {
			int seen = see(of, &p->rows[i]);

			if (seen)
				return seen;
		}
	} while (r == PAGE);
	return r < 0 ? r : 0;
}

/* --- states --- */

static int touch_session(struct store *s, void *of, struct err *e)
{
	const char *id = *(const char **)of;
	int r = store_tell(s, e,
		"UPDATE bawn_sessions SET used_ms = {now} WHERE id = $1 AND state <> " SQL_REMOVING,
		VALUE_TEXT(id));

	return r == 0 ? sessions_say_missing(s, id, e) : r;
}

int store_touch_session(struct store *s, const char *id, struct err *e)
{
	int r;

	s->doing = "use a session";
	r = store_within(s, false, touch_session, &id, e);
	return r < 0 ? r : 0;
}

struct wanted {
	const char *id;
	enum store_session_state state;
};

static int sessions_set_state(struct store *s, void *of, struct err *e)
{
	const struct wanted *w = of;
	int r = store_tell(s, e,
		"UPDATE bawn_sessions SET state = $2, queued = 0, head_ms = 0 "
		"WHERE id = $1 AND (state <> " SQL_REMOVING " OR state = $2)",
		VALUE_TEXT(w->id), VALUE_NUM(w->state));

	if (r == 0)
		return sessions_say_missing(s, w->id, e);
	if (r > 0)
		r = cancel_runs(s, w->id,
			w->state == STORE_STOPPED ? "the session was stopped before it began"
						  : "the session was removed before it began",
			e);
	store_ring(s);
	return r;
}

static int open_session(struct store *s, void *of, struct err *e)
{
	const char *id = *(const char **)of;
	int r = store_tell(s, e,
		"UPDATE bawn_sessions SET state = " SQL_OPEN ", used_ms = {now} "
		"WHERE id = $1 AND state <> " SQL_REMOVING,
		VALUE_TEXT(id));

	return r == 0 ? sessions_say_missing(s, id, e) : r;
}

int store_set_state(struct store *s, const char *id, enum store_session_state state, struct err *e)
{
	struct wanted w = { id, state };
	int r;

	s->doing = state == STORE_OPEN      ? "start a session"
		   : state == STORE_STOPPED ? "stop a session"
					    : "remove a session";
	r = state == STORE_OPEN ? store_within(s, true, open_session, &id, e)
				: store_within(s, true, sessions_set_state, &w, e);
	return r < 0 ? r : 0;
}

static int begin_sweep(struct store *s, const char *id, struct err *e)
{
	int r = store_tell(s, e,
		    "UPDATE bawn_sessions SET state = " SQL_REMOVING ", queued = 0, head_ms = 0 "
		    "WHERE id = $1 AND state <> " SQL_REMOVING " AND " SQL_EXPIRED,
		    VALUE_TEXT(id)),
	    cancelled;

	if (r <= 0)
		return r;
	cancelled = cancel_runs(s, id, "the session expired before it began", e);
	store_ring(s);
	return cancelled < 0 ? cancelled : 1;
}

struct many {
	const char *const *ids;
	size_t count;
	bool *begun;
};

static int begin_sweeps(struct store *s, void *of, struct err *e)
{
	struct many *m = of;

	for (size_t i = 0; i < m->count; i++) {
		int r = begin_sweep(s, m->ids[i], e);

		if (r < 0)
			return r;
		m->begun[i] = r == 1;
	}
	return 0;
}

int store_begin_sweeps(
	struct store *s, const char *const *ids, size_t count, bool *ret_begun, struct err *e)
{
	struct many m = { ids, count, ret_begun };

	s->doing = "remove expired sessions";
	return store_within(s, true, begin_sweeps, &m, e);
}

static int remove_session(struct store *s, void *of, struct err *e)
{
	const char *id = *(const char **)of;
	int r = store_tell(s, e, "DELETE FROM bawn_sessions WHERE id = $1", VALUE_TEXT(id));

	if (r == 0)
		return sessions_say_missing(s, id, e);
	if (r > 0)
		r = store_tell(s, e, "DELETE FROM bawn_saved WHERE session = $1", VALUE_TEXT(id));
	if (r >= 0)
		r = cancel_runs(s, id, "the session was removed before it began", e);
	if (r >= 0)
		r = store_lose_runs(s, id, e);
	store_ring(s);
	return r;
}

int store_remove_session(struct store *s, const char *id, struct err *e)
{
	int r;

	s->doing = "remove a session";
	r = store_within(s, true, remove_session, &id, e);
	return r < 0 ? r : 0;
}

static int remove_sessions(struct store *s, void *of, struct err *e)
{
	struct many *m = of;

	for (size_t i = 0; i < m->count; i++) {
		const char *id = m->ids[i];
		int r = remove_session(s, &id, e);

		if (r < 0 && r != -ENOENT)
			return r;
		if (r < 0 && e)
			*e = (struct err){ 0 };
	}
	return 0;
}

int store_remove_sessions(struct store *s, const char *const *ids, size_t count, struct err *e)
{
	struct many m = { ids, count, NULL };

	s->doing = "remove sessions";
	return store_within(s, true, remove_sessions, &m, e);
}

/* --- workers --- */

/* Workers: that they are there, and what they have. */

static int renew_worker(struct store *s, void *of, struct err *e)
{
	const struct store_worker *w = *(const struct store_worker **)of;
	int r = store_tell(s, e,
		"INSERT INTO bawn_workers (name, place, host, slots, lease_ms, seen_ms) "
		"VALUES ($1, $2, $3, $4, $5, {now}) ON CONFLICT (name) DO UPDATE SET "
		"place = excluded.place, host = excluded.host, slots = excluded.slots, "
		"lease_ms = excluded.lease_ms, seen_ms = excluded.seen_ms",
		VALUE_TEXT(w->name), VALUE_TEXT(w->place), VALUE_TEXT(w->host), VALUE_NUM(w->slots),
		VALUE_NUM(w->lease_ms));

	if (r < 0)
		return r;
	return store_tell(s, e,
		"UPDATE bawn_sessions SET lease_ms = {now} + $2 WHERE worker = $1 AND worker <> ''",
		VALUE_TEXT(w->name), VALUE_NUM(w->lease_ms));
}

int store_renew_worker(struct store *s, const struct store_worker *w, struct err *e)
{
	int r;

	s->doing = "renew the worker's leases";
	r = store_within(s, false, renew_worker, &w, e);
	return r < 0 ? r : 0;
}

static int remove_worker(struct store *s, void *of, struct err *e)
{
	const char *name = *(const char **)of;
	/* is_held: the worker has not ended its runs, so a process may still write to the
	 * workspace. */
	int r = store_tell(s, e,
		"UPDATE bawn_sessions SET worker = '', lease_ms = 0, running = 0, "
		"is_held = CASE WHEN running > 0 THEN 1 ELSE 0 END "
		"WHERE worker = $1 AND worker <> ''",
		VALUE_TEXT(name));

	if (r >= 0)
		r = store_tell(s, e,
			"UPDATE bawn_runs SET state = " SQL_LOST ", ended_ms = {now}, error = $2 "
			"WHERE worker = $1 AND state = " SQL_RUNNING,
			VALUE_TEXT(name), VALUE_STRING("its worker went before it ended"));
	if (r >= 0)
		r = store_tell(s, e, "DELETE FROM bawn_workers WHERE name = $1", VALUE_TEXT(name));
	store_ring(s);
	return r;
}

int store_remove_worker(struct store *s, const char *name, struct err *e)
{
	int r;

	s->doing = "remove the worker";
	r = store_within(s, true, remove_worker, &name, e);
	return r < 0 ? r : 0;
}

struct list {
	struct store_worker *rows;
	size_t count, room;
};

static int see_worker(void *of, const struct store_value *v)
{
	struct list *l = of;
	struct store_worker *x;
	int r;

	if (l->count == l->room) {
		size_t room = l->room ? l->room * 2 : 16;
		struct store_worker *grown = reallocarray(l->rows, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->rows = grown;
		l->room = room;
	}
	x = &l->rows[l->count++];
	*x = (struct store_worker){ .slots = (unsigned)v[3].num,
		.lease_ms = v[4].num,
		.seen_ms = v[5].num,
		.is_alive = v[6].num,
		.sessions = (uint64_t)v[7].num,
		.runs = (uint64_t)v[8].num };
	r = store_copy_text(&v[0], x->name, sizeof(x->name));
	if (!r)
		r = store_copy_text(&v[1], x->place, sizeof(x->place));
	return r ? r : store_copy_text(&v[2], x->host, sizeof(x->host));
}

int store_each_worker(struct store *s, int (*see)(void *of, const struct store_worker *x), void *of,
	struct err *e)
{
	struct list l = { 0 };
	int r;

	s->doing = "list the workers";
	r = store_ask(s, see_worker, &l, e,
		"SELECT name, place, host, slots, lease_ms, seen_ms, "
		"CASE WHEN seen_ms + lease_ms > {now} THEN 1 ELSE 0 END, "
		"(SELECT count(*) FROM bawn_sessions s WHERE s.worker = w.name AND s.worker <> ''), "
		"(SELECT count(*) FROM bawn_runs r WHERE r.worker = w.name AND r.state = " SQL_RUNNING
		") FROM bawn_workers w WHERE seen_ms > {now} - $1 ORDER BY name",
		VALUE_NUM(STORE_FORGET_MS));
	if (r >= 0)
		r = 0;
	for (size_t i = 0; !r && i < l.count; i++)
		r = see(of, &l.rows[i]);
	free(l.rows);
	return r;
}

int store_has_other_place(struct store *s, const char *place, bool *ret, struct err *e)
{
	int64_t others = 0;
	int r;

	s->doing = "ask for other workers";
	r = store_ask(s, store_see_num, &others, e,
		"SELECT count(*) FROM bawn_workers WHERE place <> $1 AND seen_ms + lease_ms > {now}",
		VALUE_TEXT(place));
	if (r < 0)
		return r;
	*ret = others > 0;
	return 0;
}
