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
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "session/store/store_inside.h"

#define POSTGRES_CHANNEL "bawn"

struct postgres {
	struct store store;
	PGconn *connection; /* NULL: not connected */
	char *url, *password;
	bool is_begun; /* in a transaction */
	bool is_asked; /* the server knows of it */
	bool listens;
	int wait, heard; /* epoll; an eventfd for what came while something else was asked */
	size_t cached;
	struct {
		const char *sql;
		char *spelt;
		bool is_prepared; /* on this connection */
	} cache[STORE_MAX_CACHED];
};

static inline struct postgres *postgres_of(struct store *s)
{
	return (struct postgres *)(void *)s;
}

static inline void postgres_result_done(PGresult **result)
{
	PQclear(*result);
}

#define own_result __attribute__((cleanup(postgres_result_done)))

static void postgres_drop(struct postgres *p)
{
	if (p->connection)
		PQfinish(p->connection);
	p->connection = NULL;
	for (size_t i = 0; i < p->cached; i++)
		p->cache[i].is_prepared = false;
}

/* --- what goes wrong --- */

static bool postgres_is_good(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static const struct {
	const char *state;
	int num;
	const char *why;
} causes[] = {
	{ "23505", EEXIST, "it is there already" },
	{ "25006", EROFS, "the server only lets it be read" },
	{ "40001", EAGAIN, "others were in the way" },
	{ "40P01", EAGAIN, "others were in the way" },
	{ "42501", EACCES, NULL },
	{ "53100", ENOSPC, "the server's disk is full" },
	{ "53200", ENOMEM, "the server has no memory" },
	{ "55P03", EBUSY, "another has had it locked for 10 s" },
	{ "57014", EBUSY, "the server gave it up, because it took too long" },
};

/* The first line of what libpq or the server said, without the password. */
static void postgres_print_message(
	const struct postgres *p, const char *said, char *ret, size_t size)
{
	size_t secret = p->password ? strlen(p->password) : 0, n = 0;

	while (*said && *said != '\n' && n + 4 < size) {
		if (secret && !strncmp(said, p->password, secret)) {
			n += (size_t)snprintf(ret + n, size - n, "***");
			said += secret;
			continue;
		}
		ret[n++] = *said++;
	}
	ret[n] = '\0';
}

/* -EPIPE; the connection is dropped. */
static int postgres_say_broken(struct postgres *p, const char *said, struct err *e)
{
	char message[256];

	postgres_print_message(p, said, message, sizeof(message));
	postgres_drop(p);
	return err_set(e, ERR_SYS, EPIPE, "cannot %s: the connection to %s is lost: %s",
		p->store.doing, p->store.name, message[0] ? message : "nobody answers");
}

/* The sentence, and the errno, for a result that is not good, or for none. */
static int postgres_say_failure(struct postgres *p, const PGresult *result, struct err *e)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *said = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	char message[256];

	if (!p->connection || PQstatus(p->connection) == CONNECTION_BAD)
		return postgres_say_broken(p, said ? said : PQerrorMessage(p->connection), e);
	postgres_print_message(
		p, said ? said : PQerrorMessage(p->connection), message, sizeof(message));
	for (size_t i = 0; state && i < COUNT_OF(causes); i++)
		if (str_eq(causes[i].state, state))
			return err_set(e, ERR_SYS, causes[i].num, "cannot %s: %s: %s",
				p->store.doing, p->store.name,
				causes[i].why ? causes[i].why : message);
	return err_set(
		e, ERR_SYS, EIO, "cannot %s: %s: %s", p->store.doing, p->store.name, message);
}

#define OLDEST_SERVER 120000 /* version 12 */

/* --- connecting --- */

/* libpq would print them. */
static void ignore_notice(void *of, const char *message)
{
	(void)of;
	(void)message;
}

static int postgres_run_plain(struct postgres *p, const char *sql, struct err *e)
{
	own_result PGresult *result = PQexec(p->connection, sql);

	return postgres_is_good(result) ? 0 : postgres_say_failure(p, result, e);
}

/* Something may have happened that nobody was told. */
static void note_heard(struct postgres *p)
{
	if (p->heard >= 0)
		eventfd_write(p->heard, 1);
}

static int watch_connection(struct postgres *p, struct err *e)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (epoll_ctl(p->wait, EPOLL_CTL_ADD, PQsocket(p->connection), &event) < 0)
		return err_sys(e, errno, "cannot listen");
	note_heard(p);
	return postgres_run_plain(p, "LISTEN " POSTGRES_CHANNEL, e);
}

/*
 * A client that was stopped within a transaction does not keep others from its rows. And what is
 * looked for is the first by an index: the server, which cannot know how few it will have to look
 * at, would rather sort them all.
 */
#define SETTINGS                                                                                   \
	"SELECT set_config('lock_timeout', '10s', false), "                                        \
	"set_config('idle_in_transaction_session_timeout', '10s', false), "                        \
	"set_config('enable_sort', 'off', false), set_config('enable_bitmapscan', 'off', false), " \
	"set_config('jit', 'off', false)"

