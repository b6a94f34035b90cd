/*
 * cli_pager - shows long output page by page.
 *
 * Runs as:  the operator, with the operator's own environment.
 * Starts:   the program that PAGER names, by its words and without a shell.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/cli_show.h"

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

pid_t cli_pager_start(int *ret_fd)
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

void cli_pager_wait(pid_t pager)
{
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
}
