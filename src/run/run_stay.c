/*
 * run_stay - the process of a session that does the next commands of `session exec`.
 *
 * Runs as:     the operator; nobody's child, in a session of its own, without a terminal, until
 *              nobody has asked for some seconds, or the session is stopped.
 * Enters with: the memory of whoever ran a command, and nothing of its descriptors but what keeps
 *              the workspace mounted.
 * Leaves:      of each command what a process of its own would leave; at the end nothing: its cages
 *              and the mounted workspace end with it, also where it is killed.
 * Must not:    do a command for another user, or for a process that is not as the one that started
 *              it; let a command outlive who asked for it; keep that one's streams a moment longer.
 */
#include "run/run_stay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "run/run_sessions.h"
#include "wire/wire.h"

struct stay {
	struct run_job job; /* as it is for each command */
	struct run_stay_begin begin;
	struct run_pool pool;
	char identity[SHA256_HEX_SIZE];
	int folder; /* the session's */
	int life;   /* the lock that says that it lives */
	int slot;   /* one of those that an operator has */
	int door;
	int hold; /* what keeps the workspace mounted */
	int null;
	int conversation;    /* with who asked, or -1 */
	uint64_t touched_ns; /* when the store was told that the session is used */
};

#define TOUCH_MS 60000 /* at most, between two times */

/* --- one command --- */

/* What came with one: the variables lie in it. */
struct command {
	struct run_stay_asked asked;
	char *text; /* mapped */
	size_t size;
	char **variables;
	int streams[RUN_STAY_STREAMS];
};

static void command_done(struct command *c)
{
	for (int i = 0; i < RUN_STAY_STREAMS; i++)
		if (c->streams[i] >= 0)
			close(c->streams[i]);
	free(c->text);
	free(c->variables);
}

static bool is_of_us(int conversation)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	return getsockopt(conversation, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
	       who.uid == geteuid();
}

static bool is_like_us(const struct stay *s, struct run_stay_asked *a)
{
	a->identity[SHA256_HEX_SIZE - 1] = '\0';
	return str_eq(a->identity, s->identity) || cage_is_broken("stay");
}

/* Both texts end where they say. */
static bool stay_read_text(struct command *c, int fd)
{
	const struct run_stay_asked *a = &c->asked;
	size_t count = 1;

	if (file_read_all(fd, RUN_REQUEST_SIZE + RUN_STAY_VARIABLES, &c->text, &c->size) < 0 ||
		a->request_size == 0 || c->size != (size_t)a->request_size + a->variables_size ||
		c->text[a->request_size - 1] || c->text[c->size - 1])
		return false;
	for (size_t i = a->request_size; i < c->size; i++)
		count += !c->text[i];
	c->variables = calloc(count, sizeof(*c->variables));
	if (!c->variables)
		return false;
	count = 0;
	for (char *at = c->text + a->request_size; at < c->text + c->size; at += strlen(at) + 1)
		c->variables[count++] = at;
	return true;
}

/* What is asked, if it is for us; false: whoever asked has it done otherwise. */
static bool stay_receive(struct stay *s, struct command *c)
{
	const struct timeval patience = { .tv_sec = 1 };
	struct wire_message m = { 0 };
	own_fd int text = -1;

	if (!is_of_us(s->conversation) ||
		setsockopt(s->conversation, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) <
			0 ||
		setsockopt(s->conversation, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) <
			0 ||
		wire_receive_message(s->conversation, &c->asked, sizeof(c->asked), &text) < 0)
		return false;
	for (int i = 0; i < RUN_STAY_STREAMS; i++)
		if (wire_receive(s->conversation, &m, &c->streams[i]) < 0 || c->streams[i] < 0)
			return false;
	return is_like_us(s, &c->asked) && text >= 0 && stay_read_text(c, text) &&
	       wire_send(s->conversation, WIRE_READY, 0, NULL) == 0 &&
	       wire_receive(s->conversation, &m, NULL) == 0 && m.kind == WIRE_GO;
}

