#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "change/change.h"
#include "cli/cli.h"
#include "run/run.h"

/* A line on the terminal with the progress of long work; it is removed at the end. */
struct cli_progress {
	bool is_shown;    /* progress is wanted, as far as is known */
	bool is_terminal; /* and there is one to show it on */
	bool has_line;    /* the line is on the screen */
	uint64_t next;    /* time of the next update */
};

struct cli_progress cli_progress_begin(const struct cli *cli);
void cli_progress_done(struct cli_progress *p);

/* Removes the line, before something else is printed. */
void cli_progress_clear(struct cli_progress *p);

/* Returns the callbacks through which work reports its progress. Borrows `p`. */
struct change_progress cli_progress_of(struct cli_progress *p);

/* Prints the course of a run for people. */
struct cli_printer {
	const struct cli *cli;
	struct cli_progress progress;
};

/* Returns the sink that prints a run's messages on standard error. Borrows both. */
struct run_sink cli_sink(struct cli_printer *told, const struct cli *cli);
void cli_printer_done(struct cli_printer *told);

struct store_session;

/* Prints one line about the pending changes of a session, after one of its commands. */
void cli_say_session_effects(const struct record *record, const struct store_session *s);
