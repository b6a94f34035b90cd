/*
 * worker_sweep - has expired sessions removed, now and then, by a process of its own.
 *
 * Runs as: the coordinator, which goes on meanwhile. A round is a command, started anew: a
 *          process that is forked from this one must not use the store that this one has open.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/own.h"
#include "session/worker/worker_inside.h"

#define MAX_OUTPUT ((size_t)64 << 20) /* it names every session that it removed */

extern char **environ;

static void sweep_settle(struct worker *w, uint64_t failed)
{
	w->metrics.sweeps++;
	w->metrics.sweep_failures += failed;
	worker_note_count(w);
	w->sweep_ns = clock_ns() + w->settings->sweep_ms * 1000000;
}

static int sweep_spawn(struct worker *w, int output)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t how;
	sigset_t none, usual;
	int r;

	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGHUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&how);
	r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(
			&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &usual);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (r == 0)
		r = posix_spawn(&w->sweep.pid, "/proc/self/exe", &actions, &how, w->settings->sweep,
			environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&how);
	return -r;
}

void worker_begin_sweep(struct worker *w)
{
	int ends[2] = { -1, -1 }, r = pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;
	own_fd int near = ends[0], far = ends[1];

	w->sweep_ns = 0;
	if (r == 0)
		r = sweep_spawn(w, far);
	if (r == 0) {
		(void)fcntl(near, F_SETFL, O_NONBLOCK);
		w->sweep.output = take_fd(&near);
		buf_init(&w->sweep.text, MAX_OUTPUT);
		return;
	}
	w->sweep.pid = 0;
	worker_warn(w, "cannot start a sweep: %s", strerror(-r));
	sweep_settle(w, 1);
}

/* --- what it says --- */

struct sweep_result {
	int64_t removed, kept, failed;
};

static bool sweep_read_number(void *reader, void *into)
{
	return json_read_int(reader, into);
}

static const struct json_field fields[] = {
	{ "removed", sweep_read_number, offsetof(struct sweep_result, removed), true },
	{ "kept", sweep_read_number, offsetof(struct sweep_result, kept), true },
	{ "failed", sweep_read_number, offsetof(struct sweep_result, failed), true },
};

static void sweep_judge(struct worker *w, int status)
{
	struct sweep_result x = { 0 };
	struct json_reader r;
	bool is_good;

	json_read_init(&r, buf_text(&w->sweep.text), w->sweep.text.len, MAX_OUTPUT);
	JSON_READ_FIELDS(&r, fields, &x);
	json_read_end(&r);
	is_good = !r.wrong && !w->sweep.text.failed && WIFEXITED(status) &&
		  WEXITSTATUS(status) == 0 && x.failed == 0;
	if (!r.wrong && x.removed > 0)
		w->metrics.swept += (uint64_t)x.removed;
	json_reader_done(&r);
	/* Once, and again when there are more. */
	if (is_good && x.kept > w->sweep.kept)
		worker_warn(w,
			"%" PRId64 " expired sessions are kept: they have changes that were not "
			"applied; bawn session sweep names them, and --discard removes them",
			x.kept);
	w->sweep.kept = is_good ? x.kept : w->sweep.kept;
	if (!is_good)
		worker_warn(w, "a sweep failed, or could not remove everything");
	sweep_settle(w, x.failed > 0 ? (uint64_t)x.failed : !is_good);
}

void worker_hear_sweep(struct worker *w)
{
	char bytes[4096];
	int status = 0;
	ssize_t n = read(w->sweep.output, bytes, sizeof(bytes));

	if (n > 0) {
		buf_add(&w->sweep.text, bytes, (size_t)n);
		return;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	close(w->sweep.output);
	w->sweep.output = -1;
	while (waitpid(w->sweep.pid, &status, 0) < 0 && errno == EINTR)
		;
	w->sweep.pid = 0;
	sweep_judge(w, status);
	buf_done(&w->sweep.text);
}

void worker_end_sweep(struct worker *w)
{
	if (!w->sweep.pid)
		return;
	kill(w->sweep.pid, SIGTERM);
	while (waitpid(w->sweep.pid, NULL, 0) < 0 && errno == EINTR)
		;
	w->sweep.pid = 0;
	close(w->sweep.output);
	w->sweep.output = -1;
	buf_done(&w->sweep.text);
}
