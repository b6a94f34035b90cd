#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "change/change.h"
#include "cli/cli.h"

/* One line on the terminal that tells how far long work is, and is gone afterwards. */
struct cli_progress {
	bool is_shown; /* may be */
	bool has_line; /* is */
	uint64_t next; /* when something is told again */
};

struct cli_progress cli_progress_begin(const struct cli *cli);
void cli_progress_done(struct cli_progress *p);

/* Takes the line away, because something else is printed. */
void cli_progress_clear(struct cli_progress *p);

/* What work wants to be told through; borrows `p`. */
struct change_progress cli_progress_of(struct cli_progress *p);
