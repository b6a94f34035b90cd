#pragma once

#include <libpq-fe.h>
#include <sys/eventfd.h>

#include "session/store/store_inside.h"

/* What store_postgres*.c share. */

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

bool postgres_is_good(const PGresult *result);

/* The sentence, and the errno, for a result that is not good, or for none. */
int postgres_say_failure(struct postgres *p, const PGresult *result, struct err *e);

/* -EPIPE; the connection is dropped. */
int postgres_say_broken(struct postgres *p, const char *said, struct err *e);

/* The first line of what libpq or the server said, without the password. */
void postgres_print_message(const struct postgres *p, const char *said, char *ret, size_t size);

int postgres_connect(struct postgres *p, struct err *e);
void postgres_drop(struct postgres *p);

int postgres_run_plain(struct postgres *p, const char *sql, struct err *e);

/* To be called after each answer: what came with it makes no descriptor readable any more. */
void postgres_take_notices(struct postgres *p);

/* Of the driver. */
int postgres_open(const char *url, struct store **ret, struct err *e);
void postgres_close(struct store *s);
int postgres_listen(struct store *s, struct err *e);
int postgres_wait_fd(const struct store *s);
int postgres_hear(struct store *s, struct err *e);
