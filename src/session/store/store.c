/*
 * store - opens a store, and what all that is asked of it has in common.
 *
 * Runs as: the operator.
 */
#include "session/store/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "session/store/store_inside.h"

/*
 * The tables, as numbered steps. One that was released is never changed: what is to be different
 * is a step of its own at the end.
 */

/*
 * Times are milliseconds. In bawn_sessions `queued`, `running` and `head_ms` (when the oldest
 * queued run was queued) repeat what bawn_runs says, so that a run to be taken is found, and is
 * certain, by the session's row alone. is_held: its last lease was not given back.
 *
 * Texts that bawn did not check letter by letter are bytes: paths are.
 */
static const char *const steps[][8] = {
	{
		"CREATE TABLE bawn_sessions (seq {serial}, id TEXT NOT NULL UNIQUE, "
		"name TEXT NOT NULL, place TEXT NOT NULL, workspace BIGINT NOT NULL, "
		"state BIGINT NOT NULL DEFAULT 0, created_ms BIGINT NOT NULL, "
		"used_ms BIGINT NOT NULL, ttl_ms BIGINT NOT NULL, worker TEXT NOT NULL DEFAULT '', "
		"token BIGINT NOT NULL DEFAULT 0, lease_ms BIGINT NOT NULL DEFAULT 0, "
		"is_held BIGINT NOT NULL DEFAULT 0, queued BIGINT NOT NULL DEFAULT 0, "
		"running BIGINT NOT NULL DEFAULT 0, head_ms BIGINT NOT NULL DEFAULT 0, "
		"spec {bytes} NOT NULL, project {bytes} NOT NULL)",
		"CREATE UNIQUE INDEX bawn_sessions_name ON bawn_sessions (name) WHERE name <> ''",
		"CREATE INDEX bawn_sessions_worker ON bawn_sessions (worker) WHERE worker <> ''",
		"CREATE INDEX bawn_sessions_head ON bawn_sessions (head_ms, seq) WHERE queued > 0",
		"CREATE TABLE bawn_runs (seq {serial}, id TEXT NOT NULL UNIQUE, "
		"session TEXT NOT NULL, worker TEXT NOT NULL DEFAULT '', "
		"state BIGINT NOT NULL DEFAULT 0, token BIGINT NOT NULL DEFAULT 0, "
		"queued_ms BIGINT NOT NULL, taken_ms BIGINT NOT NULL DEFAULT 0, "
		"ended_ms BIGINT NOT NULL DEFAULT 0, status BIGINT NOT NULL DEFAULT 0, "
		"request {bytes} NOT NULL, error {bytes}, record {bytes}, out {bytes}, err "
		"{bytes})",
		"CREATE INDEX bawn_runs_session ON bawn_runs (session, state, seq)",
		"CREATE INDEX bawn_runs_worker ON bawn_runs (worker) WHERE state = 1",
	},
	{
		"CREATE TABLE bawn_workers (name TEXT NOT NULL PRIMARY KEY, place TEXT NOT NULL, "
		"host TEXT NOT NULL, slots BIGINT NOT NULL, lease_ms BIGINT NOT NULL, "
		"seen_ms BIGINT NOT NULL)",
		"CREATE TABLE bawn_saved (session TEXT NOT NULL PRIMARY KEY, "
		"token BIGINT NOT NULL, saved_ms BIGINT NOT NULL, bytes {bytes} NOT NULL)",
	},
};

#define STEP_COUNT ((int64_t)COUNT_OF(steps))

/* Reads the number of upgrade steps that were taken. */
static int schema_read_version(struct store *s, int64_t *ret, struct err *e)
{
	int r = store_ask(s, store_see_num, ret, e,
		"SELECT coalesce(max(version), 0) FROM bawn_schema WHERE version > $1",
		VALUE_NUM(0));

	return r < 0 ? r : 0;
}

/* Reads the number of upgrade steps outside of a transaction; 0 also if there are no tables. */
static int look_at_version(struct store *s, int64_t *ret, struct err *e)
{
	int64_t has_table = 0;
	int r = store_ask(
		s, store_see_num, &has_table, e, "{has_schema}", VALUE_TEXT("bawn_schema"));

	*ret = 0;
	return r < 0 || !has_table ? r : schema_read_version(s, ret, e);
}

