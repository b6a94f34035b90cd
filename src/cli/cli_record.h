#pragma once

#include "cli/cli_show.h"
#include "result/result_record.h"

#define CLI_MOST_COMMAND ((size_t)1 << 20) /* bytes of one that are shown */

/* How it ended, in a word or two. */
void cli_record_add_end(struct buf *out, const struct record_read *r);

/* What it did to the project, in numbers; "-" where nobody knows. */
void cli_record_add_changes(struct buf *out, const struct record_read *r);

/* How long it took, in as few digits as people want: 120ms, 1.2s, 3m05s, 2h03m. */
void cli_record_add_took(struct buf *out, int64_t us);

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
