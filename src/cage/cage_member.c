/*
 * cage_member - holds the captured trees of a session, mounted once for all of its runs.
 *
 * Runs as:     the workspace holder: a process of the operator in user and mount namespaces of its
 *              own; all capabilities there, none outside. It sees only the trees of the host.
 * Enters with: a listening socket, the door, and locks; ids mapped.
 * Leaves:      nothing. It ends with the last run, or when it is told to end them.
 * Must not:    run, read or resolve anything of the workspace.
 *
 * Two overlays must not share an upper layer, so one process mounts it and each run gets a clone,
 * which its cage attaches. A run keeps its connection from its start to its end, and hears by it
 * that the session is stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

#define MOST_RUNS  1000
#define ROOT_SIZE  ((uint64_t)64 << 10)
#define MESSAGE_MS 1000 /* timeout for sending to a keeper */
#define TURN_MS    5    /* between two tries to end, while a run may be connecting */

static const struct {
	enum plan_op_kind kind;
	enum plan_root from;
	const char *name;
} shared[CAGE_TREE_COUNT] = {
	[CAGE_LAYER_PROJECT] = { PLAN_PROJECT, PLAN_ROOT_PROJECT, "project" },
	[CAGE_LAYER_GIT] = { PLAN_GIT, PLAN_ROOT_GIT, "git" },
	[CAGE_TREE_HOME] = { PLAN_BIND, PLAN_ROOT_SESSION_HOME, "home" },
	[CAGE_TREE_TMP] = { PLAN_BIND, PLAN_ROOT_SESSION_TMP, "tmp" },
};

struct share {
	int trees[CAGE_TREE_COUNT];       /* where they are attached, or -1 */
	struct pollfd fds[1 + MOST_RUNS]; /* the door, and the connections */
	bool is_run[1 + MOST_RUNS];       /* or a client that asks for the end */
	bool is_spare[1 + MOST_RUNS];     /* keeps the trees mounted, but runs nothing */
	nfds_t count;
	bool is_ending;
};

/* --- the trees --- */

static int attach_tree(struct cage *c, const struct plan_op *op, const char *name, struct err *e)
{
	own_fd int tree = op->kind == PLAN_BIND
				  ? cage_source_tree(c, op, cage_restrictions(op->flags), NULL, e)
				  : cage_capture(c, op, e);
	own_fd int place = -1;
	int r = tree;

	if (r >= 0 && mkdirat(c->root, name, 0700) < 0)
		r = err_sys(e, errno, "cannot make a place for the session's %s", name);
	place = r < 0 ? -1 : file_open_beneath(c->root, name, O_PATH, 0);
	if (r >= 0)
		r = cage_attach(tree, place, name, e);
	return r < 0 ? r : file_open_beneath(c->root, name, O_PATH, 0);
}

static int attach_trees(struct cage *c, struct share *s, struct err *e)
{
	const struct plan *p = c->start->plan;
	int r = cage_make_root(c, ROOT_SIZE, 0, e);

	for (int i = 0; r == 0 && i < CAGE_TREE_COUNT; i++) {
		const struct plan_op *op = plan_find_from(p, shared[i].kind, shared[i].from);

		s->trees[i] = -1;
		if (!op || (op->kind != PLAN_BIND && !(op->flags & PLAN_SHARED)))
			continue;
		c->at = (int)cage_op_index(c, op);
		s->trees[i] = attach_tree(c, op, shared[i].name, e);
		r = s->trees[i] < 0 ? s->trees[i] : 0;
	}
	c->at = -1;
	return r == 0 ? cage_enter(c, NULL, e) : r;
}

/* Closes the keeper's descriptors. Ours move up first, so that dup3 overwrites none of them. */
static int member_close_the_rest(struct cage *c, struct share *s, struct cage_member *ret)
{
	int *const kept[] = { &ret->door, &ret->turn, &ret->lock, &ret->mounted, &c->channel,
		&s->trees[0], &s->trees[1], &s->trees[2], &s->trees[3] };
	const int count = (int)COUNT_OF(kept);

	*ret = *c->start->share;
	for (int i = 0; i < count; i++)
		if (*kept[i] >= 0 && (*kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, count)) < 0)
			return -errno;
	for (int i = 0; i < count; i++)
		if (*kept[i] >= 0 && (*kept[i] = dup3(*kept[i], i, O_CLOEXEC)) < 0)
			return -errno;
	return syscall(SYS_close_range, (unsigned)count, ~0U, 0) < 0 ? -errno : 0;
}

/* For ps: the keeper's arguments may hold secrets, and this process lives long. */
static void member_take_name(const struct cage_start *start)
{
	memset(start->command_line, 0, start->command_line_size);
	snprintf(start->command_line, start->command_line_size, "bawn: workspace of a session");
	prctl(PR_SET_NAME, "bawn-workspace");
}

/* --- runs --- */

static void member_drop(struct share *s, nfds_t i)
{
	close(s->fds[i].fd);
	s->fds[i] = s->fds[--s->count];
	s->is_run[i] = s->is_run[s->count];
	s->is_spare[i] = s->is_spare[s->count];
}

