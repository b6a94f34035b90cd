#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/cli.h"

static char **arguments; /* of this program, ended with NULL; or NULL */

bool cli_remember_arguments(int argc, char **argv)
{
	/* The order of argv itself changes when it is sorted into options and words. */
	arguments = calloc((size_t)argc + 1, sizeof(*arguments));
	if (arguments)
		memcpy(arguments, argv, (size_t)argc * sizeof(*arguments));
	return arguments != NULL;
}

void cli_hide_values(char *text, size_t size)
{
	for (char **a = arguments; a && *a; a++)
		str_hide_value(text, size, *a);
}

static void __attribute__((format(printf, 2, 0)))
say(const char *before, const char *fmt, va_list args)
{
	own(buf) struct buf line = { .max = 16 * 1024 };
	char text[4096];

	vsnprintf(text, sizeof(text), fmt, args);
	/* Whatever a message shows of an argument, it shows no value of a variable: keys get there.
	 */
	cli_hide_values(text, sizeof(text));
	buf_puts(&line, before);
	buf_add_visible(&line, text, strlen(text));
	buf_putc(&line, '\n');
	file_write_all(STDERR_FILENO, buf_text(&line), line.len);
}

const char *cli_find_nested(const struct plan_choice *choice, const struct err *e)
{
	return e->kind == ERR_REFUSED && e->num == EOPNOTSUPP &&
			       choice->engine == SPEC_ENGINE_AUTO && run_is_in_cage()
		       ? "cannot make a cage: this is already a cage"
		       : NULL;
}

void cli_complain(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say("bawn: ", fmt, args);
	va_end(args);
}

void cli_hint(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say("hint: ", fmt, args);
	va_end(args);
}

void cli_complain_err(const struct err *e)
{
	cli_complain_about(e, "%s", e->text);
}

void cli_complain_about(const struct err *e, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say("bawn: ", fmt, args);
	va_end(args);
	if (e->hint[0])
		cli_hint("%s", e->hint);
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
