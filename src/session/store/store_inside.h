#pragma once

#include <limits.h>
#include <string.h>

#include "session/store/store.h"

/*
 * How the store is made: what is asked stands once, in SQL that both databases understand, with a
 * few words in braces for what they spell differently (store_sql.c). A driver says it to one.
 *
 * One rule makes it right on both: whoever writes something of a session, its row or its runs, has
 * changed the session's row first, in the same transaction. SQLite lets only one write at a time;
 * PostgreSQL keeps others from the row until the transaction has ended, and then lets them see it
 * as it has become.
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
	const void *bytes; /* borrowed: in a result until the next row */
	size_t size;
};

#define STORE_MAX_VALUES  16 /* of one statement */
#define STORE_MAX_COLUMNS 40
#define STORE_MAX_CACHED  96       /* statements */
#define STORE_BUSY_MS     10000    /* how long one waits for somebody else's transaction */
#define STORE_FORGET_MS   86400000 /* a worker that nobody saw for so long is not one any more */

/* Sees one row. Must not ask the store anything. What it returns but 0 ends the rows. */
typedef int store_see(void *of, const struct store_value *v);

struct store_driver {
	/* Which of two spellings in store_sql.c. */
	unsigned dialect;
	/* Are single rows locked? Otherwise one writes at a time, and looks before it asks for it.
	 */
	bool has_row_locks;
	int (*open)(const char *where, struct store **ret, struct err *e);
	void (*close)(struct store *s);
	/*
	 * One statement. How many rows there were, or were changed; or the error, or what `see`
	 * returned. The text is remembered by its address: it must be there as long as the store.
	 */
	int (*run)(struct store *s, const char *sql, const struct store_value *values, size_t count,
		store_see *see, void *of, struct err *e);
	/* is_lasting: what is committed survives the machine. */
	int (*begin)(struct store *s, bool is_lasting, struct err *e);
	/* Wakes those who listen, if `rings`. After an error it was rolled back. */
	int (*commit)(struct store *s, bool rings, struct err *e);
	void (*rollback)(struct store *s);
	/* Nobody else brings the tables up to date until the transaction has ended. */
	int (*lock_schema)(struct store *s, struct err *e);
	int (*listen)(struct store *s, struct err *e);
	int (*wait_fd)(const struct store *s);
	int (*hear)(struct store *s, struct err *e);
};

/* The beginning of each driver's own. */
struct store {
	const struct store_driver *driver;
	const char *doing;   /* for errors: "queue a run" */
	char name[PATH_MAX]; /* for errors; never with a password */
	bool rings;          /* at the end of this transaction */
	/* A run was taken, and the connection broke before that was confirmed. */
	struct store_taken *unsure;
};

extern const struct store_driver store_sqlite_driver;
/* NULL in programs that are not linked with libpq. */
extern const struct store_driver store_postgres_driver __attribute__((weak));

/* Puts a text into a driver's words: ?1 or $1, and what stands in braces. NULL: no memory. */
char *store_spell(const char *sql, unsigned dialect);

/* --- asking, for store_*.c --- */

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

/* A text that a stranger wrote may hold what a database refuses in text: it is stored as bytes. */
static inline struct store_value store_string_value(const char *text)
{
	return VALUE_BYTES(text, strlen(text));
}

/* A statement with its values: store_ask(s, see, of, e, "SELECT …", VALUE_NUM(1), …). */
#define store_ask(s, see, of, e, sql, ...)                                                         \
	(s)->driver->run((s), (sql), (const struct store_value[]){ __VA_ARGS__ },                  \
		sizeof((const struct store_value[]){ __VA_ARGS__ }) / sizeof(struct store_value),  \
		(see), (of), (e))

/* The same for one that has no rows. */
#define store_tell(s, e, sql, ...) store_ask(s, NULL, NULL, e, sql, __VA_ARGS__)

/* Sees one number, into an int64_t. */
int store_see_num(void *of, const struct store_value *v);

/*
 * One transaction around `work`, committed if that returned 0 or more, which is then the result.
 * store_ring in it wakes others at its end.
 */
int store_within(struct store *s, bool is_lasting,
	int (*work)(struct store *s, void *of, struct err *e), void *of, struct err *e);
void store_ring(struct store *s);

/* Can it be an id, a name or the beginning of one? Others are not asked for. */
bool store_is_word(const char *word, size_t size);

/* --- rows --- */

/* The states stand in SQL as numbers, so that indexes on some of them are used. */
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

/* Fill from a row's columns; `of` is the struct. They own what they hold even after an error. */
int store_see_session(void *of, const struct store_value *v);
int store_see_run_short(void *of, const struct store_value *v);
int store_see_run(void *of, const struct store_value *v);

int store_copy_text(const struct store_value *v, char *ret, size_t size);
int store_copy_bytes(const struct store_value *v, char **ret, size_t *ret_size);

/* Runs that are running in a session, whose row was changed before, are lost. */
int store_lose_runs(struct store *s, const char *session, struct err *e);
