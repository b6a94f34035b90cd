/*
 * store - opens a store, and what all that is asked of it has in common.
 *
 * Runs as: the operator.
 */
#include "session/store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "session/store/store_inside.h"

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

/* How often a transaction is begun anew that the database gave up in favour of another. */
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

struct store_value store_text_value(const char *text)
{
	return (struct store_value){ .kind = STORE_TEXT, .bytes = text, .size = strlen(text) };
}

struct store_value store_string_value(const char *text)
{
	return VALUE_BYTES(text, strlen(text));
}

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
