/* What the two databases spell differently, and where it is put in. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "session/store/store_inside.h"

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

/* What stands at `at`, if it is one of the words; how long it is. */
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
