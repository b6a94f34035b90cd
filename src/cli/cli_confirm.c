/*
 * cli_confirm - asks before something is removed for good.
 *
 * Runs as:  the operator.
 * Must not: take the lack of an answer for a yes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"

#define ANSWER_MAX 16

/* One line of the terminal; what does not fit is no answer. */
static bool is_yes(void)
{
	char answer[ANSWER_MAX] = "", c;
	size_t n = 0;
	ssize_t got;

	while ((got = read(STDIN_FILENO, &c, 1)) == 1 || (got < 0 && errno == EINTR)) {
		if (got == 1 && c == '\n')
			break;
		if (got == 1 && n < sizeof(answer) - 1)
			answer[n++] = str_lower(c);
	}
	return got == 1 && (str_eq(answer, "y") || str_eq(answer, "yes"));
}

bool cli_can_ask(void)
{
	return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

int cli_confirm(const struct cli *cli, bool is_certain, const char *fmt, ...)
{
	own(buf) struct buf line = { .max = 16 * 1024 };
	char what[4096];
	va_list args;

	if (cli_value(cli, CLI_OPT_YES))
		return CLI_OK;
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	if (!cli_can_ask()) {
		if (is_certain)
			return CLI_OK;
		cli_complain("cannot ask, without a terminal, whether to %s", what);
		cli_hint("--yes answers");
		return CLI_NO;
	}
	buf_puts(&line, "bawn: ");
	buf_add_visible(&line, what, strlen(what));
	buf_puts(&line, "? [y/N] ");
	file_write_all(STDERR_FILENO, buf_text(&line), line.len);
	if (is_yes())
		return CLI_OK;
	cli_complain("nothing was removed");
	return CLI_NO;
}
