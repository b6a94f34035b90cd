/*
 * keeper_join - a run that takes part in its session: in the workspace that all of its runs share,
 * and, where the session has one cage for all commands, in that cage.
 *
 * Runs as:  the keeper of the command; whoever stops a session.
 * Leaves:   the workspace, mounted by a process of its own as long as any run uses it: that process
 *           ends by itself. In a session's cage: what the command left behind, until the session is
 *           stopped.
 * Must not: let two processes mount one workspace; take a cage for the session's that another plan
 *           made; let a command start that is not in all of the cage's namespaces, or less confined
 *           than its first process.
 *
 * A run locks the workspace while it lasts. `turn` is locked while a run comes in or starts the
 * process that mounts the workspace, and that process ends only when it gets `turn` itself: so
 * nobody connects to one that is about to end. `cage-turn` is locked in the same way while a run
 * looks for the session's cage and starts it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/engine/keeper_engine.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

#define RETRY_MS      5
#define MOUNTED_TRIES 400
#define ANSWER_S      10  /* what it may take to be let in */
#define EMPTY_MS      200 /* for those that were ended to let go of the workspace */
#define CAGE_RETRY_MS 20
#define GONE_MS       100
#define ENDS_MS       20000 /* a cage that was told to end has by then */

#define KEPT (CAGE_TREE_COUNT - CAGE_LAYER_COUNT)

static void keeper_member_init(struct keeper *k)
{
	struct keeper_member *s = &k->member;

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

static void keeper_member_done(struct keeper *k)
{
	struct keeper_member *s = &k->member;

	close_kept(s);
	if (s->connection >= 0)
		close(s->connection);
	if (s->turn >= 0)
		close(s->turn);
	if (s->lock >= 0)
		close(s->lock);
	keeper_member_init(k);
}

/* --- locks and the door --- */

/* A file of the workspace to be locked, made where missing. A descriptor or -errno. */
static int keeper_member_open_lock(int workspace, const char *name, int how)
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

static int keeper_member_connect(int workspace, const char *name)
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
	struct wire_message m = { .kind = WIRE_JOIN,
		.n = is_given_away ? WIRE_JOIN_SPARE : WIRE_JOIN_STAY };
	int r = connection < 0 ? connection : wire_send_message(connection, &m, sizeof(m), -1);

	if (r == 0)
		r = wire_receive(connection, &m, NULL);
	if (r == 0)
		return take_fd(&connection);
	return r == -EPIPE ? -ENOENT : r;
}

/* Locks it with others that use it. */
static int keeper_member_lock(struct keeper *k, struct err *e)
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

/* Passes what the session has on to the cage that waits for it. */
static int keeper_member_send(struct keeper *k, struct err *e)
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
	if (r == 0 && k->mode == KEEPER_WARM)
		r = keeper_stdio_send(&k->stdio, k->process.channel);
	if (r == 0)
		r = wire_send(k->process.channel, WIRE_JOINED, 0, NULL);
	close_kept(&k->member);
	return r < 0 ? err_set(e, ERR_SYS, -r,
			       "cannot make the cage: it ended before it was complete")
		     : 0;
}

/* --- being told --- */

