/*
 * store_postgres - the store in a PostgreSQL database that several machines share.
 *
 * Runs as:  the operator, in bawn-pg: libpq cannot be linked into the static program.
 * Must not: repeat the password, which may be in the URL, in an error.
 *
 * A connection that broke is made anew by the next call, with what it had: its settings, its
 * statements, and that it listens. Within a transaction there is no next call: it has failed.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "session/store/store_postgres.h"

/* The types of values, as the server numbers them. */
#define TYPE_BYTES 17
#define TYPE_INT8  20
#define TYPE_INT2  21
#define TYPE_INT4  23
#define TYPE_TEXT  25

/* Each statement sees what was committed before it, whatever the server's own setting is. */
#define SQL_BEGIN "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

/* --- statements --- */

static size_t find_cached(struct postgres *p, const char *sql)
{
	size_t i = 0;

	while (i < p->cached && p->cache[i].sql != sql)
		i++;
	if (i < p->cached || i == STORE_MAX_CACHED)
		return i;
	p->cache[i].spelt = store_spell(sql, p->store.driver->dialect);
	if (!p->cache[i].spelt)
		return STORE_MAX_CACHED;
	p->cache[i].sql = sql;
	p->cache[i].is_prepared = false;
	return p->cached++;
}

/* Values as the server wants them: numbers are eight bytes, the highest first. */
struct wire {
	const char *values[STORE_MAX_VALUES];
	int sizes[STORE_MAX_VALUES], formats[STORE_MAX_VALUES];
	Oid types[STORE_MAX_VALUES];
	uint64_t numbers[STORE_MAX_VALUES];
	int count;
};

static void set_wire(struct wire *w, const struct store_value *values, size_t count)
{
	static const Oid types[] = { [STORE_NULL] = TYPE_TEXT,
		[STORE_NUM] = TYPE_INT8,
		[STORE_TEXT] = TYPE_TEXT,
		[STORE_BYTES] = TYPE_BYTES };

	w->count = (int)count;
	for (size_t i = 0; i < count; i++) {
		w->numbers[i] = htobe64((uint64_t)values[i].num);
		w->values[i] = values[i].kind == STORE_NUM ? (const char *)&w->numbers[i]
							   : values[i].bytes;
		w->sizes[i] = values[i].kind == STORE_NUM ? 8 : (int)values[i].size;
		w->formats[i] = 1;
		w->types[i] = types[values[i].kind];
	}
}

static int postgres_prepare(
	struct postgres *p, size_t at, const char *name, const struct wire *w, struct err *e)
{
	own_result PGresult *result = NULL;

	if (p->cache[at].is_prepared)
		return 0;
	result = PQprepare(p->connection, name, p->cache[at].spelt, w->count, w->types);
	if (!postgres_is_good(result))
		return postgres_say_failure(p, result, e);
	p->cache[at].is_prepared = true;
	return 0;
}

/* The results of what was sent, up to the last; the first that is not good is kept as well. */
static PGresult *postgres_collect(struct postgres *p)
{
	PGresult *kept = NULL, *result;
	unsigned ends = 0;

	/* Each statement's results end with a NULL; two in a row end all. */
	while (ends < 2) {
		result = PQgetResult(p->connection);
		ends = result ? 0 : ends + 1;
		if (!result)
			continue;
		if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
			PQclear(result);
			break;
		}
		if (kept && !postgres_is_good(kept)) {
			PQclear(result);
			continue;
		}
		PQclear(kept);
		kept = result;
	}
	return kept;
}

/* The first statement of a transaction takes its beginning along: one way there and back. */
static PGresult *send_with_begin(struct postgres *p, const char *name, const struct wire *w)
{
	PGresult *result = NULL;

	if (PQenterPipelineMode(p->connection) &&
		PQsendQueryParams(p->connection, SQL_BEGIN, 0, NULL, NULL, NULL, NULL, 1) &&
		PQsendQueryPrepared(
			p->connection, name, w->count, w->values, w->sizes, w->formats, 1) &&
		PQpipelineSync(p->connection))
		result = postgres_collect(p);
	PQexitPipelineMode(p->connection);
	return result;
}

static PGresult *send_statement(struct postgres *p, const char *name, const struct wire *w)
{
	if (!p->is_begun || p->is_asked)
		return PQexecPrepared(
			p->connection, name, w->count, w->values, w->sizes, w->formats, 1);
	p->is_asked = true;
	return send_with_begin(p, name, w);
}

static int64_t postgres_read_number(const char *bytes, int size)
{
	uint64_t n = size > 0 && (bytes[0] & 0x80) ? UINT64_MAX : 0;

	for (int i = 0; i < size; i++)
		n = n << 8 | (unsigned char)bytes[i];
	return (int64_t)n;
}

static struct store_value value_at(const PGresult *result, int row, int at)
{
	struct store_value v = { .kind = STORE_NULL };
	Oid type = PQftype(result, at);

