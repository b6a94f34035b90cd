#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cage/cage.h"
#include "filter/filter.h"
#include "plan/plan.h"
#include "record/record.h"

/*
 * The keeper of one run: starts the cage, looks at it from outside, lets the command go, passes
 * signals and terminals' bytes, and sees to its end.
 */

struct keep_request {
	const struct plan *plan;
	const char *project, *home; /* home may be NULL */
	struct filter filter;
	char *command_line; /* bawn's own, as ps shows it */
	size_t command_line_size;
	int status_fd;            /* events as lines of JSON, or -1 */
	struct cage_times *times; /* shared with the cage, or NULL */
	/* Done while the cage is being made, and before the command may start. */
	int (*meanwhile)(void *of, struct err *e);
	/* The command has ended, and the record is complete; `e` says what else went wrong. */
	void (*afterwards)(void *of, const struct err *e);
	/* May this be shown, which the plan calls `from`? Asked before anything is started. */
	int (*approve)(void *of, const char *from, const char *real, struct err *e);
	void *of;
};

/*
 * Runs the plan to its end and fills the record, whose `run` is set. 0 when the command ran, and
 * then the record says how it ended; -errno and a sentence when it did not.
 */
int keep_run(const struct keep_request *q, struct record *record, struct err *e);

/*
 * What of a plan this version carries out itself: 0, or ERR_REFUSED with the part it does not.
 * Parts that may be missing are noted in the record.
 */
int keep_check_plan(const struct plan *p, struct record *record, struct err *e);

/* Says an event on q->status_fd, if there is one. */
void keep_say_failed(const struct keep_request *q, const struct err *e, int status);
void keep_say_ended(const struct keep_request *q, const struct record *record, int status);
