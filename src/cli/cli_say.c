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
	/*
	 * Whatever a message shows of an argument, it shows no value of a variable: keys get there.
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

void cli_json_begin(struct json *j, struct buf *out)
{
	json_init(j, out, 0);
	json_open_map(j, NULL);
	json_int(j, "version", 1);
}

void cli_json_end(struct json *j)
{
	json_close_map(j);
	buf_putc(j->out, '\n');
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

/* --- asking before something is removed for good; the lack of an answer is no yes --- */

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