/* The session is stopped, or nobody is there any more to say so. */
static int keeper_member_hear(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	struct wire_message m = { 0 };
	bool is_told = wire_receive(k->member.connection, &m, NULL) == 0 && m.kind == WIRE_SIGNAL;

	(void)seen;
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

	if (wire_send(connection, WIRE_END, WIRE_END_TELL, NULL) < 0)
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

	if (connection >= 0 && wire_send(connection, WIRE_END, WIRE_END_RUNS, NULL) == 0 &&
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

void keeper_yield_workspace(int workspace)
{
	own_fd int connection = keeper_member_connect(workspace, "door");

	if (connection >= 0)
		(void)wire_send(connection, WIRE_END, WIRE_END_YIELD, NULL);
}

/*
 * Keeps a workspace mounted between runs, as long as the descriptor is open that this returns;
 * -ENOENT: it is not mounted. On it a message comes when the session is stopped.
 */
static int member_pin(int workspace, struct err *e)
{
	own_fd int turn = keeper_member_open_lock(workspace, "turn", LOCK_EX);
	int r = turn < 0 ? turn : member_hold(workspace, false);

	return r < 0 && r != -ENOENT ? member_fail(-r, e) : r;
}

/* --- the cage of a session --- */

const enum keeper_namespace keeper_join_order[CAGE_NAMESPACES] = { KEEPER_NS_USER, KEEPER_NS_PID,
	KEEPER_NS_NET, KEEPER_NS_IPC, KEEPER_NS_UTS, KEEPER_NS_CGROUP, KEEPER_NS_MOUNT };

void keeper_joined_init(struct keeper_joined *j)
{
	*j = (struct keeper_joined){
		.connection = -1, .again = { -1, -1, -1 }, .left = { -1, -1 }
	};
	for (int i = 0; i < CAGE_NAMESPACES; i++)
		j->enter.namespaces[i] = -1;
	cgroup_init(&j->group);
}

static void joined_let_go(struct keeper_joined *j)
{
	for (int i = 0; i < CAGE_NAMESPACES; i++)
		if (j->enter.namespaces[i] >= 0)
			close(j->enter.namespaces[i]);
	for (int i = 0; i < 2; i++)
		if (j->left[i] >= 0)
			close(j->left[i]);
	if (j->connection >= 0)
		close(j->connection);
	keeper_snapshot_close(&j->again);
	cgroup_done(&j->group);
	keeper_joined_init(j);
}

/* --- coming in --- */

/* A part, which is the dialer's; -EPIPE: whoever is there is about to go. */
static int join_take_part(int connection, int n)
{
	struct wire_message m = { 0 };
	own_fd int fd = -1;
	int r = wire_receive(connection, &m, &fd);

	if (r == 0 && (m.kind != WIRE_PART || m.n != n || fd < 0))
		r = -EPROTO;
	return r < 0 ? r : take_fd(&fd);
}

static int take_namespaces(
	struct keeper_joined *j, int connection, const struct keeper_cage_head *h)
{
	for (int i = 0; i < CAGE_NAMESPACES; i++) {
		struct stat st;
		int fd = h->is_own[i] ? join_take_part(connection, i) : -1;

		if (!h->is_own[i])
			continue;
		if (fd < 0)
			return fd;
		j->enter.namespaces[i] = fd;
		if (fstat(fd, &st) < 0)
			return -errno;
		j->inodes[keeper_join_order[i]] = st.st_ino;
	}
	return 0;
}

static int take_group(struct cgroup *g, int connection, const struct keeper_cage_head *h)
{
	for (int i = 0; i < h->group_count; i++) {
		struct cgroup_folder *f = &g->folders[i];

		g->count = i + 1;
		f->is_v2 = h->is_v2[i];
		f->fd = join_take_part(connection, CAGE_NAMESPACES + 2 * i);
		f->door =
			f->fd < 0 ? f->fd : join_take_part(connection, CAGE_NAMESPACES + 2 * i + 1);
		if (f->door < 0)
			return f->door;
	}
	for (int i = 0; i < CGROUP_COUNT; i++)
		g->of[i] = h->group_of[i] < h->group_count ? h->group_of[i] : -1;
	return 0;
}

/* 0; -EPIPE: whoever is there is about to go. */
static int join_ask(struct keeper *k, int connection, struct err *e)
{
	struct keeper_joined *j = &k->joined;
	struct keeper_cage_head h = { 0 };
	int r = wire_send(connection, WIRE_JOIN, WIRE_JOIN_RUN, NULL);

	if (r == 0)
		r = wire_receive_message(connection, &h, sizeof(h), NULL);
	if (r == 0 && keeper_join_check(&k->start, &h, e) < 0)
		return -EXDEV;
	if (r == 0)
		r = take_namespaces(j, connection, &h);
	if (r == 0)
		r = take_group(&j->group, connection, &h);
	if (r == -EPIPE || r == -ECONNRESET)
		return -EPIPE;
	if (r < 0)
		return err_sys(e, -r, "cannot enter the session's cage");
	memcpy(j->mounts, h.mounts, sizeof(j->mounts));
	memcpy(k->record->cage, h.run, sizeof(k->record->cage));
	return 0;
}

/* 0; -ENOENT, with nothing said: there is no cage. */
static int join_come_in(struct keeper *k, struct err *e)
{
	uint64_t until = clock_ns() + (uint64_t)ENDS_MS * 1000000;

	for (;;) {
		own_fd int connection = keeper_member_connect(k->q->workspace, "cage");
		int r;

		if (connection == -ENOENT)
			return -ENOENT;
		r = connection < 0 ? connection : join_ask(k, connection, e);
		if (r == 0)
			k->joined.connection = take_fd(&connection);
		if (r == 0 || e->kind != ERR_NONE)
			return r;
		/* One that ends is not joined. */
		if (r != -EPIPE || clock_ns() >= until)
			return err_sys(e, -r, "cannot enter the session's cage");
		joined_let_go(&k->joined);
		usleep(CAGE_RETRY_MS * 1000);
	}
}

/* Whoever listens to what is denied would have to do so as long as anything runs. */
static void note_silence(const struct keeper *k)
{
	const struct plan *p = k->start.plan;

	for (uint32_t i = 0; i < p->op_count; i++)
		if (plan_ops(p)[i].kind == PLAN_TELL)
			record_note(k->record, i,
				"not told: what a command leaves behind may outlive its keeper");
}

/* Waits for the turn to look for the session's cage, and gets what it takes to enter it, if there
 * is one. */
static int keeper_join_find(struct keeper *k, struct err *e)
{
	int r = keeper_member_lock(k, e);

	if (r < 0)
		return r;
	k->member.turn = keeper_member_open_lock(k->q->workspace, "cage-turn", LOCK_EX);
	if (k->member.turn < 0)
		return err_sys(e, -k->member.turn, "cannot lock the session's workspace");
	r = join_come_in(k, e);
	return r == -ENOENT ? 0 : r;
}

/* The same where there was none; and what else a command in it needs. */
static int keeper_join_prepare(struct keeper *k, struct err *e)
{
	int r = keeper_needs_cage(k) ? join_come_in(k, e) : 0;

	if (r == -ENOENT && e->kind == ERR_NONE)
		return err_sys(e, ENOENT, "cannot enter the session's cage");
	if (r == 0)
		r = member_pin(k->q->workspace, e);
	k->member.connection = r >= 0 ? r : -1;
	if (r < 0 && r != -ENOENT)
		return r;
	note_silence(k);
	k->start.join = &k->joined.enter;
	if (k->joined.group.count)
		k->start.group = &k->joined.group;
	r = keeper_layer_join(k, e);
	close(take_fd(&k->member.turn));
	return r;
}

int keeper_join_look(struct keeper *k, struct err *e)
{
	int r = keeper_inspection_begin(k->inspection, k, e);

	if (r == 0 && wire_send(k->process.channel, WIRE_GO, 0, NULL) < 0)
		r = err_set(e, ERR_SYS, EPIPE, "cannot start the command: it ended before");
	return r;
}

/* --- while it runs, and afterwards --- */

/* Of a keeper that is killed the ends of its channels are seen in any order. */
static bool is_cage_gone(const struct keeper *k)
{
	struct pollfd end = { .fd = k->joined.connection };

	return poll(&end, 1, GONE_MS) > 0 && end.revents & POLLHUP;
}

/* The command has ended. */
static int keeper_join_reap(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	int status = 0, r;

	(void)seen;
	/* What is ended for a reason is ended with all of its group. */
	if (k->end.limit != PLAN_GUARANTEE_COUNT || k->end.is_unwanted)
		k->engine->kill(k);
	r = k->engine->wait(k, &status, e);
	if (r < 0)
		return r;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && is_cage_gone(k)) {
		k->end.is_gone = k->end.is_unwanted = true;
		return 0;
	}
	k->end.wait_status = status;
	k->state = KEEPER_ENDED;
	return 0;
}

bool keeper_join_end(struct keeper *k)
{
	bool goes_on = k->state == KEEPER_ENDED && k->end.limit == PLAN_GUARANTEE_COUNT &&
		       !k->end.is_unwanted;

	for (int i = 0; goes_on && i < 2; i++) {
		const struct keeper_stream *s = &k->stdio.streams[1 + i];

		if (s->near >= 0 && !s->is_on_terminal)
			k->joined.left[i] = fcntl(s->near, F_DUPFD_CLOEXEC, 3);
	}
	if (k->process.pid > 0)
		k->engine->kill(k);
	return k->process.pid <= 0;
}

void keeper_join_leave(struct keeper *k)
{
	for (int i = 0; i < 2; i++)
		if (k->joined.left[i] >= 0 && k->joined.connection >= 0)
			(void)wire_send_fd(k->joined.connection, WIRE_STREAM, k->joined.left[i]);
}

/* --- both as parts of the keeper --- */

static void keeper_member_want(const struct keeper *k, struct pollfd *ret)
{
	ret->fd = k->member.connection;
}

const struct keeper_part keeper_member_part = {
	.init = keeper_member_init,
	.take = { [KEEPER_START] = keeper_member_send },
	.want = keeper_member_want,
	.hear = keeper_member_hear,
	.done = keeper_member_done,
};

static void joined_init(struct keeper *k)
{
	keeper_joined_init(&k->joined);
}

static void joined_done(struct keeper *k)
{
	joined_let_go(&k->joined);
}

static void joined_want(const struct keeper *k, struct pollfd *ret)
{
	ret->fd = k->mode == KEEPER_JOINING ? k->process.pidfd : -1;
}

const struct keeper_part keeper_joined_part = {
	.init = joined_init,
	.take = { [KEEPER_OPEN] = keeper_join_find, [KEEPER_PREPARE] = keeper_join_prepare },
	.want = joined_want,
	.hear = keeper_join_reap,
	.is_after_cage = true,
	.done = joined_done,
};
