/*
 * keeper_resident - the cage of a session in which all of its commands run.
 *
 * Runs as:  the keeper of that cage, which has no command of its own.
 * Leaves:   nothing of it, once the session is stopped.
 * Must not: let anybody in before the cage was looked at and its startup commands have ended; hand
 *           anything out to another user.
 *
 * A command's keeper connects to `cage` in the workspace and gets the cage's namespaces and the
 * doors of its cgroups. It stays connected: the end of the connection tells each that the other is
 * gone. What a command leaves behind may still print to pipes that its keeper had: nobody wants to
 * read that any more, and yet it must be read, or its writer would be ended by SIGPIPE.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/inspect/keeper_inspection.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

#define MOST       4000 /* clients, and what they left */
#define MESSAGE_MS 1000 /* what a client may take to be sent one */

enum kind {
	LISTENER,
	CLIENT,
	STREAM,
};

static void keeper_resident_init(struct keeper *k)
{
	struct keeper_resident *r = &k->resident;

	*r = (struct keeper_resident){ .clients = -1, .listener = -1 };
	for (int i = 0; i < CAGE_NAMESPACES; i++)
		r->namespaces[i] = -1;
}

static void keeper_resident_done(struct keeper *k)
{
	struct keeper_resident *r = &k->resident;

	/* The name first: from there on another may have it. */
	if (r->listener >= 0)
		unlinkat(k->q->workspace, "cage", 0);
	if (r->listener >= 0)
		close(r->listener);
	for (int i = 0; i < CAGE_NAMESPACES; i++)
		if (r->namespaces[i] >= 0)
			close(r->namespaces[i]);
	if (r->clients >= 0)
		close(r->clients);
	keeper_resident_init(k);
}

/* --- which cage it is --- */

/* Each command has its own of these. */
static bool resident_op_is_of_command(const struct plan *p, const struct plan_op *op)
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

static void resident_add_text(struct sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text) + 1);
}

