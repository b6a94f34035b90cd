#pragma once

#include <time.h>

#include "base/sha256.h"
#include "proof/log/log_event.h"

/* The events of a log that somebody wants to see, from all files that it is in. */

/*
 * The chain of a run, or that of the state with the files it was renamed to. A broken chain is said
 * to be broken, and read on behind the break; the lines are not vouched for then.
 */
struct log_source {
	int folder;        /* owned; -1: there is nothing */
	bool is_state;     /* more files may come before and after */
	const char *whose; /* for sentences; borrowed */
	/* Says that the log is broken, torn or not all there; may be NULL. */
	void (*notice)(void *of, const char *text, const char *hint);
	/* Was the log pruned up to its first line, as a signed line says? May be NULL. */
	bool (*is_pruned)(void *of, const struct log_line *first);
	void *of;
	int fd;          /* the file that is being read, or -1 */
	uint64_t file;   /* its number among the renamed ones; UINT64_MAX: the one that grows */
	bool is_silent;  /* read once more: what is wrong was said */
	bool is_growing; /* a piece of a line at the end may become one */
	bool is_there;   /* there is a file */
	bool is_over;    /* it was renamed: it grows no more */
	bool is_broken, is_torn;
	unsigned break_count; /* of those that were said */
	uint64_t mended_at;   /* where in the file a break was */
	uint64_t count;       /* of lines that were read */
	struct log_reader reader;
	struct err failure;
	char odd[LOG_LINE_SIZE]; /* a line that is not written as one */
};

/* Takes the folder over; `notice` and `of` are set before. */
void log_source_init(struct log_source *s, int folder, bool is_state, const char *whose);
void log_source_done(struct log_source *s);

/* To the beginning. */
void log_source_rewind(struct log_source *s);

/* The next line: 1, 0 where there is none yet, -errno with s->failure. */
int log_source_next(struct log_source *s, struct log_line *ret);

/* --- what is said again --- */

struct log_rows {
	struct log_row *slots;
	size_t room, count;
};

void log_rows_done(struct log_rows *r);

/* Notes that the line of this number is the last of its row, so far; true: the row is new. */
bool log_rows_add(struct log_rows *r, const struct log_event *x, uint64_t number);

/* Is it said again, in a later line? */
bool log_rows_is_old(const struct log_rows *r, const struct log_event *x, uint64_t number);

/* --- which events --- */

#define LOG_MOST_TYPES 64

struct log_filter {
	const char *run, *session; /* NULL: any */
	const char *types[LOG_MOST_TYPES];
	size_t type_count; /* 0: any */
	bool has_since, is_denials;
	struct timespec since;
};

bool log_filter_takes(const struct log_filter *w, const struct log_event *x);
