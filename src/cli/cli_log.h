#pragma once

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/cli_show.h"
#include "proof/log/log_source.h"
#include "proof/record/record.h"
#include "result/result_log.h"

/* Prints events for `bawn log`: cli_log_print.c */

struct cli_log_out;

/* A value of --format. A function is NULL where there is nothing to do. */
struct cli_log_form {
	const char *name;
	bool is_stream; /* writes each event as it comes, without looking at later ones */
	bool is_object; /* writes one JSON object */
	void (*begin)(struct cli_log_out *out);
	void (*show)(struct cli_log_out *out, struct log_event *x);
	void (*end)(struct cli_log_out *out, const struct log_source *s);
};

struct cli_log_out {
	const struct cli *cli;
	const struct cli_log_form *form;
	struct cli_show show;
	char id[RECORD_RUN_SIZE]; /* the run; "": all runs */
	char outcome[32];         /* of the run; "": unknown */
	bool is_going_on, is_denials;
	bool folds; /* text: show all guarantees that hold in one line */
	struct {
		char run[RECORD_RUN_SIZE], time[CLOCK_TEXT_SIZE];
		size_t holding, count;
	} folded;
	struct log_origin from;
	struct result_ways ways;
	size_t count; /* events shown */
};

/* Sets ret->form by --format and --json. Returns a status. */
int cli_log_choose_form(const struct cli *cli, struct cli_log_out *ret);

void cli_log_begin(struct cli_log_out *out, bool may_page);
void cli_log_show(struct cli_log_out *out, struct log_event *x);

/* Shows a line that is not an event, in the form for people only. */
void cli_log_show_line(struct cli_log_out *out, const struct log_line *line);
int cli_log_end(struct cli_log_out *out, const struct log_source *s, int status);