static void member_admit(struct share *s)
{
	const struct timeval patience = { .tv_sec = MESSAGE_MS / 1000 };
	int fd = accept4(s->fds[0].fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (s->count == 1 + MOST_RUNS ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0) {
		close(fd);
		return;
	}
	s->fds[s->count] = (struct pollfd){ .fd = fd, .events = POLLIN };
	s->is_spare[s->count] = false;
	s->is_run[s->count++] = true;
}

/* Sends a clone of each tree, which the run restricts and attaches. */
static int send_trees(struct share *s, int to)
{
	struct err e;
	int r = 0;

	for (int i = 0; r == 0 && i < CAGE_TREE_COUNT; i++) {
		own_fd int clone = -1;
		struct wire_message m = { .kind = WIRE_TREE, .n = i };

		if (s->trees[i] < 0)
			continue;
		clone = cage_clone_tree(s->trees[i], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &e);
		r = clone < 0 ? clone : wire_send_message(to, &m, sizeof(m), clone);
	}
	return r == 0 ? wire_send(to, WIRE_JOINED, 0, NULL) : r;
}

/* Is anybody but `i` at work here? */
static bool has_others(const struct share *s, nfds_t i)
{
	for (nfds_t other = 1; other < s->count; other++)
		if (other != i && s->is_run[other] && !s->is_spare[other])
			return true;
	return false;
}

/*
 * A run that has the workspace to itself sees the project as it is now, as if it were mounted for
 * this run: an overlay remembers names of the host, also those that were missing, and drops them
 * when it is configured anew. Those in use stay, so that whoever is at work loses nothing.
 */
static void refresh(const struct share *s)
{
	for (int i = 0; i < CAGE_LAYER_COUNT; i++) {
		own_fd int overlay = s->trees[i] < 0 ? -1
						     : fspick(s->trees[i], "",
							       FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);

		if (overlay >= 0)
			(void)fsconfig(overlay, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0);
	}
}

static bool member_take_run(struct share *s, nfds_t i)
{
	if (!has_others(s, i))
		refresh(s);
	return send_trees(s, s->fds[i].fd) == 0;
}

/* Somebody wants the workspace alone: who only keeps it mounted lets go, unless a run needs it. */
static void yield(const struct share *s, nfds_t i)
{
	for (nfds_t other = 1; other < s->count && !has_others(s, i); other++)
		if (s->is_spare[other])
			shutdown(s->fds[other].fd, SHUT_RDWR);
}

/* Does not wait for spare ones: they may be stopped, or busy. */
static void member_end_runs(struct share *s)
{
	s->is_ending = true;
	for (nfds_t i = 1; i < s->count; i++) {
		if (s->is_run[i])
			wire_send(s->fds[i].fd, WIRE_SIGNAL, SIGTERM, NULL);
		s->is_run[i] &= !s->is_spare[i];
	}
}

/* Sends the pids of the runs to a client that may end them. */
static void tell_runs(const struct share *s, int to)
{
	for (nfds_t i = 1; i < s->count; i++) {
		struct ucred who;
		socklen_t n = sizeof(who);

		if (s->is_run[i] &&
			getsockopt(s->fds[i].fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0)
			wire_send(to, WIRE_CLIENT, who.pid, NULL);
	}
}

/* Returns false on EOF or an unexpected message. */
static bool member_hear(struct share *s, nfds_t i)
{
	struct wire_message m = { 0 };
	int fd = s->fds[i].fd;

	if (wire_receive(fd, &m, NULL) < 0)
		return false;
	s->is_spare[i] = m.kind == WIRE_JOIN && m.n == WIRE_JOIN_SPARE;
	if (m.kind == WIRE_JOIN && !s->is_ending)
		return m.n != WIRE_JOIN_RUN ? wire_send(fd, WIRE_JOINED, 0, NULL) == 0
					    : member_take_run(s, i);
	if (m.kind != WIRE_END)
		return false;
	s->is_run[i] = false;
	if (m.n == WIRE_END_YIELD)
		yield(s, i);
	else if (m.n != WIRE_END_RUNS)
		tell_runs(s, fd);
	else
		member_end_runs(s);
	return true;
}

static bool has_runs(const struct share *s)
{
	for (nfds_t i = 1; i < s->count; i++)
		if (s->is_run[i])
			return true;
	return false;
}

/* True if no run is connecting: a run has the turn locked until it is connected. */
static bool may_end(const struct share *s, int turn)
{
	struct pollfd door = s->fds[0];

	return flock(turn, LOCK_EX | LOCK_NB) == 0 && poll(&door, 1, 0) == 0;
}

static noreturn void serve(struct share *s, int turn)
{
	/* The run that started this process may be killed before it connects. */
	int wait = TURN_MS;

	for (;;) {
		if (poll(s->fds, s->count, wait) < 0 && errno != EINTR)
			_exit(1);
		for (nfds_t i = s->count; i-- > 1;)
			if (s->fds[i].revents && !member_hear(s, i))
				member_drop(s, i);
		if (s->fds[0].revents)
			member_admit(s);
		wait = -1;
		if (has_runs(s))
			continue;
		/* A run that connects now gets EOF, and starts another holder. */
		if (s->is_ending || may_end(s, turn))
			_exit(0);
		flock(turn, LOCK_UN);
		wait = TURN_MS;
	}
}

noreturn void cage_member(struct cage *c)
{
	/* Too large for the stack of a process that was cloned at any depth. */
	static struct share s;
	struct cage_member own;
	struct err e = { 0 };

	if (attach_trees(c, &s, &e) < 0)
		cage_fail(c, &e);
	member_take_name(c->start);
	if (member_close_the_rest(c, &s, &own) < 0)
		_exit(125);
	for (int n = 1; n < NSIG; n++)
		signal(n, n == SIGHUP || n == SIGINT || n == SIGQUIT || n == SIGPIPE ? SIG_IGN
										     : SIG_DFL);
	s.fds[0] = (struct pollfd){ .fd = own.door, .events = POLLIN };
	s.count = 1;
	/* The first run connects before it unlocks the turn. */
	if (wire_send(c->channel, WIRE_READY, 0, NULL) < 0)
		_exit(125);
	close(c->channel);
	serve(&s, own.turn);
}