static int schema_take_step(struct store *s, int64_t step, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < 8 && steps[step][i] && r >= 0; i++)
		r = s->driver->run(s, steps[step][i], NULL, 0, NULL, NULL, e);
	if (r < 0)
		return r;
	return store_tell(s, e, "INSERT INTO bawn_schema (version, taken_ms) VALUES ($1, {now})",
		VALUE_NUM(step + 1));
}

static int schema_take_steps(struct store *s, void *of, struct err *e)
{
	int64_t version = 0;
	int r = s->driver->lock_schema(s, e);

	(void)of;
	/* Whether it is there is not looked up: PostgreSQL may remember that it was not. */
	if (r >= 0)
		r = s->driver->run(s,
			"CREATE TABLE IF NOT EXISTS bawn_schema (version BIGINT NOT NULL PRIMARY "
			"KEY, taken_ms BIGINT NOT NULL)",
			NULL, 0, NULL, NULL, e);
	if (r >= 0)
		r = schema_read_version(s, &version, e);
	while (r >= 0 && version < STEP_COUNT)
		r = schema_take_step(s, version++, e);
	return r;
}

static int store_upgrade(struct store *s, struct err *e)
{
	int64_t version = 0;
	int r;

	s->doing = "open the store";
	r = look_at_version(s, &version, e);
	if (r >= 0 && version < STEP_COUNT)
		r = store_within(s, true, schema_take_steps, NULL, e);
	if (r >= 0 && version > STEP_COUNT)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPROTO,
				"cannot open the store: %s has tables of version %lld, and this "
				"bawn knows %lld",
				s->name, (long long)version, (long long)STEP_COUNT),
			"use the newer bawn that made them");
	return r < 0 ? r : 0;
}

const char *const store_session_words[STORE_SESSION_STATE_COUNT] = {
	[STORE_OPEN] = "open",
	[STORE_STOPPED] = "stopped",
	[STORE_REMOVING] = "removing",
};

const char *const store_run_words[STORE_RUN_STATE_COUNT] = {
	[STORE_QUEUED] = "queued",
	[STORE_RUNNING] = "running",
	[STORE_ENDED] = "ended",
	[STORE_FAILED] = "failed",
	[STORE_LOST] = "lost",
	[STORE_CANCELLED] = "cancelled",
};

static const struct {
	const char *prefix;
	const struct store_driver *driver;
	bool is_whole; /* the driver wants the prefix too */
} kinds[] = {
	{ "sqlite:", &store_sqlite_driver, false },
	{ "postgresql://", &store_postgres_driver, true },
	{ "postgres://", &store_postgres_driver, true },
};

/* Attempts of a transaction that the database aborts in favour of another. */
#define MAX_TRIES 5

int store_open(const char *where, struct store **ret, struct err *e)
{
	struct store *s = NULL;
	int r;

	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		if (!str_starts(where, kinds[i].prefix))
			continue;
		if (!kinds[i].driver)
			return err_hint(e,
				err_set(e, ERR_REFUSED, EOPNOTSUPP,
					"cannot open the store: this program is built without "
					"PostgreSQL"),
				"bawn-pg, which is installed beside it, has it");
		r = kinds[i].driver->open(
			where + (kinds[i].is_whole ? 0 : strlen(kinds[i].prefix)), &s, e);
		if (r < 0)
			return r;
		r = store_upgrade(s, e);
		if (r < 0) {
			store_close(s);
			return r;
		}
		*ret = s;
		return 0;
	}
	/* Not repeated: it may have a password in it. */
	return err_set(e, ERR_USE, EINVAL,
		"cannot open the store: it is neither sqlite:PATH nor "
		"postgresql://USER@HOST/DATABASE");
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (s->unsure)
		store_taken_done(s->unsure);
	free(s->unsure);
	s->driver->close(s);
}

int store_listen(struct store *s, struct err *e)
{
	s->doing = "listen";
	return s->driver->listen(s, e);
}

int store_wait_fd(const struct store *s)
{
	return s->driver->wait_fd(s);
}

int store_hear(struct store *s, struct err *e)
{
	s->doing = "listen";
	return s->driver->hear(s, e);
}

int store_now(struct store *s, int64_t *ret_ms, struct err *e)
{
	int r;

	s->doing = "read the clock";
	r = store_ask(s, store_see_num, ret_ms, e, "SELECT {now} WHERE $1 = 1", VALUE_NUM(1));
	return r < 0 ? r : 0;
}

const char *store_name(const struct store *s)
{
	return s->name;
}

