#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "cli/cli.h"

void cli_complain(const char *fmt, ...)
{
	own(buf) struct buf line = { .max = 16 * 1024 };
	char text[4096];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	buf_puts(&line, "bawn: ");
	buf_add_visible(&line, text, strlen(text));
	buf_putc(&line, '\n');
	file_write_all(STDERR_FILENO, buf_text(&line), line.len);
}

int cli_write(const struct buf *out, int status)
{
	int r = out->failed ? -ENOMEM : file_write_all(STDOUT_FILENO, buf_text(out), out->len);

	/* A reader that has seen enough, such as head, is no failure of ours. */
	if (r == 0 || r == -EPIPE)
		return status;
	cli_complain("cannot write to standard output: %s", strerror(-r));
	return CLI_FAILED;
}