/* All that the process that asked has of its own is ours for as long as the command runs. */
static bool stay_take_place(const struct command *c)
{
	for (int i = 0; i < 3; i++)
		if (dup2(c->streams[i], i) < 0)
			return false;
	environ = c->variables;
	return fchdir(c->streams[3]) == 0;
}

static void stay_leave_place(const struct stay *s)
{
	for (int i = 0; i < 3; i++)
		dup2(s->null, i);
	(void)!chdir("/");
}

/* The end is known and signed: whoever asked ends, and nobody waits for what we do then. */
static void stay_tell_end(void *of, struct run_result *result)
{
	struct stay *s = of;

	(void)result;
	stay_leave_place(s);
	(void)wire_send(s->conversation, WIRE_EXITED, result->status, NULL);
	close(take_fd(&s->conversation));
}

static void stay_look(void *of, const struct record *record)
{
	const struct stay *s = of;

	s->job.look(s->begin.of, record);
}

static void stay_run(struct stay *s, struct command *c)
{
	own(run_request) struct run_request request = { 0 };
	struct run_job job = s->job;
	const struct timeval ever = { 0 };
	struct run_result result = { .status = RUN_FAILED };
	char **before = environ;
	struct err e = { 0 };

	setsockopt(s->conversation, SOL_SOCKET, SO_RCVTIMEO, &ever, sizeof(ever));
	if (run_request_read(c->text, c->asked.request_size - 1, &request, &e) < 0 ||
		!stay_take_place(c)) {
		stay_tell_end(s, &result);
		environ = before;
		return;
	}
	for (int i = 0; i < RUN_STAY_STREAMS; i++)
		close(take_fd(&c->streams[i]));
	request.here.tty = RUN_TTY_NEVER;
	s->begin.call(s->begin.of, job.root, c->asked.is_quiet);
	job.request = &request;
	job.caller = s->conversation;
	job.look = stay_look;
	job.done = stay_tell_end;
	job.of = s;
	job.pool = &s->pool;
	run_in_session(&job, &result);
	buf_done(&result.record);
	environ = before;
}

static void stay_serve(struct stay *s)
{
	struct command c = { .streams = { -1, -1, -1, -1 } };

	s->conversation = accept4(s->door, NULL, NULL, SOCK_CLOEXEC);
	if (s->conversation < 0)
		return;
	if (stay_receive(s, &c))
		stay_run(s, &c);
	if (s->conversation >= 0)
		close(take_fd(&s->conversation));
	command_done(&c);
}

/* A session that nobody uses for long is removed: the store is told that this one is used. */
static void stay_touch(struct stay *s)
{
	int64_t third = s->job.session->ttl_ms / 3;
	uint64_t now = clock_ns();
	struct store *store = NULL;
	struct err e = { 0 };

	if (now - s->touched_ns <
		(uint64_t)(third > 0 && third < TOUCH_MS ? third : TOUCH_MS) * 1000000)
		return;
	s->touched_ns = now;
	/* Opened each time: cages begin as copies of this process, and shall have none of it. */
	if (run_open_store(false, &store, &e) == 0)
		(void)store_touch_session(store, s->job.session->id, &e);
	if (store)
		store_close(store);
}

/* --- the process --- */

static int stay_listen(int folder)
{
	own_fd int fd = wire_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/stay-door", folder);
	/* One may be left of somebody who was killed. */
	unlinkat(folder, "stay-door", 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, 8) < 0)
		return -errno;
	return take_fd(&fd);
}

/* One of the places that an operator's stay-keepers have; or -errno. */
static int stay_take_slot(int state)
{
	own_fd int fd = openat(state, "stays", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	for (off_t i = 0; fd >= 0 && i < RUN_STAY_MOST; i++) {
		struct flock byte = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i, .l_len = 1
		};

		if (fcntl(fd, F_OFD_SETLK, &byte) == 0)
			return take_fd(&fd);
	}
	return -EAGAIN;
}

