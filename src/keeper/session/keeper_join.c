/*
 * keeper_join - a command in the cage of its session, among others.
 *
 * Runs as:  the keeper of the command. The cage has a keeper of its own, which may be nobody's
 *           child: whoever comes first starts it.
 * Leaves:   what the command left behind, which goes on until the session is stopped.
 * Must not: take a cage for the session's that another plan made; let a command start that is not
 *           in all of its namespaces, or less confined than its first process.
 *
 * `cage-turn` is locked while somebody looks for the cage and starts it, so that there are not
 * two.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

#define RETRY_MS 20
#define GONE_MS  100
#define ENDS_MS  20000 /* a cage that was told to end has by then */

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

void keeper_joined_done(struct keeper_joined *j)
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

/* --- is it the cage that the plan means? --- */

/* Each command has its own of these. */
static bool join_is_of_command(const struct plan *p, const struct plan_op *op)
{
	const char *a = plan_str(p, op->a);

	switch (op->kind) {
	case PLAN_LIMIT:
		return str_eq(a, "limits.time") || str_eq(a, "limits.output") ||
		       str_eq(a, "limits.files");
	case PLAN_ENV:
	case PLAN_ENV_PASS:
	case PLAN_TELL:
	case PLAN_STARTUP:
	case PLAN_WORKDIR:
	case PLAN_ARGUMENT:
		return true;
	default:
		return false;
	}
}

static void join_add_text(struct sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text) + 1);
}

void keeper_join_digest_plan(const struct plan *p, char ret[static SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	/* Another bawn may make another cage of it. */
	join_add_text(&s, BAWN_VERSION);
	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (!join_is_of_command(p, op))
			plan_digest_op(p, op, &s);
	}
	sha256_finish(&s, digest);
	sha256_print(digest, ret);
}

/*
 * Which mounts there are, and what may be done in them. Where the host's files are that they show,
 * and what the places are called, may change: those are names, which can be given others.
 */
void keeper_join_digest_mounts(const struct keeper_snapshot *v, char ret[static SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	for (size_t i = 0; i < v->mount_count; i++) {
		sha256_add(&s, &v->mounts[i].id, sizeof(v->mounts[i].id));
		join_add_text(&s, v->mounts[i].device);
		join_add_text(&s, v->mounts[i].options);
		join_add_text(&s, v->mounts[i].type);
		/* Others may be the host's, whose options it may change. */
		if (str_eq(v->mounts[i].type, "tmpfs"))
			join_add_text(&s, v->mounts[i].super);
	}
	sha256_finish(&s, digest);
	sha256_print(digest, ret);
}

int keeper_join_check(
	const struct cage_start *start, const struct keeper_cage_head *h, struct err *e)
{
	char plan[SHA256_HEX_SIZE];

	keeper_join_digest_plan(start->plan, plan);
	if (!record_is_run(h->run, true) || h->group_count < 0 || h->group_count > CGROUP_COUNT)
		return err_set(e, ERR_SYS, EPROTO,
			"cannot enter the session's cage: its keeper sent something unknown");
	if (strncmp(plan, h->plan, sizeof(plan)) != 0 || h->uid != start->ids.uid ||
		h->gid != start->ids.gid)
		return err_hint(e,
			err_set(e, ERR_SYS, EXDEV,
				"cannot enter the session's cage: another plan or another version "
				"of bawn made it"),
			"bawn session stop ends it, and the next command makes a new one");
	return 0;
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
	int r = wire_send(connection, WIRE_JOIN, 0, NULL);

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
		keeper_joined_done(&k->joined);
		usleep(RETRY_MS * 1000);
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

int keeper_join_find(struct keeper *k, struct err *e)
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

int keeper_join_prepare(struct keeper *k, struct err *e)
{
	int r = keeper_needs_cage(k) ? join_come_in(k, e) : 0;

	if (r == -ENOENT && e->kind == ERR_NONE)
		return err_sys(e, ENOENT, "cannot enter the session's cage");
	if (r == 0)
		r = keeper_pin_workspace(k->q->workspace, e);
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

void keeper_join_signal(const struct keeper_process *p, int number)
{
	bool is_for_group = number == SIGINT || number == SIGQUIT || number == SIGHUP ||
			    number == SIGTSTP || number == SIGWINCH || number == SIGSTOP ||
			    number == SIGCONT || number == SIGKILL;

	/* It is not reaped, so the number is its own. */
	if (p->pid > 0 && (!is_for_group || kill(-p->pid, number) < 0))
		kill(p->pid, number);
}

/* Of a keeper that is killed the ends of its channels are seen in any order. */
static bool is_cage_gone(const struct keeper *k)
{
	struct pollfd end = { .fd = k->joined.connection };

	return poll(&end, 1, GONE_MS) > 0 && end.revents & POLLHUP;
}

void keeper_join_reap(struct keeper *k)
{
	struct rusage used = { 0 };
	int status = 0;

	/* What is ended for a reason is ended with all of its group. */
	if (k->end.limit != PLAN_GUARANTEE_COUNT || k->end.is_unwanted)
		keeper_join_signal(&k->process, SIGKILL);
	while (wait4(k->process.pid, &status, 0, &used) < 0 && errno == EINTR)
		;
	k->process.pid = -1;
	k->process.cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * (int64_t)1000000 +
			    used.ru_utime.tv_usec + used.ru_stime.tv_usec;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && is_cage_gone(k)) {
		k->end.is_gone = k->end.is_unwanted = true;
		return;
	}
	k->end.wait_status = status;
	k->state = KEEPER_ENDED;
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
		keeper_kill(k);
	return k->process.pid <= 0;
}

void keeper_join_leave(struct keeper *k)
{
	for (int i = 0; i < 2; i++)
		if (k->joined.left[i] >= 0 && k->joined.connection >= 0)
			(void)wire_send_fd(k->joined.connection, WIRE_STREAM, k->joined.left[i]);
}
