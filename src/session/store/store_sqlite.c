/*
 * store_sqlite - the store in one file of the operator's.
 *
 * Runs as: the operator, in any number of processes at one time.
 * Leaves:  PATH, PATH-wal, PATH-shm and PATH-bell, for the operator alone.
 *
 * Several read while one writes (WAL). A transaction that must last is written through to the disk:
 * that a run was taken must survive the machine, or it would be taken again. What is said again in
 * a few seconds, such as that a worker is there, need not.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "session/store/store_inside.h"

/*
 * How processes that share a file wake each other: a file beside it that is touched, and watched by
 * those who wait. Nothing is in it.
 */
struct store_bell {
	int file, watch; /* -1: not open, not listening */
};

static void store_bell_init(struct store_bell *b)
{
	*b = (struct store_bell){ -1, -1 };
}

static void store_bell_done(struct store_bell *b)
{
	own_fd_(&b->file);
	own_fd_(&b->watch);
	store_bell_init(b);
}

/* Opens PATH-bell, made where missing. */
static int store_bell_open(struct store_bell *b, const char *path, struct err *e)
{
	char name[PATH_MAX + 8];

	snprintf(name, sizeof(name), "%s-bell", path);
	b->file = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (b->file < 0)
		return err_sys(e, errno, "cannot open the store: %s", name);
	return 0;
}

/* Should it fail, those who wait look again when they renew. */
static void store_bell_ring(const struct store_bell *b)
{
	futimens(b->file, NULL);
}

