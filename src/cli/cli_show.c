/*
 * cli_show - shows long output, on a terminal through a pager.
 *
 * Runs as:  the operator, with the operator's own environment.
 * Starts:   the program that PAGER names, without a shell.
 */
#include "cli/cli_show.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"

/* --- the pager --- */

#define MOST_WORDS 32

/* Splits at blanks, in place; false where there is nothing to start. */
static bool pager_split(char *text, char *ret[static MOST_WORDS + 1])
{
	char *rest = NULL;
	size_t n = 0;

	for (char *w = strtok_r(text, " \t", &rest); w && n < MOST_WORDS;
		w = strtok_r(NULL, " \t", &rest))
		ret[n++] = w;
	ret[n] = NULL;
	return n > 0 && !str_eq(ret[0], "cat");
}

/* The pager gets the signals as a shell would give them; bawn does not care for SIGPIPE. */
static pid_t pager_spawn(char **words, int in)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t reset;
	pid_t pid = 0;
	int r;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return 0;
	if (posix_spawnattr_init(&attributes) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return 0;
	}
	sigemptyset(&reset);
	sigaddset(&reset, SIGPIPE);
	r = posix_spawnattr_setsigdefault(&attributes, &reset);
	if (r == 0)
		r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (r == 0)
		r = posix_spawnp(&pid, words[0], &actions, &attributes, words, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r == 0 ? pid : 0;
}

/*
 * Starts $PAGER, or less, on the terminal: what is written to *ret_fd is shown. 0 where there is
 * none to be had.
 */
static pid_t cli_pager_start(int *ret_fd)
{
	const char *named = getenv("PAGER");
	own(buf) struct buf text = { .max = 4096 };
	char *words[MOST_WORDS + 1];
	own_fd int in = -1, out = -1;
	pid_t pid;
	int ends[2];

	buf_puts(&text, named ? named : "less");
	if (text.failed || !pager_split(text.data, words) || pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	in = ends[0];
	out = ends[1];
	/* Colours, no pager where all fits the screen, and the screen stays as it is. */
	setenv("LESS", "FRX", 0);
	pid = pager_spawn(words, in);
	if (pid <= 0)
		return 0;
	/* ^C is the pager's; whoever leaves it ends us too. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	*ret_fd = take_fd(&out);
	return pid;
}

static void cli_pager_wait(pid_t pager)
{
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
}

#define FLUSH_AT    ((size_t)64 << 10)
#define MOST_KEPT   ((size_t)256 << 20) /* one line, made visible, with what stands before it */
#define USUAL_WIDTH 80
#define LEAST_WIDTH 40

static const char *const inks[CLI_INK_COUNT] = {
	[CLI_INK_PLAIN] = "",
	[CLI_INK_HEAD] = "\x1b[1m",
	[CLI_INK_HUNK] = "\x1b[36m",
	[CLI_INK_ADDED] = "\x1b[32m",
	[CLI_INK_REMOVED] = "\x1b[31m",
	[CLI_INK_NOTE] = "\x1b[33m",
	[CLI_INK_WARNING] = "\x1b[1;31m",
};

static unsigned find_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return USUAL_WIDTH;
	return size.ws_col < LEAST_WIDTH ? LEAST_WIDTH : size.ws_col;
}

void cli_show_open(struct cli_show *s, const struct cli *cli, bool may_page)
{
	bool is_terminal = isatty(STDOUT_FILENO) == 1;

	*s = (struct cli_show){
		.fd = STDOUT_FILENO,
		.for_person = is_terminal || cli->has_color,
		.has_color = cli->has_color,
		.width = find_width(),
		.kept.max = MOST_KEPT,
	};
	if (is_terminal && may_page)
		s->pager = cli_pager_start(&s->fd);
}

bool cli_show_is_over(const struct cli_show *s)
{
	return s->failure != 0;
}

void cli_show_flush(struct cli_show *s)
{
	int r = 0;

	if (!s->failure)
		r = s->kept.failed ? -ENOMEM
				   : file_write_all(s->fd, buf_text(&s->kept), s->kept.len);
	if (r < 0)
		s->failure = -r;
	s->kept.len = 0;
}

int cli_show_close(struct cli_show *s, int status)
{
	cli_show_flush(s);
	buf_done(&s->kept);
	if (s->pager) {
		close(s->fd);
		cli_pager_wait(s->pager);
	}
	if (s->failure == 0 || s->failure == EPIPE)
		return status;
	cli_complain("cannot write to standard output: %s", strerror(s->failure));
	return CLI_FAILED;
}

void cli_show_raw(struct cli_show *s, const char *bytes, size_t n)
{
	if (s->failure)
		return;
	buf_add(&s->kept, bytes, n);
	if (s->kept.len >= FLUSH_AT || s->kept.failed)
		cli_show_flush(s);
}

/* A TAB does nothing but move to the right, and people want to see text as it is. */
static void add_harmless(struct buf *out, const char *bytes, size_t n)
{
	while (n) {
		const char *tab = memchr(bytes, '\t', n);
		size_t part = tab ? (size_t)(tab - bytes) : n;

		buf_add_visible(out, bytes, part);
		if (tab)
			buf_putc(out, '\t');
		part += tab != NULL;
		bytes += part;
		n -= part;
	}
}

void cli_show_line(struct cli_show *s, enum cli_ink ink, const char *bytes, size_t n)
{
	bool has_ink = s->has_color && inks[ink][0];

	if (s->failure)
		return;
	if (has_ink)
		buf_puts(&s->kept, inks[ink]);
	if (s->for_person)
		add_harmless(&s->kept, bytes, n);
	else
		buf_add(&s->kept, bytes, n);
	if (has_ink)
		buf_puts(&s->kept, "\x1b[m");
	cli_show_raw(s, "\n", 1);
}

void cli_show_text(struct cli_show *s, enum cli_ink ink, const char *fmt, ...)
{
	own_free char *text = NULL;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		s->failure = ENOMEM;
		return;
	}
	cli_show_line(s, ink, text, (size_t)n);
}

void cli_show_cut(struct cli_show *s, enum cli_ink ink, const char *text)
{
	own(buf) struct buf row = { .max = MOST_KEPT };
	size_t n, columns = 0;

	if (!s->for_person) {
		cli_show_line(s, ink, text, strlen(text));
		return;
	}
	buf_add_visible(&row, text, strlen(text));
	/* A character of several bytes is one column: what is wider only wraps. */
	for (n = 0; n < row.len; n++) {
		bool is_first = (row.data[n] & 0xc0) != 0x80;

		if (is_first && columns == s->width)
			break;
		columns += is_first;
	}
	cli_show_line(s, ink, buf_text(&row), n);
}

static enum cli_ink show_ink_of(char first)
{
	switch (first) {
	case '+':
		return CLI_INK_ADDED;
	case '-':
		return CLI_INK_REMOVED;
	case '@':
		return CLI_INK_HUNK;
	default:
		return CLI_INK_PLAIN;
	}
}

void cli_show_hunks(struct cli_show *s, const char *bytes, size_t n)
{
	if (!s->for_person) {
		cli_show_raw(s, bytes, n);
		return;
	}
	while (n && !s->failure) {
		const char *end = memchr(bytes, '\n', n);
		size_t line = end ? (size_t)(end - bytes) : n;

		cli_show_line(s, show_ink_of(bytes[0]), bytes, line);
		line += end != NULL;
		bytes += line;
		n -= line;
	}
}
