/*
 * keeper_member - a run's part in the workspace of its session.
 *
 * Runs as:  the keeper; whoever stops a session.
 * Leaves:   the workspace mounted by a process of its own, as long as any run is in it: that one
 *           ends by itself. While a run lasts it has the workspace locked, and is known there.
 * Must not: let two processes mount one workspace.
 *
 * `turn` is locked while somebody comes in, or starts the process that has the workspace mounted,
 * and that process ends only when it gets the turn itself: nobody meets it on its way out.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

#define RETRY_MS      5
#define MOUNTED_TRIES 400
#define ANSWER_S      10  /* what it may take to be let in */
#define EMPTY_MS      200 /* for those that were ended to let go of the workspace */

#define KEPT (CAGE_TREE_COUNT - CAGE_LAYER_COUNT)

void keeper_member_init(struct keeper_member *s)
{
	s->connection = s->lock = s->turn = -1;
	for (int i = 0; i < KEPT; i++)
		s->kept[i] = -1;
}

static void close_kept(struct keeper_member *s)
{
	for (int i = 0; i < KEPT; i++) {
		if (s->kept[i] >= 0)
			close(s->kept[i]);
		s->kept[i] = -1;
	}
}

void keeper_member_done(struct keeper_member *s)
{
	close_kept(s);
	if (s->connection >= 0)
		close(s->connection);
	if (s->turn >= 0)
		close(s->turn);
	if (s->lock >= 0)
		close(s->lock);
	keeper_member_init(s);
}

/* --- locks and the door --- */

int keeper_member_open_lock(int workspace, const char *name, int how)
{
	own_fd int fd = openat(workspace, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	while (flock(fd, how) < 0)
		if (errno != EINTR)
			return -errno;
	return take_fd(&fd);
}

static int member_fail(int num, struct err *e)
{
	return err_sys(e, num, "cannot take part in the session's workspace");
}

static int fail_stopped(struct err *e)
{
	return err_set(
		e, ERR_REFUSED, ECANCELED, "cannot start the command: the session was stopped");
}

/* By whoever stopped the session, or by somebody else. */
static int fail_ended(struct err *e)
{
	return err_set(e, ERR_REFUSED, ECANCELED,
		"cannot use the session's workspace: the process that mounts it was stopped");
}

static struct sockaddr_un member_address_of(int workspace, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(
		address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", workspace, name);
	return address;
}

int keeper_member_connect(int workspace, const char *name)
{
	own_fd int fd = wire_socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sockaddr_un address = member_address_of(workspace, name);

	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == ECONNREFUSED ? -ENOENT : -errno;
	return take_fd(&fd);
}

int keeper_member_listen(int workspace, const char *name)
{
	own_fd int fd = wire_socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sockaddr_un address = member_address_of(workspace, name);

	if (fd < 0)
		return fd;
	/* One may be left of somebody who was killed. */
	unlinkat(workspace, name, 0);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 128) < 0)
		return -errno;
	return take_fd(&fd);
}

/* --- joining --- */

/* Waits until the process says that it stands, or why not. */
static int hear_sharer(int channel, struct err *e)
{
	struct wire_message m = { 0 };
	int r = wire_receive(channel, &m, NULL);

	if (r == 0 && m.kind == WIRE_READY)
		return 0;
	if (r == 0 && m.kind == WIRE_FAILED && m.err.text[0]) {
		*e = m.err;
		err_prefix(e, "cannot mount the session's workspace");
		return -EPROTO;
	}
	return err_set(e, ERR_SYS, EPIPE,
		"cannot mount the session's workspace: the process for it ended");
}

/*
 * Who has it mounted has this lock; one that is on its way out, for a moment more. On a file system
 * that machines share it may be another's.
 */
static int lock_mounted(int workspace)
{
	int fd = -EWOULDBLOCK;

	for (int i = 0; i < MOUNTED_TRIES && fd == -EWOULDBLOCK; i++) {
		if (i)
			usleep(RETRY_MS * 1000);
		fd = keeper_member_open_lock(workspace, "mounted", LOCK_EX | LOCK_NB);
	}
	return fd;
}

static int start_sharer(struct keeper *k, struct err *e)
{
	own_fd int mounted = lock_mounted(k->q->workspace);
	own_fd int door = mounted < 0 ? -1 : keeper_member_listen(k->q->workspace, "door");
	own_fd int lock = door < 0 ? -1 : keeper_member_open_lock(k->q->workspace, "lock", LOCK_SH);
	own_fd int own_turn =
		lock < 0 ? -1 : keeper_member_open_lock(k->q->workspace, "turn", LOCK_UN);
	const struct cage_member share = {
		.door = door, .turn = own_turn, .lock = lock, .mounted = mounted
	};
	struct cage_start start;
	int ends[2], r;

	if (mounted == -EWOULDBLOCK)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EBUSY,
				"cannot use the session's workspace: it is in use on another "
				"machine, or the process that mounts it does not answer"),
			"bawn session exec --queue leaves the run to the worker that has it");
	if (mounted < 0)
		return member_fail(-mounted, e);
	if (door < 0 || lock < 0 || own_turn < 0)
		return member_fail(door < 0 ? -door : lock < 0 ? -lock : -own_turn, e);
	r = keeper_layer_make_shared(k, e);
	if (r < 0)
		return r;
	if (wire_pair(ends) < 0)
		return member_fail(errno, e);
	start = k->start;
	start.sources = k->sources.items;
	start.keepers_end = ends[0];
	start.channel = ends[1];
	start.share = &share;
	r = cage_spawn_share(&start, e);
	close(ends[1]);
	if (r == 0)
		r = hear_sharer(ends[0], e);
	close(ends[0]);
	return r;
}

