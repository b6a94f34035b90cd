/*
 * What goes wrong with PostgreSQL, as a sentence of ours.
 *
 * Must not: repeat the password.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "session/store/store_postgres.h"

bool postgres_is_good(const PGresult *result)
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

void postgres_print_message(const struct postgres *p, const char *said, char *ret, size_t size)
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

int postgres_say_broken(struct postgres *p, const char *said, struct err *e)
{
	char message[256];

	postgres_print_message(p, said, message, sizeof(message));
	postgres_drop(p);
	return err_set(e, ERR_SYS, EPIPE, "cannot %s: the connection to %s is lost: %s",
		p->store.doing, p->store.name, message[0] ? message : "nobody answers");
}

int postgres_say_failure(struct postgres *p, const PGresult *result, struct err *e)
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