	if (PQgetisnull(result, row, at))
		return v;
	v.bytes = PQgetvalue(result, row, at);
	v.size = (size_t)PQgetlength(result, row, at);
	v.kind = STORE_BYTES;
	if (type == TYPE_INT8 || type == TYPE_INT4 || type == TYPE_INT2) {
		v.kind = STORE_NUM;
		v.num = postgres_read_number(v.bytes, (int)v.size);
	}
	return v;
}

static int show_rows(
	struct postgres *p, const PGresult *result, store_see *see, void *of, struct err *e)
{
	struct store_value v[STORE_MAX_COLUMNS] = { 0 };
	int rows = PQntuples(result), columns = PQnfields(result), seen = 0;

	for (int i = 0; i < rows && see && !seen; i++) {
		for (int at = 0; at < columns && at < STORE_MAX_COLUMNS; at++)
			v[at] = value_at(result, i, at);
		seen = see(of, v);
	}
	if (seen)
		return err_set(e, ERR_SYS, seen < 0 ? -seen : EPROTO, "cannot %s: %s: %s",
			p->store.doing, p->store.name,
			seen == -ENOMEM ? "there is no memory" : "a row is not what it should be");
	return rows;
}

/* How many rows a command changed. */
static int read_count(PGresult *result)
{
	long long n = strtoll(PQcmdTuples(result), NULL, 10);

	return n > INT_MAX ? INT_MAX : (int)n;
}

static int postgres_run(struct store *s, const char *sql, const struct store_value *values,
	size_t count, store_see *see, void *of, struct err *e)
{
	struct postgres *p = postgres_of(s);
	own_result PGresult *result = NULL;
	char name[32];
	struct wire w;
	size_t at = find_cached(p, sql);
	int r;

	if (at == STORE_MAX_CACHED || count > STORE_MAX_VALUES)
		return err_set(e, ERR_SYS, ENOMEM, "cannot %s: no memory", s->doing);
	if (p->is_asked && !p->connection)
		return postgres_say_broken(p, "", e);
	/* Nothing was done yet: a transaction may begin on a new connection. */
	r = p->is_asked ? 0 : postgres_connect(p, e);
	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "bawn%zu", at);
	set_wire(&w, values, count);
	r = postgres_prepare(p, at, name, &w, e);
	if (r < 0)
		return r;
	result = send_statement(p, name, &w);
	postgres_take_notices(p);
	if (!postgres_is_good(result))
		return postgres_say_failure(p, result, e);
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		return show_rows(p, result, see, of, e);
	return read_count(result);
}

/* --- transactions --- */

static int postgres_begin(struct store *s, bool is_lasting, struct err *e)
{
	struct postgres *p = postgres_of(s);

	(void)is_lasting;
	(void)e;
	p->is_begun = true;
	p->is_asked = false;
	return 0;
}

static void postgres_rollback(struct store *s)
{
	struct postgres *p = postgres_of(s);

	if (p->is_asked && p->connection)
		postgres_run_plain(p, "ROLLBACK", NULL);
	p->is_begun = p->is_asked = false;
}

static PGresult *send_commit(struct postgres *p, bool rings)
{
	PGresult *result = NULL;

	if (!rings)
		return PQexec(p->connection, "COMMIT");
	if (PQenterPipelineMode(p->connection) &&
		PQsendQueryParams(
			p->connection, "NOTIFY " POSTGRES_CHANNEL, 0, NULL, NULL, NULL, NULL, 1) &&
		PQsendQueryParams(p->connection, "COMMIT", 0, NULL, NULL, NULL, NULL, 1) &&
		PQpipelineSync(p->connection))
		result = postgres_collect(p);
	PQexitPipelineMode(p->connection);
	return result;
}

static int postgres_commit(struct store *s, bool rings, struct err *e)
{
	struct postgres *p = postgres_of(s);
	own_result PGresult *result = NULL;
	int r = 0;

	if (p->is_asked) {
		result = send_commit(p, rings);
		postgres_take_notices(p);
		/* A transaction in which something failed is "committed" by rolling it back. */
		if (!postgres_is_good(result) || !str_eq(PQcmdStatus(result), "COMMIT"))
			r = postgres_say_failure(p, result, e);
	}
	if (r < 0)
		postgres_rollback(s);
	p->is_begun = p->is_asked = false;
	return r;
}

static int postgres_lock_schema(struct store *s, struct err *e)
{
	int r = store_tell(s, e, "SELECT pg_advisory_xact_lock($1)", VALUE_NUM(0x6261776e));

	return r < 0 ? r : 0;
}

const struct store_driver store_postgres_driver = {
	.dialect = 1,
	.has_row_locks = true,
	.open = postgres_open,
	.close = postgres_close,
	.run = postgres_run,
	.begin = postgres_begin,
	.commit = postgres_commit,
	.rollback = postgres_rollback,
	.lock_schema = postgres_lock_schema,
	.listen = postgres_listen,
	.wait_fd = postgres_wait_fd,
	.hear = postgres_hear,
};