/* Where a cage takes home and /tmp from: its channel, if it awaits them, or the plan's bind. */
static int *place_of(struct keeper *k, int which)
{
	const struct plan *p = k->start.plan;

	for (uint32_t i = 0; i < p->op_count && !plan_find(p, PLAN_AWAIT, NULL); i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == PLAN_BIND && cage_tree_of_bind(op) == which)
			return &k->sources.items[i].tree;
	}
	return &k->member.kept[which - CAGE_LAYER_COUNT];
}

/* What was made for the sharer is attached there, and nowhere else. */
static void take_tree(struct keeper *k, int which, int tree)
{
	int *place;

	if (which < CAGE_LAYER_COUNT) {
		keeper_sources_take_layer(&k->sources, &k->start, (enum cage_layer)which, tree);
		return;
	}
	place = place_of(k, which);
	if (*place >= 0)
		close(*place);
	*place = tree;
}

/* Asks for the trees: 0, -EPIPE: whoever is there is about to go. */
static int ask_trees(struct keeper *k, int connection, struct err *e)
{
	const struct timeval patience = { .tv_sec = ANSWER_S };
	struct wire_message m = { .kind = WIRE_JOIN };
	int r = setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0
			? -errno
			: wire_send_message(connection, &m, sizeof(m), -1);

	while (r == 0) {
		own_fd int tree = -1;

		r = wire_receive(connection, &m, &tree);
		if (r == 0 && m.kind == WIRE_JOINED)
			return 0;
		if (r == 0 && m.kind == WIRE_SIGNAL)
			return fail_stopped(e);
		if (r == 0 &&
			(m.kind != WIRE_TREE || m.n < 0 || m.n >= CAGE_TREE_COUNT || tree < 0))
			return member_fail(EPROTO, e);
		if (r == 0)
			take_tree(k, m.n, take_fd(&tree));
	}
	if (r == -EAGAIN)
		return err_set(e, ERR_REFUSED, ETIMEDOUT,
			"cannot use the session's workspace: the process that mounts it does not "
			"answer");
	return r == -EPIPE || r == -ECONNRESET ? -EPIPE : member_fail(-r, e);
}

static int member_come_in(struct keeper *k, struct err *e)
{
	uint64_t until = clock_ns() + (uint64_t)ANSWER_S * 1000000000;

	for (bool is_started = false;;) {
		own_fd int connection = keeper_member_connect(k->q->workspace, "door");
		int r;

		if (connection == -ENOENT && !is_started) {
			r = start_sharer(k, e);
			if (r < 0)
				return r;
			is_started = true;
			continue;
		}
		if (connection == -ENOENT)
			return fail_ended(e);
		if (connection < 0)
			return member_fail(-connection, e);
		r = ask_trees(k, connection, e);
		if (r == 0)
			k->member.connection = take_fd(&connection);
		if (r != -EPIPE)
			return r;
		/* One that turns everybody away waits for those that it has told to end. */
		if (is_started || clock_ns() >= until)
			return fail_ended(e);
		usleep(RETRY_MS * 1000);
	}
}

/*
 * A connection that wants nothing but to stay; -ENOENT: there is nobody. One that is given away is
 * nobody's who could be ended for it: whoever made it may be at work for another session by then.
 */
static int member_hold(int workspace, bool is_given_away)
{
	own_fd int connection = keeper_member_connect(workspace, "door");
	struct wire_message m = { .kind = WIRE_JOIN, .n = is_given_away ? 2 : 1 };
	int r = connection < 0 ? connection : wire_send_message(connection, &m, sizeof(m), -1);

	if (r == 0)
		r = wire_receive(connection, &m, NULL);
	if (r == 0)
		return take_fd(&connection);
	return r == -EPIPE ? -ENOENT : r;
}

int keeper_member_lock(struct keeper *k, struct err *e)
{
	/* Whoever moves or removes it has it alone. */
	k->member.lock = keeper_member_open_lock(k->q->workspace, "lock", LOCK_SH | LOCK_NB);
	if (k->member.lock == -EWOULDBLOCK)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EBUSY,
				"cannot use the session's workspace: it is being moved, applied or "
				"removed"),
			"try again when that is done");
	return k->member.lock < 0 ? member_fail(-k->member.lock, e) : 0;
}

