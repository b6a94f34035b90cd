#pragma once

#include "base/arena.h"
#include "cli/cli_show.h"
#include "proof/record/record_read.h"

#define CLI_RECORD_MOST  (4 * RECORD_MAX_SIZE)
#define CLI_MOST_COMMAND ((size_t)1 << 20) /* bytes of one that are shown */

/* A record as it lies in a run's folder, signed by whomever. */
struct cli_record {
	struct arena arena;
	char *bytes;
	struct record_statement statement;
	struct record_read record;
	const char *state; /* why there is none: "goes on", …; NULL: there is one */
};

/* Must be done in any case, as it was zeroed before. */
int cli_record_load(struct cli_record *ret, int folder, struct err *e);
void cli_record_done(struct cli_record *k);

/* How it ended, in a word or two. */
void cli_record_add_end(struct buf *out, const struct record_read *r);

/* What it did to the project, in numbers; "-" where nobody knows. */
void cli_record_add_changes(struct buf *out, const struct record_read *r);

/* The project of a run, by its folder; "" where that does not say. */
void cli_record_read_project(int folder, char ret[static 4096]);

/* Runs one below the other: lines for people, or maps in an open list. */
struct cli_record_rows {
	int runs;              /* the folder of all; borrowed */
	struct cli_show *show; /* one of the two */
	struct json *json;
};

/* What the columns are, on a terminal. */
void cli_record_head(struct cli_show *show);

/* The row of one run. A status, after it was said what is wrong. */
int cli_record_row(const struct cli_record_rows *l, const char *id);