void keeper_join_digest_plan(const struct plan *p, char ret[static SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	/* Another bawn may make another cage of it. */
	resident_add_text(&s, BAWN_VERSION);
	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (!resident_op_is_of_command(p, op))
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
		resident_add_text(&s, v->mounts[i].device);
		resident_add_text(&s, v->mounts[i].options);
		resident_add_text(&s, v->mounts[i].type);
		/* Others may be the host's, whose options it may change. */
		if (str_eq(v->mounts[i].type, "tmpfs"))
			resident_add_text(&s, v->mounts[i].super);
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

/* --- made once --- */

static int open_namespaces(struct keeper *k)
{
	static const char *const files[CAGE_NAMESPACES] = { "user", "pid", "net", "ipc", "uts",
		"cgroup", "mnt" };
	const struct keeper_snapshot *v = &k->inspection->cage;

	for (int i = 0; i < CAGE_NAMESPACES; i++) {
		char path[48];
		own_fd int fd = -1;
		struct stat ours, st;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", files[i]);
		if (stat(path, &ours) < 0)
			return -errno;
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", k->process.pid, files[i]);
		fd = file_open(path, O_RDONLY);
		if (fd < 0 || fstat(fd, &st) < 0)
			return fd < 0 ? fd : -errno;
		/* The ones that were looked at, and no others. */
		if (st.st_ino != v->namespaces[keeper_join_order[i]])
			return -ESTALE;
		if (st.st_ino != ours.st_ino)
			k->resident.namespaces[i] = take_fd(&fd);
	}
	return 0;
}

/* The cage was looked at: takes hold of its namespaces, and a name that is known to others. */
static int keeper_resident_open(struct keeper *k, struct err *e)
{
	struct keeper_resident *r = &k->resident;
	int ret = open_namespaces(k);

	keeper_join_digest_plan(k->start.plan, r->plan);
	keeper_join_digest_mounts(&k->inspection->cage, r->mounts);
	if (ret == 0)
		ret = r->listener = keeper_member_listen(k->q->workspace, "cage");
	if (ret >= 0)
		ret = r->clients = epoll_create1(EPOLL_CLOEXEC);
	return ret < 0 ? err_sys(e, ret == -1 ? errno : -ret,
				 "cannot keep the session's cage for others")
		       : 0;
}

static bool resident_add(struct keeper_resident *r, enum kind kind, int fd)
{
	struct epoll_event event = { .events = EPOLLIN,
		.data.u64 = (uint64_t)kind << 32 | (uint32_t)fd };

	if (r->count >= MOST || epoll_ctl(r->clients, EPOLL_CTL_ADD, fd, &event) < 0) {
		close(fd);
		return false;
	}
	r->count++;
	return true;
}

static void resident_drop(struct keeper_resident *r, int fd)
{
	/* Whoever sent it may still have it open, and then closing it takes it off no list: it
	 * would be heard of again, by a number that is another's by then. */
	epoll_ctl(r->clients, EPOLL_CTL_DEL, fd, NULL);
	close(fd);
	r->count--;
}

static int keeper_resident_begin(struct keeper *k, struct err *e)
{
	(void)e;
	if (!keeper_is_running(k))
		return 0;
	resident_add(&k->resident, LISTENER, k->resident.listener);
	(void)wire_send(k->q->told, WIRE_READY, 0, NULL);
	return 0;
}

/* --- clients --- */

static void resident_admit(struct keeper_resident *r)
{
	const struct timeval patience = { .tv_sec = MESSAGE_MS / 1000 };
	int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
	socklen_t n = sizeof(struct ucred);
	struct ucred who;

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 ||
		(who.uid != geteuid() && who.uid != 0) ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		close(fd);
	else
		resident_add(r, CLIENT, fd);
}

static int send_part(int to, int n, int fd)
{
	struct wire_message m = { .kind = WIRE_PART, .n = n };

	return wire_send_message(to, &m, sizeof(m), fd);
}

/* Opened anew: our own descriptor has the lock, which must end with us. */
static int send_group(const struct cgroup_folder *f, int to, int n)
{
	own_fd int folder = file_open_name(f->fd, ".", O_RDONLY | O_DIRECTORY);
	int r = folder < 0 ? folder : send_part(to, n, folder);

	return r == 0 ? send_part(to, n + 1, f->door) : r;
}

/* Of the folders those that were made; the others hold nothing. */
static void tell_groups(const struct cgroup *g, struct keeper_cage_head *h, int folders[])
{
	for (int i = 0; i < CGROUP_COUNT; i++)
		h->group_of[i] = -1;
	for (int i = 0; i < g->count; i++) {
		if (g->folders[i].fd < 0 || g->folders[i].door < 0)
			continue;
		for (int c = 0; c < CGROUP_COUNT; c++)
			if (g->of[c] == i)
				h->group_of[c] = h->group_count;
		h->is_v2[h->group_count] = g->folders[i].is_v2;
		folders[h->group_count++] = i;
	}
}

static int resident_hand_out(const struct keeper *k, int to)
{
	const struct keeper_resident *r = &k->resident;
	struct keeper_cage_head h = { .uid = k->start.ids.uid, .gid = k->start.ids.gid };
	int folders[CGROUP_COUNT] = { 0 }, ret;

	memcpy(h.run, k->record->run, sizeof(h.run));
	memcpy(h.plan, r->plan, sizeof(h.plan));
	memcpy(h.mounts, r->mounts, sizeof(h.mounts));
	tell_groups(&k->group, &h, folders);
	for (int i = 0; i < CAGE_NAMESPACES; i++)
		h.is_own[i] = r->namespaces[i] >= 0;
	ret = wire_send_message(to, &h, sizeof(h), -1);
	for (int i = 0; ret == 0 && i < CAGE_NAMESPACES; i++)
		if (h.is_own[i])
			ret = send_part(to, i, r->namespaces[i]);
	for (int i = 0; ret == 0 && i < h.group_count; i++)
		ret = send_group(&k->group.folders[folders[i]], to, CAGE_NAMESPACES + 2 * i);
	return ret;
}

/* False: whoever it was has gone, or says what nobody says. */
static bool resident_hear_client(struct keeper *k, int client)
{
	struct wire_message m = { 0 };
	own_fd int fd = -1;

	if (wire_receive(client, &m, &fd) < 0)
		return false;
	if (m.kind == WIRE_JOIN)
		return !k->end.is_unwanted && resident_hand_out(k, client) == 0;
	if (m.kind == WIRE_STREAM && fd >= 0) {
		if (fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
			resident_add(&k->resident, STREAM, take_fd(&fd));
		return true;
	}
	return false;
}

/* Nobody wants it: only its end is of interest. */
static bool resident_read_stream(int fd)
{
	char bytes[65536];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Its startup commands have ended: lets others in. */
static int keeper_resident_hear(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	struct keeper_resident *r = &k->resident;
	struct epoll_event event;

	(void)seen, (void)e;
	if (epoll_wait(r->clients, &event, 1, 0) != 1)
		return 0;
	switch ((enum kind)(event.data.u64 >> 32)) {
	case LISTENER:
		resident_admit(r);
		break;
	case CLIENT:
		if (!resident_hear_client(k, (int)(uint32_t)event.data.u64))
			resident_drop(r, (int)(uint32_t)event.data.u64);
		break;
	case STREAM:
		if (!resident_read_stream((int)(uint32_t)event.data.u64))
			resident_drop(r, (int)(uint32_t)event.data.u64);
		break;
	}
	return 0;
}

static void keeper_resident_want(const struct keeper *k, struct pollfd *ret)
{
	ret->fd = k->resident.clients;
}

const struct keeper_part keeper_resident_part = {
	.init = keeper_resident_init,
	.take = { [KEEPER_GO] = keeper_resident_open, [KEEPER_WAIT] = keeper_resident_begin },
	.want = keeper_resident_want,
	.hear = keeper_resident_hear,
	.done = keeper_resident_done,
};
