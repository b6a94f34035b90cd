/*
 * mcp_calls - the calls that are being done, and the processes that do them, one call at a time.
 *
 * Runs as:  the operator, in the server.
 * Must not: leave a process behind, or let one of them have the protocol's streams; wait for one.
 *
 * A process that has done its call waits for the next one: it has a warm cage. A few are kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/mcp/mcp_server.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "wire/wire.h"

#define SIGN_MS    3000 /* for a call whose command was killed to put that on record */
#define DISMISS_MS 2000 /* for a runner that has nothing to do to end its warm cage */

struct mcp_call *mcp_calls_find(struct mcp_server *s, const struct mcp_slice *id)
{
	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		if (mcp_is_same_id(
			    &(struct mcp_slice){ s->calls[i].id, strlen(s->calls[i].id) }, id))
			return &s->calls[i];
	return NULL;
}

/* --- runners --- */

/*
 * Nothing of the server's stays open but these two, which get new numbers, and where it complains.
 */
static int mcp_calls_let_go(int *root, int *channel)
{
	int null = file_open("/dev/null", O_RDWR);
	int *const kept[] = { root, channel };

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -1;
	return file_keep_only(STDERR_FILENO + 1, kept, 2);
}

static _Noreturn void be_runner(struct mcp_server *s, int channel, pid_t server)
{
	sigset_t set;

	/* These are for the call that is being done: its keeper hears them. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, MCP_KILL_SIGNAL);
	sigprocmask(SIG_SETMASK, &set, NULL);
	/* A keeper does not hear what it was told to ignore. */
	signal(SIGTERM, SIG_DFL);
	signal(MCP_KILL_SIGNAL, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != server || mcp_calls_let_go(&s->root, &channel) < 0)
		_exit(1);
	mcp_run(s, channel);
}

static int start_runner(struct mcp_server *s, struct mcp_call *c)
{
	int ends[2] = { -1, -1 }, failure = wire_pair(ends);
	own_fd int near = ends[0], far = ends[1];
	pid_t server = getpid();
	pid_t pid = failure < 0 ? -1 : fork();

	if (pid < 0)
		return failure < 0 ? failure : -errno;
	if (pid == 0)
		be_runner(s, far, server);
	*c = (struct mcp_call){ .pid = pid };
	c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (c->pidfd < 0) {
		failure = -errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		*c = (struct mcp_call){ 0 };
		return failure;
	}
	c->channel = take_fd(&near);
	return 0;
}

/* --- starting --- */

/* One that waits, those first that have a warm cage by now; or a place for a new one. */
static struct mcp_call *mcp_calls_find_place(struct mcp_server *s)
{
	struct mcp_call *found = NULL;

	for (size_t i = 0; i < MCP_MOST_CALLS; i++) {
		struct mcp_call *c = &s->calls[i];

		if (c->id[0] || c->kill_ns)
			continue;
		if (c->is_ready)
			return c;
		if (!found || (c->pid && !found->pid))
			found = c;
	}
	return found;
}

/* Arguments where nobody can change them any more. */
static int seal(const struct mcp_slice *arguments)
{
	own_fd int fd = memfd_create("arguments", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : file_write_all(fd, arguments->bytes, arguments->size);

	if (r == 0 && (fcntl(fd, F_ADD_SEALS,
			       F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0 ||
			      lseek(fd, 0, SEEK_SET) < 0))
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

static int begin_call(struct mcp_server *s, struct mcp_call *c, const struct mcp_request *q)
{
	struct mcp_note note = { .kind = MCP_NOTE_CALL,
		.tool = q->tool,
		.is_modern = q->is_modern,
		.wants_hold = s->hold < 0 };
	own_fd int arguments = seal(&q->arguments);
	int r = arguments < 0 ? arguments : c->pid ? 0 : start_runner(s, c);

	memcpy(note.id, q->id.bytes, q->id.size);
	if (r == 0)
		r = wire_send_message(c->channel, &note, sizeof(note), arguments);
	if (r < 0)
		return r;
	memcpy(c->id, note.id, sizeof(c->id));
	c->is_modern = q->is_modern;
	c->is_ready = false;
	return 0;
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
	else if ((r = begin_call(s, place, q)) < 0)
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

void mcp_calls_dismiss(struct mcp_call *c, unsigned patience_ms)
{
	if (c->kill_ns)
		return;
	shutdown(c->channel, SHUT_WR);
	c->is_killed = true;
	c->kill_ns = clock_ns() + (uint64_t)patience_ms * 1000000;
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

/* `answer` is what the runner wrote, or -1. */
static void mcp_calls_end(struct mcp_server *s, struct mcp_call *c, int answer)
{
	own_free char *line = NULL;
	size_t n = 0;
	int r = answer < 0 || lseek(answer, 0, SEEK_SET) < 0
			? -EIO
			: file_read_all(answer, MCP_MAX_ANSWER, &line, &n);

	if (!c->is_cancelled && !s->is_mute && r == 0 && n && line[n - 1] == '\n')
		buf_add(&s->out, line, n);
	else if (!c->is_cancelled && !s->is_mute)
		mcp_print_failure(&(struct mcp_slice){ c->id, strlen(c->id) },
			"the run of this call was ended before it could say how it went", &s->out);
	c->id[0] = '\0';
	c->is_cancelled = false;
}

/* What came from a runner that has ended is known by now. */
static void bury_runner(struct mcp_server *s, struct mcp_call *c)
{
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (c->id[0])
		mcp_calls_end(s, c, -1);
	close(c->pidfd);
	close(c->channel);
	*c = (struct mcp_call){ 0 };
}

/* Its call is done. A signal that was meant for that may still be on its way: then it is the last.
 */
static void mcp_calls_keep(struct mcp_server *s, struct mcp_call *c)
{
	size_t idle = 0;

	for (size_t i = 0; i < MCP_MOST_CALLS; i++)
		idle += s->calls[i].pid && !s->calls[i].id[0] && !s->calls[i].kill_ns;
	if (!c->kill_ns && idle <= MCP_MOST_IDLE && !s->is_over)
		return;
	c->kill_ns = 0;
	mcp_calls_dismiss(c, DISMISS_MS);
}

void mcp_calls_drop_hold(struct mcp_server *s)
{
	if (s->hold >= 0)
		close(take_fd(&s->hold));
}

void mcp_calls_hear(struct mcp_server *s, struct mcp_call *c)
{
	struct mcp_note note = { 0 };
	own_fd int fd = -1;

	if (wire_receive_message(c->channel, &note, sizeof(note), &fd) < 0) {
		bury_runner(s, c);
	} else if (note.kind == MCP_NOTE_HOLD && s->hold < 0) {
		s->hold = take_fd(&fd);
	} else if (note.kind == MCP_NOTE_DONE && c->id[0]) {
		mcp_calls_end(s, c, fd);
		mcp_calls_keep(s, c);
	} else if (note.kind == MCP_NOTE_READY) {
		c->is_ready = true;
	}
}