static void stay_note_pid(const struct stay *s, pid_t pid)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%d", (int)pid);

	if (ftruncate(s->life, 0) < 0 || pwrite(s->life, text, (size_t)n, 0) != n)
		kill(pid, SIGKILL);
}

/* Nothing stays open but these, and nothing is said to anybody. */
static bool stay_let_go(struct stay *s)
{
	int *const kept[] = { &s->job.root, &s->folder, &s->life, &s->slot, &s->door, &s->hold,
		&s->null };

	s->null = file_open("/dev/null", O_RDWR);
	if (s->null < 0)
		return false;
	stay_leave_place(s);
	return file_keep_only(STDERR_FILENO + 1, kept, 7) == 0;
}

static noreturn void stay_be(struct stay *s)
{
	static const char *const any[] = { "true" };
	const struct run_request next = {
		.command = any, .command_count = 1, .here.tty = RUN_TTY_NEVER
	};
	uint64_t rest_ms = (uint64_t)run_stay_seconds() * 1000;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!stay_let_go(s))
		_exit(125);
	memset(s->job.command_line, 0, s->job.command_line_size);
	snprintf(s->job.command_line, s->job.command_line_size, "bawn: stays for a session");
	s->job.pool = &s->pool;
	s->job.request = &next;
	run_warm_session(&s->job);
	for (;;) {
		struct pollfd fds[2] = { { s->door, POLLIN, 0 }, { s->hold, POLLIN, 0 } };
		int n = poll(fds, 2, (int)rest_ms);

		if (n < 0 && errno == EINTR)
			continue;
		/* The session is stopped, or somebody wants it for himself. */
		if (n <= 0 || fds[1].revents)
			break;
		stay_serve(s);
		stay_touch(s);
	}
	/* The name first: from there on nobody asks who would be disappointed. */
	unlinkat(s->folder, "stay-door", 0);
	unlinkat(s->folder, "stay", 0);
	run_pool_done(&s->pool);
	_exit(0);
}

static int stay_open(struct stay *s, int state)
{
	own_fd int turn = -1;

	s->folder = run_stay_open_folder(s->job.root, s->job.session->id);
	s->life = s->folder < 0 ? s->folder : run_stay_open_lock(s->folder, "stay", true);
	s->slot = s->life < 0 ? -1 : stay_take_slot(state);
	s->door = s->slot < 0 ? -1 : stay_listen(s->folder);
	if (s->door < 0)
		return -1;
	/* Who asks locks it, and makes nothing. */
	turn = run_stay_open_lock(s->folder, "stay-turn", true);
	return turn < 0 && turn != -EWOULDBLOCK ? turn : 0;
}

static noreturn void stay_fork(struct stay *s)
{
	pid_t pid = setsid() < 0 ? -1 : fork();

	if (pid == 0)
		stay_be(s);
	/* It is there, and found, before the command that started it has ended. */
	if (pid > 0)
		stay_note_pid(s, pid);
	_exit(0);
}

void run_stay_start(const struct run_job *job, const struct run_stay_begin *begin, int state,
	const char *identity)
{
	struct stay s = { .job = *job,
		.begin = *begin,
		.touched_ns = clock_ns(),
		.folder = -1,
		.life = -1,
		.slot = -1,
		.door = -1,
		.null = -1,
		.hold = *job->hold,
		.conversation = -1 };
	int *const fds[] = { &s.folder, &s.life, &s.slot, &s.door, &s.hold };
	pid_t parent;

	memcpy(s.identity, identity, sizeof(s.identity));
	s.job.hold = &s.hold;
	if (s.hold >= 0 && stay_open(&s, state) == 0) {
		parent = fork();
		/* In between, so that it is nobody's child. */
		if (parent == 0)
			stay_fork(&s);
		while (parent > 0 && waitpid(parent, NULL, 0) < 0 && errno == EINTR)
			;
	}
	for (size_t i = 0; i < 5; i++)
		if (*fds[i] >= 0)
			close(*fds[i]);
	*job->hold = -1;
}