int keeper_member_join(struct keeper *k, struct err *e)
{
	int workspace = k->q->workspace, r = keeper_member_lock(k, e);
	own_fd int turn = -1;

	if (r < 0)
		return r;
	turn = keeper_member_open_lock(workspace, "turn", LOCK_EX);
	if (turn < 0)
		return member_fail(-turn, e);
	/* Also where nothing is captured: who stops the session finds us there. */
	r = member_come_in(k, e);
	if (r == 0 && k->q->hold && *k->q->hold < 0 && k->member.connection >= 0)
		*k->q->hold = member_hold(workspace, true);
	return r == 0 ? keeper_layer_open_shared(k, e) : r;
}

int keeper_member_send(struct keeper *k, struct err *e)
{
	int r = 0;

	if (!plan_find(k->start.plan, PLAN_AWAIT, NULL))
		return 0;
	for (int i = 0; r == 0 && i < CAGE_TREE_COUNT; i++) {
		int tree = i < CAGE_LAYER_COUNT ? k->sources.layers[i].tree
						: k->member.kept[i - CAGE_LAYER_COUNT];
		struct wire_message m = { .kind = WIRE_TREE, .n = i };

		if (tree >= 0)
			r = wire_send_message(k->process.channel, &m, sizeof(m), tree);
	}
	if (r == 0)
		r = wire_send(k->process.channel, WIRE_JOINED, 0, NULL);
	close_kept(&k->member);
	return r < 0 ? err_set(e, ERR_SYS, -r,
			       "cannot make the cage: it ended before it was complete")
		     : 0;
}

/* --- being told --- */

int keeper_member_hear(struct keeper *k, struct err *e)
{
	struct wire_message m = { 0 };
	bool is_told = wire_receive(k->member.connection, &m, NULL) == 0 && m.kind == WIRE_SIGNAL;

	k->end.is_unwanted = true;
	if (!is_told) {
		close(k->member.connection);
		k->member.connection = -1;
	}
	if (keeper_has_started(k) && is_told)
		return keeper_begin_to_stop(k);
	if (is_told && k->state >= KEEPER_LET_GO)
		return err_set(e, ERR_REFUSED, ECANCELED,
			"cannot start the command: the session was stopped");
	return is_told ? fail_stopped(e) : fail_ended(e);
}

/* --- for others --- */

/* Is anybody in the workspace? Waits so long for them to go. */
static int await_empty(int workspace, unsigned ms)
{
	own_fd int lock = keeper_member_open_lock(workspace, "lock", LOCK_UN);
	uint64_t until = clock_ns() + (uint64_t)ms * 1000000;

	if (lock < 0)
		return lock;
	for (;;) {
		if (flock(lock, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_ns() >= until)
			return -EBUSY;
		usleep(RETRY_MS * 1000);
	}
}

/* Those that were asked and do not end. */
static void kill_rest(int connection, unsigned ms)
{
	uint64_t until = clock_ns() + (uint64_t)ms * 1000000;
	struct pollfd fd = { .fd = connection, .events = POLLIN };
	struct wire_message m = { 0 };

	if (wire_send(connection, WIRE_END, 1, NULL) < 0)
		return;
	while (clock_ns() < until && poll(&fd, 1, (int)ms) > 0 &&
		wire_receive(connection, &m, NULL) == 0) {
		own_fd int who = m.kind == WIRE_CLIENT && m.n > 0
					 ? (int)syscall(SYS_pidfd_open, m.n, 0)
					 : -1;

		if (who >= 0 && m.n != getpid())
			syscall(SYS_pidfd_send_signal, who, SIGKILL, NULL, 0);
	}
}

/* Their keepers end those that do not listen, and sign what became of them, if they can. */
static void keeper_member_end_runs(int workspace, unsigned patience_ms)
{
	own_fd int connection = keeper_member_connect(workspace, "door");
	struct pollfd end = { .fd = connection, .events = POLLIN };
	unsigned last_ms = patience_ms / 4;

	if (connection >= 0 && wire_send(connection, WIRE_END, 0, NULL) == 0 &&
		poll(&end, 1, (int)(patience_ms - last_ms)) == 0)
		kill_rest(connection, last_ms);
}

int keeper_stop_workspace(int workspace, unsigned patience_ms, struct err *e)
{
	uint64_t until = clock_ns() + (uint64_t)patience_ms * 1000000;
	int r;

	/* Somebody may be on the way in, whom nobody at the door knows yet. */
	do {
		keeper_member_end_runs(workspace, patience_ms);
		r = await_empty(workspace, EMPTY_MS);
	} while (r == -EBUSY && clock_ns() < until);
	if (r < 0)
		return err_set(e, ERR_REFUSED, -r, "cannot stop the runs of the session: %s",
			r == -EBUSY ? "it does not end" : strerror(-r));
	return 0;
}

int keeper_pin_workspace(int workspace, struct err *e)
{
	own_fd int turn = keeper_member_open_lock(workspace, "turn", LOCK_EX);
	int r = turn < 0 ? turn : member_hold(workspace, false);

	return r < 0 && r != -ENOENT ? member_fail(-r, e) : r;
}
