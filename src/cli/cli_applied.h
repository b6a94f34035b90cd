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

void cli_applied_begin(struct cli_applied *a);

/* Told of each effect that is not simply applied; `of` is the struct. */
void cli_applied_tell(
	void *of, const struct change_effect *x, enum change_verdict v, const char *why);

/* How many effects the run's layer has to stay for. */
size_t cli_applied_left(const struct change_applied *r);

/* Also after a failure: what was applied stays applied. Gives back the status. */
int cli_applied_report(struct cli_applied *a, int status);
