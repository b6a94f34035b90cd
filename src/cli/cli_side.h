#pragma once

#include "cli/cli_kept.h"

/* One side of a change, as text to compare. */
enum cli_side_found {
	CLI_SIDE_HERE,
	CLI_SIDE_LARGE,   /* more than is compared */
	CLI_SIDE_CHANGED, /* the host's file has changed since, and nobody kept what it was */
	CLI_SIDE_FAILED,  /* with an errno */
};

struct cli_side {
	enum cli_side_found found;
	char *bytes; /* owned; of a link its target */
	size_t size;
	int failure;
	bool is_kept; /* the host's file has changed since, but what it was is in base/ */
};

void cli_side_done(struct cli_side *s);

/* What a path was before the run, and what the run made of it. */
void cli_side_before(const struct cli_kept *k, const struct change_effect *x, struct cli_side *ret);
void cli_side_after(const struct cli_kept *k, const struct change_effect *x, struct cli_side *ret);