/* Makes `watch` readable whenever another process rings, until store_bell_hear. */
static int store_bell_listen(struct store_bell *b, const char *path, struct err *e)
{
	char name[64];

	if (b->watch >= 0)
		return 0;
	/* The file that is open, whatever has its name by now. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", b->file);
	b->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (b->watch < 0 || inotify_add_watch(b->watch, name, IN_ATTRIB) < 0) {
		int num = errno;

		own_fd_(&b->watch);
		b->watch = -1;
		return err_hint(e,
			err_sys(e, num, "cannot listen: %s-bell cannot be watched", path), "%s",
			num == EMFILE || num == ENOSPC ? "raise the limits in /proc/sys/fs/inotify"
						       : "");
	}
	return 0;
}

static void store_bell_hear(const struct store_bell *b)
{
	_Alignas(struct inotify_event) char events[4096];

	while (b->watch >= 0 && read(b->watch, events, sizeof(events)) > 0)
		;
}

#define CHECKPOINT_PAGES "250"      /* a new process reads through what was not checkpointed */
#define LOG_LIMIT        "16777216" /* of PATH-wal, when it is begun anew */
#define MAX_SLEEP_NS     5000000

struct sqlite {
	struct store store;
	sqlite3 *db;
	struct store_bell bell;
	uint64_t busy_since; /* clock_ns, when this wait for others began */
	bool is_lasting;     /* how `synchronous` is set */
	size_t cached;
	struct {
		const char *sql;
		sqlite3_stmt *statement;
	} cache[STORE_MAX_CACHED];
};

static struct sqlite *of_store(struct store *s)
{
	return (struct sqlite *)(void *)s;
}

/* --- errors --- */

static const struct {
	int code, num;
	const char *why;
} causes[] = {
	{ SQLITE_BUSY, EBUSY, "another process has had it locked for 10 s" },
	{ SQLITE_LOCKED, EBUSY, "another process has had it locked for 10 s" },
	{ SQLITE_FULL, ENOSPC, "the disk is full" },
	{ SQLITE_PERM, EACCES, "it may not be opened" },
	{ SQLITE_CANTOPEN, EACCES, "it, or a file beside it, cannot be opened" },
	{ SQLITE_READONLY, EROFS, "it cannot be written to" },
	{ SQLITE_NOTADB, EUCLEAN, "it is no database; move it away to begin with a new one" },
	{ SQLITE_CORRUPT, EUCLEAN, "it is damaged; move it away to begin with a new one" },
	{ SQLITE_NOMEM, ENOMEM, "there is no memory" },
	{ SQLITE_TOOBIG, EFBIG, "that is too much for one row" },
	{ SQLITE_CONSTRAINT, EEXIST, "it is there already" },
};

static int say_failure(struct sqlite *q, int code, struct err *e)
{
	int num = q->db ? sqlite3_system_errno(q->db) : 0;

	for (size_t i = 0; i < COUNT_OF(causes); i++)
		if (causes[i].code == (code & 0xff))
			return err_set(e, ERR_SYS, causes[i].num, "cannot %s: %s: %s",
				q->store.doing, q->store.name, causes[i].why);
	if ((code & 0xff) == SQLITE_IOERR && num)
		return err_sys(e, num, "cannot %s: %s", q->store.doing, q->store.name);
	return err_set(e, ERR_SYS, EIO, "cannot %s: %s: %s", q->store.doing, q->store.name,
		q->db ? sqlite3_errmsg(q->db) : sqlite3_errstr(code));
}

/* --- statements --- */

static int sqlite_prepare(struct sqlite *q, const char *sql, sqlite3_stmt **ret, struct err *e)
{
	own_free char *spelt = NULL;
	int code;

	for (size_t i = 0; i < q->cached; i++)
		if (q->cache[i].sql == sql) {
			*ret = q->cache[i].statement;
			return 0;
		}
	if (q->cached == STORE_MAX_CACHED)
		return say_failure(q, SQLITE_NOMEM, e);
	spelt = store_spell(sql, q->store.driver->dialect);
	if (!spelt)
		return say_failure(q, SQLITE_NOMEM, e);
	code = sqlite3_prepare_v3(q->db, spelt, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
	if (code != SQLITE_OK)
		return say_failure(q, code, e);
	q->cache[q->cached].sql = sql;
	q->cache[q->cached++].statement = *ret;
	return 0;
}

static int bind(sqlite3_stmt *statement, int at, const struct store_value *v)
{
	switch (v->kind) {
	case STORE_NUM:
		return sqlite3_bind_int64(statement, at, v->num);
	case STORE_TEXT:
		return sqlite3_bind_text64(
			statement, at, v->bytes, v->size, SQLITE_STATIC, SQLITE_UTF8);
	case STORE_BYTES:
		return sqlite3_bind_blob64(statement, at, v->bytes, v->size, SQLITE_STATIC);
	case STORE_NULL:
		break;
	}
	return sqlite3_bind_null(statement, at);
}

static struct store_value column(sqlite3_stmt *statement, int at)
{
	struct store_value v = { .kind = STORE_NULL };

	switch (sqlite3_column_type(statement, at)) {
	case SQLITE_INTEGER:
		v.kind = STORE_NUM;
		v.num = sqlite3_column_int64(statement, at);
		break;
	case SQLITE_TEXT:
	case SQLITE_BLOB:
		v.kind = STORE_BYTES;
		v.bytes = sqlite3_column_blob(statement, at);
		v.size = (size_t)sqlite3_column_bytes(statement, at);
		break;
	default:
		break;
	}
	return v;
}

static int sqlite_show_row(sqlite3_stmt *statement, store_see *see, void *of)
{
	struct store_value v[STORE_MAX_COLUMNS] = { 0 };
	int n = sqlite3_column_count(statement);

	for (int i = 0; i < n && i < STORE_MAX_COLUMNS; i++)
		v[i] = column(statement, i);
	return see(of, v);
}

static int step_all(
	struct sqlite *q, sqlite3_stmt *statement, store_see *see, void *of, struct err *e)
{
	int code, seen = 0, rows = 0;

	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		rows++;
		if (see && !seen)
			seen = sqlite_show_row(statement, see, of);
	}
	if (code != SQLITE_DONE)
		return say_failure(q, sqlite3_extended_errcode(q->db), e);
	if (seen)
		return err_set(e, ERR_SYS, seen < 0 ? -seen : EPROTO, "cannot %s: %s: %s",
			q->store.doing, q->store.name,
			seen == -ENOMEM ? "there is no memory" : "a row is not what it should be");
	return sqlite3_column_count(statement) ? rows : sqlite3_changes(q->db);
}

static int sqlite_run(struct store *s, const char *sql, const struct store_value *values,
	size_t count, store_see *see, void *of, struct err *e)
{
	struct sqlite *q = of_store(s);
	sqlite3_stmt *statement = NULL;
	int r = sqlite_prepare(q, sql, &statement, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		int code = bind(statement, (int)i + 1, &values[i]);

		if (code != SQLITE_OK)
			return say_failure(q, code, e);
	}
	r = step_all(q, statement, see, of, e);
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return r;
}

/* --- transactions --- */

static int run_plain(struct sqlite *q, const char *sql, struct err *e)
{
	return sqlite_run(&q->store, sql, NULL, 0, NULL, NULL, e);
}

static int sqlite_begin(struct store *s, bool is_lasting, struct err *e)
{
	struct sqlite *q = of_store(s);
	int r = 0;

	if (q->is_lasting != is_lasting) {
		r = is_lasting ? run_plain(q, "PRAGMA synchronous = FULL", e)
			       : run_plain(q, "PRAGMA synchronous = NORMAL", e);
		if (r < 0)
			return r;
		q->is_lasting = is_lasting;
	}
	/* The right to write is taken at the beginning: asked for later, it may be refused. */
	r = run_plain(q, "BEGIN IMMEDIATE", e);
	return r < 0 ? r : 0;
}

static void sqlite_rollback(struct store *s)
{
	/* An error such as a full disk may have done it already. */
	if (!sqlite3_get_autocommit(of_store(s)->db))
		run_plain(of_store(s), "ROLLBACK", NULL);
}

static int sqlite_commit(struct store *s, bool rings, struct err *e)
{
	struct sqlite *q = of_store(s);
	int r = run_plain(q, "COMMIT", e);

	if (r < 0) {
		sqlite_rollback(s);
		return r;
	}
	if (rings)
		store_bell_ring(&q->bell);
	return 0;
}

/* The transaction is that already. */
static int sqlite_lock_schema(struct store *s, struct err *e)
{
	(void)s;
	(void)e;
	return 0;
}

/* --- opening --- */

static void tell_now(sqlite3_context *c, int count, sqlite3_value **values)
{
	struct timespec t;

	(void)count;
	(void)values;
	clock_gettime(CLOCK_REALTIME, &t);
	sqlite3_result_int64(c, (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

/* Transactions are short: so are the pauses, which SQLite's own are not. */
static int wait_for_others(void *of, int count)
{
	static const uint64_t limit = (uint64_t)STORE_BUSY_MS * 1000000;
	uint64_t *since = of, now = clock_ns();
	struct timespec t = { 0, count > 5 ? MAX_SLEEP_NS : 100000L << count };

	if (count == 0)
		*since = now;
	if (now - *since > limit)
		return 0;
	nanosleep(&t, NULL);
	return 1;
}

/* Machines cannot share this file: what they would know of each other's locks is not enough. */
static bool is_remote(const char *path)
{
	static const unsigned long magics[] = { NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, 0xff534d42,
		0xfe534d42, CEPH_SUPER_MAGIC, V9FS_MAGIC, AFS_SUPER_MAGIC };
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	for (size_t i = 0; i < COUNT_OF(magics); i++)
		if ((unsigned long)fs.f_type == magics[i])
			return true;
	return false;
}

/*
 * SQLite locks a file by its process: closing any descriptor of it gives up all locks of it. So one
 * that is there is only looked at.
 */
static int sqlite_make_file(const char *path, struct err *e)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd >= 0)
		close(fd);
	else if (errno != EEXIST)
		return err_sys(e, errno, "cannot open the store: %s cannot be made", path);
	if (stat(path, &st) < 0)
		return err_sys(e, errno, "cannot open the store: %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USE, EINVAL, "cannot open the store: %s is not a file", path);
	if (st.st_uid != geteuid())
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot open the store: %s belongs to user %u", path, st.st_uid);
	if (st.st_mode & 077)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot open the store: %s can be read or written by others", path),
			"if nobody else can have changed it: chmod 600 it");
	if (is_remote(path))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EOPNOTSUPP,
				"cannot open the store: %s is on a network file system, where "
				"SQLite cannot lock",
				path),
			"use PostgreSQL for several machines");
	return 0;
}

