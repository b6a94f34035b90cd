/*
 * cli_mcp_calls - the calls that are being done, each by a process of its own.
 *
 * Runs as:  the operator, in the server.
 * Must not: leave a process behind, or let one of them have the protocol's streams.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "cli/cli_mcp.h"

#define SIGN_MS 3000 /* for a call whose command was killed to put that on record */

struct mcp_call *mcp_calls_find(struct mcp_server *s, const struct mcp_slice *id)
{
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (mcp_is_same_id(
			    &(struct mcp_slice){ s->calls[i].id, strlen(s->calls[i].id) }, id))
			return &s->calls[i];
	return NULL;
}

/* --- starting --- */

/*
 * Nothing of the server's stays open but these two, which get new numbers, and where it complains.
 */
static int mcp_calls_let_go(int *root, int *answer)
{
	int null = file_open("/dev/null", O_RDWR);
	int *const kept[] = { root, answer };

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -1;
	return file_keep_only(STDERR_FILENO + 1, kept, 2);
}

static _Noreturn void be_call(
	struct mcp_server *s, const struct mcp_request *q, int answer, pid_t server)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* A keeper does not hear what it was told to ignore. */
	signal(SIGTERM, SIG_DFL);
	signal(MCP_KILL_SIGNAL, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != server || mcp_calls_let_go(&s->root, &answer) < 0)
		_exit(1);
	mcp_run(s, q, answer);
	_exit(0);
}

static int cli_mcp_calls_start(
	struct mcp_server *s, struct mcp_call *c, const struct mcp_request *q)
{
	own_fd int answer = memfd_create("answer", MFD_CLOEXEC);
	pid_t server = getpid();
	pid_t pid = answer < 0 ? -1 : fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		be_call(s, q, answer, server);
	*c = (struct mcp_call){ .is_modern = q->is_modern, .pid = pid };
	c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (c->pidfd < 0) {
		int failure = -errno;

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return failure;
	}
	memcpy(c->id, q->id.bytes, q->id.size);
	c->answer = take_fd(&answer);
	return 0;
}

static struct mcp_call *mcp_calls_find_place(struct mcp_server *s)
{
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (!s->calls[i].id[0])
			return &s->calls[i];
	return NULL;
}

void mcp_calls_start(struct mcp_server *s, const struct mcp_request *q)
{
	struct mcp_call *place = mcp_calls_find_place(s);
	char sentence[128];
	int r = 0;

	if (mcp_calls_find(s, &q->id))
		snprintf(sentence, sizeof(sentence), "a call with this id is being done");
	else if (!place)
		snprintf(sentence, sizeof(sentence),
			"%d calls are being done: wait until one has ended", MCP_MOST_CALLS);
	else if ((r = cli_mcp_calls_start(s, place, q)) < 0)
		snprintf(sentence, sizeof(sentence), "cannot start the call: %s", strerror(-r));
	else
		return;
	mcp_print_failure(&q->id, sentence, &s->out);
}

/* --- ending --- */

void mcp_calls_stop(struct mcp_call *c, unsigned patience_ms)
{
	uint64_t when = clock_ns() + (uint64_t)patience_ms * 1000000;

	if (!c->kill_ns)
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGTERM, NULL, 0);
	if (!c->kill_ns || (when < c->kill_ns && !c->is_killed))
		c->kill_ns = when;
}

/* Killed itself, it could not say what became of its command. */
void mcp_calls_kill_late(struct mcp_call *c)
{
	uint64_t now = clock_ns();

	if (!c->kill_ns || now < c->kill_ns)
		return;
	syscall(SYS_pidfd_send_signal, c->pidfd, c->is_killed ? SIGKILL : MCP_KILL_SIGNAL, NULL, 0);
	c->is_killed = true;
	c->kill_ns = now + (uint64_t)SIGN_MS * 1000000;
}

static void add_answer(struct mcp_server *s, const struct mcp_call *c)
{
	own_free char *line = NULL;
	size_t n = 0;
	int r = lseek(c->answer, 0, SEEK_SET) < 0
			? -errno
			: file_read_all(c->answer, MCP_MAX_ANSWER, &line, &n);

	if (r == 0 && n && line[n - 1] == '\n')
		buf_add(&s->out, line, n);
	else
		mcp_print_failure(&(struct mcp_slice){ c->id, strlen(c->id) },
			"the run of this call was ended before it could say how it went", &s->out);
}

void mcp_calls_end(struct mcp_server *s, struct mcp_call *c)
{
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (!c->is_cancelled && !s->is_mute)
		add_answer(s, c);
	close(c->pidfd);
	close(c->answer);
	*c = (struct mcp_call){ 0 };
}
