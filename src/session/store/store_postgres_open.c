/*
 * store_postgres_open - connects to PostgreSQL, again where the connection broke, and listens.
 *
 * Runs as:  the operator, in bawn-pg.
 * Must not: repeat the password, which may be in the URL, in an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/own.h"
#include "base/str.h"
#include "session/store/store_postgres.h"

#define OLDEST_SERVER 120000 /* version 12 */

void postgres_drop(struct postgres *p)
{
	if (p->connection)
		PQfinish(p->connection);
	p->connection = NULL;
	for (size_t i = 0; i < p->cached; i++)
		p->cache[i].is_prepared = false;
}

/* --- connecting --- */

/* libpq would print them. */
static void ignore_notice(void *of, const char *message)
{
	(void)of;
	(void)message;
}

int postgres_run_plain(struct postgres *p, const char *sql, struct err *e)
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

int postgres_connect(struct postgres *p, struct err *e)
{
	/* What the URL says itself comes last, and counts. */
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

void postgres_take_notices(struct postgres *p)
{
	PGnotify *notice;

	while (p->listens && p->connection && (notice = PQnotifies(p->connection))) {
		PQfreemem(notice);
		note_heard(p);
	}
}

/* --- waiting --- */

int postgres_listen(struct store *s, struct err *e)
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

int postgres_wait_fd(const struct store *s)
{
	const struct postgres *p = (const struct postgres *)(const void *)s;

	return p->listens ? p->wait : -1;
}

int postgres_hear(struct store *s, struct err *e)
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

void postgres_close(struct store *s)
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

/* What it is called in errors, and which word must never be. What is wrong is not repeated. */
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

int postgres_open(const char *url, struct store **ret, struct err *e)
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