static int see_mode(void *of, const struct store_value *v)
{
	*(bool *)of = v[0].size == 3 && !memcmp(v[0].bytes, "wal", 3);
	return 0;
}

/* Two that do this at the same time get in each other's way, without being made to wait. */
static int set_log(struct sqlite *q, struct err *e)
{
	uint64_t since = clock_ns();
	bool is_set = false;
	int r, count = 0;

	do
		r = sqlite_run(
			&q->store, "PRAGMA journal_mode = WAL", NULL, 0, see_mode, &is_set, e);
	while (r == -EBUSY && wait_for_others(&since, 1 + count++));
	if (r >= 0 && !is_set)
		return err_set(e, ERR_SYS, EOPNOTSUPP,
			"cannot open the store: %s: its file system cannot be used by several "
			"processes",
			q->store.name);
	return r;
}

static int open_database(struct sqlite *q, struct err *e)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	int code = sqlite3_open_v2(q->store.name, &q->db, flags, NULL), r;

	if (code == SQLITE_OK)
		code = sqlite3_busy_handler(q->db, wait_for_others, &q->busy_since);
	if (code == SQLITE_OK)
		code = sqlite3_create_function(q->db, "bawn_now", 0,
			SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, tell_now, NULL, NULL);
	/*
	 * The last to close would write all of it to the database: a run's end is no time for that.
	 */
	if (code == SQLITE_OK)
		code = sqlite3_db_config(q->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (code != SQLITE_OK)
		return say_failure(q, code, e);
	r = set_log(q, e);
	if (r >= 0)
		r = run_plain(q, "PRAGMA synchronous = FULL", e);
	if (r >= 0)
		r = run_plain(q, "PRAGMA wal_autocheckpoint = " CHECKPOINT_PAGES, e);
	if (r >= 0)
		r = run_plain(q, "PRAGMA journal_size_limit = " LOG_LIMIT, e);
	if (r >= 0)
		r = run_plain(q, "PRAGMA trusted_schema = OFF", e);
	q->is_lasting = true;
	return r < 0 ? r : 0;
}