/* --- values --- */

int store_see_num(void *of, const struct store_value *v)
{
	*(int64_t *)of = v[0].num;
	return 0;
}

/* Nothing that PostgreSQL would not take for text comes as far as it. */
bool store_is_word(const char *word, size_t size)
{
	size_t n = strlen(word);

	if (!n || n >= size)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!str_is_digit(word[i]) && !str_is_letter(word[i]) && !strchr("._-", word[i]))
			return false;
	return true;
}

/* --- transactions --- */

void store_ring(struct store *s)
{
	s->rings = true;
}

static int try_within(struct store *s, bool is_lasting,
	int (*work)(struct store *s, void *of, struct err *e), void *of, struct err *e)
{
	int r = s->driver->begin(s, is_lasting, e), result;

	if (r < 0)
		return r;
	s->rings = false;
	result = work(s, of, e);
	if (result < 0) {
		s->driver->rollback(s);
		return result;
	}
	r = s->driver->commit(s, s->rings, e);
	return r < 0 ? r : result;
}

int store_within(struct store *s, bool is_lasting,
	int (*work)(struct store *s, void *of, struct err *e), void *of, struct err *e)
{
	int r = -EAGAIN;

	for (int i = 0; i < MAX_TRIES && r == -EAGAIN; i++)
		r = try_within(s, is_lasting, work, of, e);
	return r;
}

/* --- spelling --- */

/* The words that the two databases spell differently. */

#define MAX_SQL 16384

/* By driver->dialect: SQLite, PostgreSQL. */
static const struct {
	const char *word, *spelt[2];
} words[] = {
	/*
	 * Milliseconds since 1970. SQLite's is made by the driver: its own knows only seconds. As a
	 * query, PostgreSQL's is asked for once in a statement, not in every row.
	 */
	{ "{now}",
		{ "bawn_now()",
			"(SELECT CAST(date_part('epoch', clock_timestamp()) * 1000 AS bigint))" } },
	/* Rows that somebody else has at the moment are not there. */
	{ "{skip}", { "", "FOR UPDATE SKIP LOCKED" } },
	{ "{bytes}", { "BLOB", "BYTEA" } },
	{ "{serial}", { "INTEGER PRIMARY KEY AUTOINCREMENT",
			      "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY" } },
	{ "{has_schema}",
		{ "SELECT count(*) FROM sqlite_master WHERE name = $1",
			"SELECT count(*) FROM (SELECT 1) AS one WHERE to_regclass($1) IS NOT NULL" } },
};

/* Replaces a word in braces at `at`. Returns its length, or 0 if it is not one. */
static size_t spell_word(const char *at, unsigned dialect, struct buf *ret)
{
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (str_starts(at, words[i].word)) {
			const char *spelt = words[i].spelt[dialect];

			for (; *spelt; spelt++)
				buf_putc(ret, *spelt == '$' && !dialect ? '?' : *spelt);
			return strlen(words[i].word);
		}
	return 0;
}

char *store_spell(const char *sql, unsigned dialect)
{
	own(buf) struct buf b;

	buf_init(&b, MAX_SQL);
	while (*sql) {
		size_t n = *sql == '{' ? spell_word(sql, dialect, &b) : 0;

		if (!n)
			buf_putc(&b, *sql == '$' && !dialect ? '?' : *sql);
		sql += n ? n : 1;
	}
	return b.failed ? NULL : take_ptr(b.data);
}

/* --- rows --- */

int store_copy_text(const struct store_value *v, char *ret, size_t size)
{
	if (v->size >= size)
		return -EOVERFLOW;
	memcpy(ret, v->size ? v->bytes : "", v->size);
	ret[v->size] = '\0';
	return 0;
}

int store_copy_bytes(const struct store_value *v, char **ret, size_t *ret_size)
{
	char *copy = malloc(v->size + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, v->size ? v->bytes : "", v->size);
	copy[v->size] = '\0';
	free(*ret);
	*ret = copy;
	if (ret_size)
		*ret_size = v->size;
	return 0;
}

/* A state that a newer bawn wrote is none that can be acted upon. */
static int copy_state(const struct store_value *v, int count, unsigned *ret)
{
	if (v->num < 0 || v->num >= count)
		return -EPROTO;
	*ret = (unsigned)v->num;
	return 0;
}

