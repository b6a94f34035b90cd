/*
 * client_apply - asks the operator's clients which registries they are configured to use.
 *
 * Runs as:  the operator, before anything is planned.
 * Runs:     the client, in the operator's home: found on $PATH, outside of the project's
 * repository. Reads:    its configuration; for git also the configuration of the project's
 * repository. Must not: run the client in the project, whose files it would obey; wait without a
 * timeout.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "client/client.h"
#include "spec/spec_grammar.h"

/* --- asking a client --- */

#define PATIENCE_NS ((uint64_t)60 * 1000000000)
#define MAX_ANSWER  ((size_t)1 << 20)

static int ask_spawn(
	const char *program, const char *const *words, const char *folder, int output, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t how;
	sigset_t none, usual;
	char *copy[CLIENT_MAX_WORDS + 1];
	int r;

	/* A program does not write to its words, and the type of posix_spawn does not say so. */
	memcpy(copy, words, sizeof(copy));
	sigemptyset(&none);
	sigfillset(&usual);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&how);
	r = posix_spawn_file_actions_addchdir_np(&actions, folder);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(
			&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(
			&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &usual);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (r == 0)
		r = posix_spawn(ret, program, &actions, &how, copy, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&how);
	return -r;
}

/* Everything it prints, until it closes its end; -ETIME: it takes too long. */
static int read_answer(int fd, struct buf *ret)
{
	uint64_t end = clock_ns() + PATIENCE_NS;

	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_ns();
		char bytes[4096];
		ssize_t n;

		if (now >= end)
			return -ETIME;
		if (poll(&wait, 1, (int)((end - now) / 1000000) + 1) <= 0)
			continue;
		n = read(fd, bytes, sizeof(bytes));
		if (n == 0)
			return ret->failed ? -EFBIG : 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			buf_add(ret, bytes, (size_t)n);
	}
}

static int ask_run(
	const char *program, const char *const *words, const char *folder, struct buf *ret)
{
	int ends[2] = { -1, -1 }, r = pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0, status = 0;
	own_fd int near = ends[0], far = ends[1];
	pid_t pid = 0;

	if (r == 0)
		r = ask_spawn(program, words, folder, far, &pid);
	if (r < 0)
		return r;
	close(take_fd(&far));
	r = read_answer(near, ret);
	if (r < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return r == 0 && status != 0 ? -EIO : r;
}

static int ask_program(const struct client_question *q, const struct agent_search *where,
	struct buf *ret, struct err *e)
{
	char program[PATH_MAX], real[PATH_MAX];
	int r;

	if (!agent_search(q->words[0], where, program, real))
		return err_set(e, ERR_REFUSED, ENOENT, "'%s' is not installed here", q->words[0]);
	r = ask_run(program, q->words, where->home ? where->home : "/", ret);
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r, "'%s %s' failed here%s%s", q->words[0],
			q->words[1], r == -EIO ? "" : ": ", r == -EIO ? "" : strerror(-r));
	return 0;
}

/* A file that others can write is not the operator's word, in the home as in a repository. */
static bool ask_is_own(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (st.st_uid == 0 || st.st_uid == geteuid());
}

static int ask_read_file(const struct client_question *q, const struct agent_search *where,
	const char *git, struct buf *ret, struct err *e)
{
	const char *set = q->variable ? getenv(q->variable) : NULL;
	char path[PATH_MAX];
	own_free char *bytes = NULL;
	size_t size = 0;
	own_fd int fd = -1;
	int n, r;

	if (!q->folder)
		n = snprintf(path, sizeof(path), "%s/%s", git ? git : "", q->file);
	else if (set && set[0] == '/')
		n = snprintf(path, sizeof(path), "%s/%s", set, q->file);
	else
		n = snprintf(path, sizeof(path), "%s/%s/%s", where->home ? where->home : "",
			q->folder, q->file);
	if (n >= (int)sizeof(path) || (q->folder ? !where->home && !set : !git))
		return 0;
	fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	r = fd < 0 ? fd : !ask_is_own(fd) ? -EPERM : file_read_all(fd, MAX_ANSWER, &bytes, &size);
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r, "cannot read '%s': %s", path,
			r == -EPERM ? "it belongs to another user" : strerror(-r));
	buf_add(ret, bytes, size);
	return 0;
}

/*
 * Asks the operator's client, in their home. `git` is the folder with the configuration of the
 * project's repository, or NULL. -errno with a sentence where it cannot be asked.
 */