static void close_store(struct store *s)
{
	struct sqlite *q = of_store(s);

	for (size_t i = 0; i < q->cached; i++)
		sqlite3_finalize(q->cache[i].statement);
	sqlite3_close(q->db);
	store_bell_done(&q->bell);
	free(q);
}

static int sqlite_open_store(const char *path, struct store **ret, struct err *e)
{
	/* SQLite knows names that are no files: they begin with a colon, or are empty. */
	const char *here = path[0] == '/' || str_starts(path, "./") ? "" : "./";
	struct sqlite *q;
	int n, r;

	if (!*path)
		return err_set(e, ERR_USE, EINVAL,
			"cannot open the store: sqlite: needs the path of a file");
	q = calloc(1, sizeof(*q));
	if (!q)
		return err_set(e, ERR_SYS, ENOMEM, "cannot open the store: no memory");
	q->store.driver = &store_sqlite_driver;
	q->store.doing = "open the store";
	store_bell_init(&q->bell);
	n = snprintf(q->store.name, sizeof(q->store.name), "%s%s", here, path);
	if (n < 0 || (size_t)n >= sizeof(q->store.name))
		r = err_set(
			e, ERR_USE, ENAMETOOLONG, "cannot open the store: its path is too long");
	else
		r = sqlite_make_file(q->store.name, e);
	if (r >= 0)
		r = store_bell_open(&q->bell, q->store.name, e);
	if (r >= 0)
		r = open_database(q, e);
	if (r < 0) {
		close_store(&q->store);
		return r;
	}
	*ret = &q->store;
	return 0;
}

/* --- waiting --- */

static int listen_store(struct store *s, struct err *e)
{
	return store_bell_listen(&of_store(s)->bell, s->name, e);
}

static int wait_fd(const struct store *s)
{
	return ((const struct sqlite *)(const void *)s)->bell.watch;
}

static int sqlite_hear(struct store *s, struct err *e)
{
	(void)e;
	store_bell_hear(&of_store(s)->bell);
	return 0;
}

const struct store_driver store_sqlite_driver = {
	.dialect = 0,
	.open = sqlite_open_store,
	.close = close_store,
	.run = sqlite_run,
	.begin = sqlite_begin,
	.commit = sqlite_commit,
	.rollback = sqlite_rollback,
	.lock_schema = sqlite_lock_schema,
	.listen = listen_store,
	.wait_fd = wait_fd,
	.hear = sqlite_hear,
};
