/* Workers: that they are there, and what they have. */
#include <errno.h>
#include <stdlib.h>

#include "session/store/store_inside.h"

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
	/* What it did not end is not given back: somebody may still write there. */
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