static int client_ask(struct arena *arena, const struct client_def *c,
	const struct agent_search *where, const char *git, struct client_found *ret, struct err *e)
{
	*ret = (struct client_found){ 0 };
	for (size_t i = 0; i < COUNT_OF(c->questions); i++) {
		const struct client_question *q = &c->questions[i];
		own(buf) struct buf answer = { .max = MAX_ANSWER };
		int r = 0;

		if (q->words[0])
			r = ask_program(q, where, &answer, e);
		else if (q->file)
			r = ask_read_file(q, where, git, &answer, e);
		if (r < 0)
			return r;
		if ((q->words[0] || q->file) && !client_read(arena, q, buf_text(&answer), ret))
			return err_set(e, ERR_REFUSED, E2BIG,
				"it names more than %d registries, or longer ones than fit",
				CLIENT_MAX_HOSTS);
	}
	return 0;
}

static const struct client_def *find_def(const char *name)
{
	for (const struct client_def *c = client_defs; c->name; c++)
		if (str_eq(c->name, name))
			return c;
	return NULL;
}

/* Passes the settings of the operator's client to the one in the cage. */
static void apply_tell(struct spec *s, const struct client_def *c, const struct client_found *found,
	struct diag_pos at)
{
	own(buf) struct buf text = { .max = (size_t)1 << 16 };
	bool is_said = false;

	for (size_t i = 0; i < found->setting_count; i++) {
		const struct client_setting *x = &found->settings[i];

		if (c->says_variables && x->value)
			agent_add_var(s, SPEC_ENV_SET, x->key, x->value, at);
		if (!c->file || !x->value)
			continue;
		buf_puts(&text, is_said ? "" : c->head);
		buf_printf(&text, "%s%s%s\n", x->key, c->between, x->value);
		is_said = true;
	}
	if (is_said)
		agent_add_var(s, SPEC_FILES, c->file,
			text.failed ? NULL : arena_copy(&s->arena, buf_text(&text), text.len), at);
}

static void apply_refuse(struct spec *s, const struct client_def *c, struct diag_pos at,
	const char *hint, const char *why)
{
	diags_error(&s->diags, at, hint, "network.allow: cannot find the hosts of '%s': %s",
		c->name, why);
}

/* One host of a client as an entry; false: it was said what is wrong with it. */
static bool make_item(struct spec *s, const struct client_def *c, const char *host,
	struct diag_pos at, struct spec_item *ret)
{
	struct err e = { 0 };

	*ret = (struct spec_item){ .at = at };
	if (str_starts(host, "localhost:")) {
		apply_refuse(s, c, at,
			"name its port: --host-port PORT, and use bawn-host:PORT in the cage",
			"it is on this machine itself");
		return false;
	}
	if (spec_parse(SPEC_GRAMMAR_EGRESS, &s->arena, host, ret, &e) < 0) {
		apply_refuse(s, c, at, NULL, e.text);
		return false;
	}
	ret->egress.client = c->name;
	return true;
}

static bool has_text(const struct spec_item *items, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(items[i].text, text))
			return true;
	return false;
}

void client_apply(
	struct spec *s, struct spec_value *allow, const struct agent_search *where, const char *git)
{
	struct spec_item *items;
	size_t names = 0, n = 0;

	for (size_t i = 0; i < allow->count; i++)
		names += !allow->items[i].egress.port;
	if (!names)
		return;
	items = arena_array(&s->arena, allow->count + names * CLIENT_MAX_HOSTS, sizeof(*items));
	if (!items) {
		diags_error(&s->diags, allow->at, NULL, "not enough memory for the allow-list");
		return;
	}
	for (size_t i = 0; i < allow->count; i++)
		if (allow->items[i].egress.port)
			items[n++] = allow->items[i];
	for (size_t i = 0; i < allow->count; i++) {
		struct diag_pos at = allow->items[i].at;
		const struct client_def *c;
		struct client_found found;
		struct err e = { 0 };

		if (allow->items[i].egress.port)
			continue;
		c = find_def(allow->items[i].egress.client);
		/* The grammar takes no other names. */
		if (!c) {
			diags_error(&s->diags, at, NULL, "network.allow: '%s' is no client",
				allow->items[i].text);
			continue;
		}
		if (client_ask(&s->arena, c, where, git, &found, &e) < 0)
			apply_refuse(s, c, at, "name them: --allow HOST:PORT", e.text);
		else if (!found.host_count)
			apply_refuse(s, c, at, c->hint, c->nothing);
		for (size_t k = 0; k < found.host_count; k++)
			if (make_item(s, c, found.hosts[k], at, &items[n]) &&
				!has_text(items, n, items[n].text))
				n++;
		apply_tell(s, c, &found, at);
	}
	allow->items = items;
	allow->count = n;
}
