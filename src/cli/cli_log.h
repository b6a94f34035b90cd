#pragma once

#include <time.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/cli_show.h"
#include "proof/log/log_event.h"
#include "proof/record/record.h"
#include "wire/wire_gate.h"

/* What bawn log reads, chooses and shows. */

/* --- where events come from: cli_log_source.c --- */

/*
 * The chain of a run, or that of the state with the files it was renamed to. A broken chain is said
 * to be broken, and read on behind the break; the lines are not vouched for then.
 */
struct cli_log_source {
	int folder;        /* owned; -1: there is nothing */
	bool is_state;     /* more files may come before and after */
	const char *whose; /* for sentences; borrowed */
	int fd;            /* the file that is being read, or -1 */
	uint64_t file;     /* its number among the renamed ones; UINT64_MAX: the one that grows */
	bool is_silent;    /* read once more: what is wrong was said */
	bool is_growing;   /* a piece of a line at the end may become one */
	bool is_there;     /* there is a file */
	bool is_over;      /* it was renamed: it grows no more */
	bool is_broken, is_torn;
	unsigned break_count; /* of those that were said */
	uint64_t mended_at;   /* where in the file a break was */
	uint64_t count;       /* of lines that were read */
	struct log_reader reader;
	char odd[LOG_LINE_SIZE]; /* a line that is not written as one */
};

/* Takes the folder over. */
void cli_log_source_init(struct cli_log_source *s, int folder, bool is_state, const char *whose);
void cli_log_source_done(struct cli_log_source *s);

/* To the beginning. */
void cli_log_rewind(struct cli_log_source *s);

/* The next line: 1, 0 where there is none yet, -errno where reading failed, which was said. */
int cli_log_next(struct cli_log_source *s, struct log_line *ret);

/* --- which events: cli_log_wish.c --- */

#define CLI_MOST_TYPES 64

struct cli_log_wish {
	const char *run, *session; /* NULL: any */
	const char *types[CLI_MOST_TYPES];
	size_t type_count; /* 0: any */
	bool has_since, is_denials;
	struct timespec since;
	bool has_most;
	int64_t most; /* the last so many */
	bool is_followed;
};

/* Reads the options; says what is wrong with them. */
int cli_log_read_wish(const struct cli *cli, struct cli_log_wish *ret);

bool cli_log_is_wished(const struct cli_log_wish *w, const struct log_event *x);

/* --- what is said again: cmd_log.c --- */

struct cli_log_rows {
	struct cli_log_row *slots;
	size_t room, count;
};

/* --- what would allow what was denied: cli_log_print.c --- */

#define CLI_MOST_WAYS 64

struct cli_ways {
	char allow[CLI_MOST_WAYS][WIRE_WHERE_SIZE]; /* entries of network.allow */
	uint16_t ports[CLI_MOST_WAYS];              /* entries of network.host_ports */
	size_t allow_count, port_count;
	bool has_guess;   /* a port that nobody asked for */
	bool has_more;    /* there are more than are here */
	int64_t attempts; /* of runs without a network */
};

/* --- what could be seen at all: cli_log_seen.c --- */

/* As the events say: what a run had, so that silence is not taken for "nothing happened". */
struct cli_log_seen {
	bool has_run, is_none, is_allowlist;
	bool is_deaf;               /* calls that the filter refuses are not told */
	char cage[RECORD_RUN_SIZE]; /* the run whose cage it was in; "": its own */
};

void cli_log_note_seen(struct cli_log_seen *seen, const struct log_event *x);

/* Says what bawn sees of what is denied, and what it does not. */
void cli_log_say_seen(const struct cli_log_seen *seen);

/* --- how they are shown: cli_log_print.c --- */

struct cli_log_out {
	const struct cli *cli;
	const struct cli_log_form *form;
	struct cli_show show;
	char id[RECORD_RUN_SIZE]; /* the run's; "": of all runs */
	char outcome[32];         /* of it; "": not known */
	bool is_going_on, is_denials;
	bool folds; /* guarantees that hold are one line for people */
	struct {
		char run[RECORD_RUN_SIZE], time[CLOCK_TEXT_SIZE];
		size_t holding, count;
	} folded;
	struct log_origin from;
	struct cli_ways ways;
	size_t count; /* of events shown */
};

/* Is each event written as it comes, without looking at those behind it? */
bool cli_log_is_stream(const struct cli_log_out *out);

/* Is it one object? */
bool cli_log_is_object(const struct cli_log_out *out);

/* CLI_MISUSE, which is said, for a form that there is not. */
int cli_log_choose_form(const struct cli *cli, struct cli_log_out *ret);

void cli_log_begin(struct cli_log_out *out, bool may_page);
void cli_log_show(struct cli_log_out *out, struct log_event *x);

/* A line that is no event; only people are shown it. */
void cli_log_show_line(struct cli_log_out *out, const struct log_line *line);
int cli_log_end(struct cli_log_out *out, const struct cli_log_source *s, int status);