int store_see_session(void *of, const struct store_value *v)
{
	struct store_session *x = of;
	unsigned state = 0;
	int r = store_copy_text(&v[0], x->id, sizeof(x->id));

	if (!r)
		r = store_copy_text(&v[1], x->name, sizeof(x->name));
	if (!r)
		r = store_copy_text(&v[2], x->place, sizeof(x->place));
	if (!r)
		r = copy_state(&v[4], STORE_SESSION_STATE_COUNT, &state);
	if (!r)
		r = store_copy_text(&v[8], x->worker, sizeof(x->worker));
	if (!r)
		r = store_copy_bytes(&v[15], &x->spec, NULL);
	if (!r)
		r = store_copy_bytes(&v[16], &x->project, NULL);
	x->workspace = (uint64_t)v[3].num;
	x->state = (enum store_session_state)state;
	x->created_ms = v[5].num;
	x->used_ms = v[6].num;
	x->ttl_ms = v[7].num;
	x->token = (uint64_t)v[9].num;
	x->lease_ms = v[10].num;
	x->is_lease_over = v[11].num;
	x->is_expired = v[12].num;
	x->queued = (uint64_t)v[13].num;
	x->running = (uint64_t)v[14].num;
	return r;
}

void store_session_done(struct store_session *x)
{
	free(x->spec);
	free(x->project);
	*x = (struct store_session){ 0 };
}

int store_see_run_short(void *of, const struct store_value *v)
{
	struct store_run *x = of;
	unsigned state = 0;
	int r = store_copy_text(&v[0], x->id, sizeof(x->id));

	if (!r)
		r = store_copy_text(&v[1], x->session, sizeof(x->session));
	if (!r)
		r = store_copy_text(&v[2], x->worker, sizeof(x->worker));
	if (!r)
		r = copy_state(&v[3], STORE_RUN_STATE_COUNT, &state);
	if (!r)
		r = store_copy_bytes(&v[9], &x->request, NULL);
	if (!r)
		r = store_copy_bytes(&v[10], &x->error, NULL);
	if (!r)
		r = store_copy_bytes(&v[11], &x->record, NULL);
	x->state = (enum store_run_state)state;
	x->token = (uint64_t)v[4].num;
	x->queued_ms = v[5].num;
	x->taken_ms = v[6].num;
	x->ended_ms = v[7].num;
	x->status = (int)v[8].num;
	return r;
}

int store_see_run(void *of, const struct store_value *v)
{
	struct store_run *x = of;
	int r = store_see_run_short(x, v);

	if (!r)
		r = store_copy_bytes(&v[13], &x->out, &x->out_size);
	if (!r)
		r = store_copy_bytes(&v[14], &x->err, &x->err_size);
	return r;
}

void store_run_done(struct store_run *x)
{
	free(x->request);
	free(x->error);
	free(x->record);
	free(x->out);
	free(x->err);
	*x = (struct store_run){ 0 };
}

void store_taken_done(struct store_taken *t)
{
	store_run_done(&t->run);
	store_session_done(&t->session);
	*t = (struct store_taken){ 0 };
}

/* --- the program that knows the store --- */

/*
 * libpq is not linked into bawn: it cannot be static, and loading it would cost every run
 * milliseconds. bawn-pg is the same program with it.
 */

#define PROGRAM "bawn-pg"

/*
 * From the folder of this program: in a build, and where they are installed, whatever the prefix.
 */
static const char *const places[] = { PROGRAM, "../libexec/bawn/" PROGRAM };

static bool program_is_elsewhere(const char *where)
{
	return where && (str_starts(where, "postgresql://") || str_starts(where, "postgres://"));
}

int store_prefer_program(const char *where, char *const argv[], struct err *e)
{
	char self[PATH_MAX], path[2 * PATH_MAX];
	ssize_t n;

	if (!program_is_elsewhere(where) || &store_postgres_driver)
		return 0;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return err_sys(e, errno,
			"cannot open the store: /proc/self/exe does not say where bawn is");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < COUNT_OF(places); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		execv(path, argv);
		if (errno != ENOENT && errno != ENOTDIR)
			return err_sys(e, errno,
				"cannot open the store: %s, which knows PostgreSQL, cannot be "
				"executed",
				path);
	}
	return err_set(e, ERR_REFUSED, ENOENT,
		"cannot open the store: PostgreSQL needs the program " PROGRAM
		", which is neither in %s nor in %s/../libexec/bawn",
		self, self);
}