static int set_up_connection(struct postgres *p, struct err *e)
{
	int r;

	PQsetNoticeProcessor(p->connection, ignore_notice, NULL);
	if (PQserverVersion(p->connection) < OLDEST_SERVER)
		return err_set(e, ERR_REFUSED, EPROTONOSUPPORT,
			"cannot open the store: %s is PostgreSQL %d, which is older than 12",
			p->store.name, PQserverVersion(p->connection) / 10000);
	r = postgres_run_plain(p, SETTINGS, e);
	return r < 0 || !p->listens ? r : watch_connection(p, e);
}

static int postgres_connect(struct postgres *p, struct err *e)
{
	/* The URL's own parameters come last and win. */
	const char *keys[] = { "connect_timeout", "tcp_user_timeout", "keepalives_idle",
		"fallback_application_name", "client_encoding", "dbname", NULL };
	const char *values[] = { "10", "15000", "15", "bawn", "UTF8", p->url, NULL };
	int r;

	if (p->connection && PQstatus(p->connection) == CONNECTION_OK)
		return 0;
	postgres_drop(p);
	p->connection = PQconnectdbParams(keys, values, 1);
	if (!p->connection)
		return err_set(e, ERR_SYS, ENOMEM, "cannot %s: no memory", p->store.doing);
	if (PQstatus(p->connection) != CONNECTION_OK) {
		char message[300];

		postgres_print_message(p, PQerrorMessage(p->connection), message, sizeof(message));
		postgres_drop(p);
		return err_set(e, ERR_SYS, EPIPE, "cannot %s: %s", p->store.doing, message);
	}
	r = set_up_connection(p, e);
	if (r < 0)
		postgres_drop(p);
	return r;
}

/* To be called after each answer: what came with it makes no descriptor readable any more. */
static void postgres_take_notices(struct postgres *p)
{
	PGnotify *notice;

	while (p->listens && p->connection && (notice = PQnotifies(p->connection))) {
		PQfreemem(notice);
		note_heard(p);
	}
}

/* --- waiting --- */

static int postgres_listen(struct store *s, struct err *e)
{
	struct postgres *p = postgres_of(s);
	struct epoll_event event = { .events = EPOLLIN };
	int r;

	if (p->listens)
		return postgres_connect(p, e);
	if (p->wait < 0) {
		p->wait = epoll_create1(EPOLL_CLOEXEC);
		p->heard = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (p->wait < 0 || p->heard < 0 ||
			epoll_ctl(p->wait, EPOLL_CTL_ADD, p->heard, &event) < 0)
			return err_sys(e, errno, "cannot listen");
	}
	r = postgres_connect(p, e);
	if (r >= 0)
		r = watch_connection(p, e);
	if (r < 0)
		return r;
	p->listens = true;
	return 0;
}

static int postgres_wait_fd(const struct store *s)
{
	const struct postgres *p = (const struct postgres *)(const void *)s;

	return p->listens ? p->wait : -1;
}

/* The driver's functions. */
static int postgres_hear(struct store *s, struct err *e)
{
	struct postgres *p = postgres_of(s);
	eventfd_t count;
	int r;

	if (!p->listens)
		return 0;
	r = postgres_connect(p, e);
	if (r < 0)
		return r;
	if (!PQconsumeInput(p->connection))
		return postgres_say_broken(p, PQerrorMessage(p->connection), e);
	postgres_take_notices(p);
	eventfd_read(p->heard, &count);
	return 0;
}

/* --- opening --- */

static void postgres_close(struct store *s)
{
	struct postgres *p = postgres_of(s);

	postgres_drop(p);
	for (size_t i = 0; i < p->cached; i++)
		free(p->cache[i].spelt);
	own_fd_(&p->wait);
	own_fd_(&p->heard);
	free(p->url);
	free(p->password);
	free(p);
}

static const char *option_of(const PQconninfoOption *options, const char *key)
{
	for (; options && options->keyword; options++)
		if (str_eq(options->keyword, key))
			return options->val;
	return NULL;
}

/* Reads the store's name for errors, without the password. An error never quotes the URL. */
static int read_url(struct postgres *p, const char *url, struct err *e)
{
	char *said = NULL;
	PQconninfoOption *options = PQconninfoParse(url, &said);
	const char *host = option_of(options, "host"), *database = option_of(options, "dbname");
	const char *password = option_of(options, "password");

	PQfreemem(said);
	if (!options)
		return err_hint(e,
			err_set(e, ERR_USE, EINVAL,
				"cannot open the store: its URL is not understood"),
			"write postgresql://USER@HOST/DATABASE, with %%XX for special characters");
	snprintf(p->store.name, sizeof(p->store.name), "PostgreSQL at %s%s%s",
		host && *host ? host : "this machine", database ? "/" : "",
		database ? database : "");
	p->url = strdup(url);
	p->password = password && *password ? strdup(password) : NULL;
	PQconninfoFree(options);
	return p->url ? 0 : err_set(e, ERR_SYS, ENOMEM, "cannot open the store: no memory");
}

static int postgres_open(const char *url, struct store **ret, struct err *e)
{
	struct postgres *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_set(e, ERR_SYS, ENOMEM, "cannot open the store: no memory");
	p->store.driver = &store_postgres_driver;
	p->store.doing = "open the store";
	p->wait = p->heard = -1;
	r = read_url(p, url, e);
	if (r >= 0)
		r = postgres_connect(p, e);
	if (r < 0) {
		postgres_close(&p->store);
		return r;
	}
	*ret = &p->store;
	return 0;
}

/* --- the driver --- */

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

/* Returns how many rows a command changed. */
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
