#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "cli/cli.h"

/*
 * Long output: through a pager on a terminal, otherwise to standard output. For a terminal, control
 * characters are escaped; a file or a pipe gets the bytes as they are. It is no failure if the
 * reader quits early.
 */
struct cli_show {
	int fd;
	pid_t pager;     /* 0: none */
	bool for_person; /* a terminal shows it */
	bool has_color;
	unsigned width;  /* of the terminal, in columns */
	int failure;     /* errno, sticky */
	struct buf kept; /* output that is not written yet */
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

/* Writes the rest and waits for the pager. Returns `status`, or CLI_FAILED if writing failed. */
int cli_show_close(struct cli_show *s, int status);

/* Writes the buffered output. */
void cli_show_flush(struct cli_show *s);

/* True if the reader has quit or writing has failed, so that the caller can stop. */
bool cli_show_is_over(const struct cli_show *s);

/* Shows one line of n bytes, without newline. */
void cli_show_line(struct cli_show *s, enum cli_ink ink, const char *bytes, size_t n);

/* Shows a formatted line. */
void cli_show_text(struct cli_show *s, enum cli_ink ink, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Shows a row of a list, cut to the width of the terminal. */
void cli_show_cut(struct cli_show *s, enum cli_ink ink, const char *text);

/* Shows the hunks of a unified diff in colour. */
void cli_show_hunks(struct cli_show *s, const char *bytes, size_t n);

/* Writes bytes unchanged, also to a terminal. The caller must have made them harmless. */
void cli_show_raw(struct cli_show *s, const char *bytes, size_t n);
