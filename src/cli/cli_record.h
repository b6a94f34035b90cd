#pragma once

#include "base/json.h"
#include "cli/cli_show.h"

/*
 * Runs as a list, as their records tell of them, for commands that list runs: cmd_record.c. Each
 * run is a line for people, or a map in an open JSON list.
 */
struct cli_record_rows {
	int runs;              /* the folder of all runs; borrowed */
	struct cli_show *show; /* where lines go; not used with `json` */
	struct json *json;     /* where maps go; NULL: lines are wanted */
};

/* Shows the names of the columns, if a person reads. */
void cli_record_head(struct cli_show *show);

/* Adds one run. Returns CLI_OK, or CLI_FAILED after it has complained. */
int cli_record_row(const struct cli_record_rows *l, const char *id);
