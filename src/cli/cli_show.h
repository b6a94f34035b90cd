#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "cli/cli.h"

/*
 * Where long output goes: a pager on a terminal, else standard output. For a person every line is
 * made harmless; into a file or a pipe go the bytes as they are. A reader that has seen enough is
 * no failure.
 */
struct cli_show {
	int fd;
	pid_t pager;     /* 0: none */
	bool for_person; /* a terminal shows it */
	bool has_color;
	unsigned width;  /* of the terminal, in columns */
	int failure;     /* errno, sticky */
	struct buf kept; /* not written yet */
};

enum cli_ink {
	CLI_INK_PLAIN,
	CLI_INK_HEAD,
	CLI_INK_HUNK,
	CLI_INK_ADDED,
	CLI_INK_REMOVED,
	CLI_INK_NOTE,
	CLI_INK_WARNING,
	CLI_INK_COUNT,
};

void cli_show_open(struct cli_show *s, const struct cli *cli, bool may_page);

/* Waits for the pager; CLI_FAILED and a complaint where something could not be written. */
int cli_show_close(struct cli_show *s, int status);

/* Writes what is not written yet. */
void cli_show_flush(struct cli_show *s);

/* Has the reader gone, or did writing fail? Then there is no need to go on. */
bool cli_show_is_over(const struct cli_show *s);

/* One line of n bytes, without its newline. */
void cli_show_line(struct cli_show *s, enum cli_ink ink, const char *bytes, size_t n);

/* The same, as printf has it. */
void cli_show_text(struct cli_show *s, enum cli_ink ink, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* A row of a list, which on a terminal is cut off where that ends. */
void cli_show_cut(struct cli_show *s, enum cli_ink ink, const char *text);

/* The hunks of a unified diff, each line in its colour. */
void cli_show_hunks(struct cli_show *s, const char *bytes, size_t n);

/* Bytes as they are, also for a person: the caller vouches for them. */
void cli_show_raw(struct cli_show *s, const char *bytes, size_t n);
