#pragma once

#include <limits.h>
#include <string.h>

#include "session/store/store.h"

/*
 * Shared by the files of the store. Each query is written once, in SQL that both databases
 * understand, with words in braces for what they spell differently (store_spell). A driver sends it
 * to one database.
 *
 * One rule makes this correct on both: a transaction that writes anything of a session, its row or
 * its runs, updates the session's row first. SQLite allows one writer at a time; PostgreSQL locks
 * the row until the transaction ends, and later writers then see its new content.
 */

enum store_value_kind {
	STORE_NULL,
	STORE_NUM,
	STORE_TEXT,
	STORE_BYTES
};

struct store_value {
	enum store_value_kind kind;
	int64_t num;
	const void *bytes; /* borrowed; in a result, until the next row */
	size_t size;
};

#define STORE_MAX_VALUES  16 /* of one statement */
#define STORE_MAX_COLUMNS 40
#define STORE_MAX_CACHED  96       /* statements */
#define STORE_BUSY_MS     10000    /* timeout of waiting for another transaction */
#define STORE_FORGET_MS   86400000 /* a worker that was not seen for so long is removed */

/* Called for each row. Must not query the store. A result other than 0 ends the query with it. */
typedef int store_see(void *of, const struct store_value *v);

struct store_driver {
	unsigned dialect; /* index of its spelling, for store_spell */
	/* The database locks single rows. If not, it has one writer at a time, and queries read
	 * before they begin a write transaction. */
	bool has_row_locks;
	int (*open)(const char *where, struct store **ret, struct err *e);
	void (*close)(struct store *s);
	/*
	 * Runs one statement. Returns the number of rows read or changed, -errno, or the result of
	 * `see`. Prepared statements are cached by the address of `sql`, which must be static.
	 */
	int (*run)(struct store *s, const char *sql, const struct store_value *values, size_t count,
		store_see *see, void *of, struct err *e);
	/* is_lasting: the commit must survive a crash of the machine (fsync). */
	int (*begin)(struct store *s, bool is_lasting, struct err *e);
	/* Notifies listeners if `rings`. An error means that the transaction was rolled back. */
	int (*commit)(struct store *s, bool rings, struct err *e);
	void (*rollback)(struct store *s);
	/* Keeps other processes from updating the tables until the transaction ends. */
	int (*lock_schema)(struct store *s, struct err *e);
	int (*listen)(struct store *s, struct err *e);
	int (*wait_fd)(const struct store *s);
	int (*hear)(struct store *s, struct err *e);
};

/* The first member of each driver's own struct. */
struct store {
	const struct store_driver *driver;
	const char *doing;   /* for errors: "queue a run" */
	char name[PATH_MAX]; /* for errors; never has a password */
	bool rings;          /* notify listeners at the commit */
	/* A run whose taking was not confirmed because the connection broke; or NULL. */
	struct store_taken *unsure;
};

extern const struct store_driver store_sqlite_driver;
/* NULL in a program without libpq. */
extern const struct store_driver store_postgres_driver __attribute__((weak));

/* Returns a query in a driver's spelling: ?1 or $1, and the words in braces. NULL: no memory. */
char *store_spell(const char *sql, unsigned dialect);

/* --- queries --- */

#define VALUE_NUM(n)  ((struct store_value){ .kind = STORE_NUM, .num = (int64_t)(n) })
#define VALUE_TEXT(t) store_text_value(t)
#define VALUE_BYTES(p, n)                                                                          \
	((struct store_value){                                                                     \
		.kind = STORE_BYTES, .bytes = (p) ? (p) : "", .size = (p) ? (n) : 0 })
#define VALUE_STRING(t) store_string_value(t)
#define VALUE_STATE(x)  VALUE_NUM(x)

static inline struct store_value store_text_value(const char *text)
{
	return (struct store_value){ .kind = STORE_TEXT, .bytes = text, .size = strlen(text) };
}

/* The value of a text that may hold bytes a database refuses in text: it is stored as bytes. */
static inline struct store_value store_string_value(const char *text)
{
	return VALUE_BYTES(text, strlen(text));
}

/* Runs a query with values: store_ask(s, see, of, e, "SELECT …", VALUE_NUM(1), …). */
#define store_ask(s, see, of, e, sql, ...)                                                         \
	(s)->driver->run((s), (sql), (const struct store_value[]){ __VA_ARGS__ },                  \
		sizeof((const struct store_value[]){ __VA_ARGS__ }) / sizeof(struct store_value),  \
		(see), (of), (e))

/* Runs a statement that returns no rows. */
#define store_tell(s, e, sql, ...) store_ask(s, NULL, NULL, e, sql, __VA_ARGS__)

/* A store_see that reads one number into an int64_t. */
int store_see_num(void *of, const struct store_value *v);

/*
 * Runs `work` in a transaction and returns its result. Commits if that is 0 or more. `work` calls
 * store_ring to notify listeners at the commit.
 */
int store_within(struct store *s, bool is_lasting,
	int (*work)(struct store *s, void *of, struct err *e), void *of, struct err *e);
void store_ring(struct store *s);

/* True if a word can be an id, a name or the beginning of one. Others are never sent in a query. */
bool store_is_word(const char *word, size_t size);

/* --- rows --- */

/* States are literals in the queries, so that partial indexes on them are used. */
#define SQL_OPEN      "0"
#define SQL_STOPPED   "1"
#define SQL_REMOVING  "2"
#define SQL_QUEUED    "0"
#define SQL_RUNNING   "1"
#define SQL_LOST      "4"
#define SQL_CANCELLED "5"

#define SQL_SESSION                                                                                \
	"id, name, place, workspace, state, created_ms, used_ms, ttl_ms, worker, token, "          \
	"lease_ms, CASE WHEN lease_ms <= {now} THEN 1 ELSE 0 END, "                                \
	"CASE WHEN " SQL_EXPIRED " THEN 1 ELSE 0 END, queued, running, spec, project, seq"
#define SQL_SESSION_COUNT 18

/* A session is not expired while something runs in it. */
#define SQL_EXPIRED                                                                                \
	"(ttl_ms > 0 AND used_ms + ttl_ms <= {now} AND NOT (running > 0 AND lease_ms > {now}))"

#define SQL_RUN_SHORT                                                                              \
	"id, session, worker, state, token, queued_ms, taken_ms, ended_ms, status, request, "      \
	"error, record, seq"
#define SQL_RUN SQL_RUN_SHORT ", out, err"

/*
 * Each a store_see that fills a struct from a row. The struct owns its texts, also after an error.
 */
int store_see_session(void *of, const struct store_value *v);
int store_see_run_short(void *of, const struct store_value *v);
int store_see_run(void *of, const struct store_value *v);

int store_copy_text(const struct store_value *v, char *ret, size_t size);
int store_copy_bytes(const struct store_value *v, char **ret, size_t *ret_size);

/* Makes the running runs of a session lost. The same transaction has changed the session's row. */
int store_lose_runs(struct store *s, const char *session, struct err *e);
