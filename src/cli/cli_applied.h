#pragma once

#include "base/json.h"
#include "change/apply/change_apply.h"
#include "cli/cli_kept.h"
#include "cli/cli_progress.h"

/* What came of an apply, for people or as one object. */
struct cli_applied {
	const struct cli_kept *kept;
	struct cli_progress progress;
	bool is_dry;
	bool has_tried; /* there was something to apply */
	struct change_applied result;
	const struct change_effect *conflict; /* the first that was left alone; or NULL */
	size_t rest;                          /* effects that were not asked for, and wait */
	struct err error;                     /* that ended it */
	bool is_finished;                     /* nothing of the run is left to apply */
	struct buf output;                    /* with --json, until the end */
	struct json json;
};
