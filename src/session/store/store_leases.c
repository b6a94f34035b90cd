/*
 * Leases: what a worker may write, and what of it is not true any more.
 *
 * A token belongs to one lease only. So who has the newest token has the lease, as long as the row
 * names any worker at all: none is named once the lease was given back or ended from outside.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "session/store/store_inside.h"

int store_say_stale(struct store *s, const char *session, struct err *e)
{
	return err_set(e, ERR_REFUSED, ESTALE,
		"cannot %s: the lease on session %s has ended, and another worker may have it",
		s->doing, session);
}

int store_hold_lease(struct store *s, const char *session, uint64_t token, struct err *e)
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
