/*
 * cage_ids - the cage's one user, and the roots of the plan's paths.
 *
 * Runs as:     the first process, right after its birth; cage_write_maps and cage_make_idmap as
 *              the keeper.
 * Enters with: a user namespace without maps.
 * Leaves:      one user and one group in it. Outside it is the operator, or for root an id that
 *              nobody has; never root itself.
 * Must not:    believe a /proc that is not the kernel's.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/call.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

/* The folder of a process in /proc, if that is the kernel's. Returns a descriptor or -errno. */
static int open_process(const char *who, struct err *e)
{
	char path[64];
	own_fd int fd = -1;
	struct statfs fs;

	snprintf(path, sizeof(path), "/proc/%s", who);
	fd = file_open(path, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return err_sys(e, -fd, "cannot map the cage's ids: opening '%s'", path);
	if (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return err_set(e, ERR_SYS, EINVAL,
			"cannot map the cage's ids: '/proc' is not the kernel's");
	return take_fd(&fd);
}

/* Nothing may be mounted over the file. */
static int write_proc(int process, const char *name, const char *text, struct err *e)
{
	own_fd int fd = file_open_same_mount(process, name, O_WRONLY);
	int r = fd < 0 ? fd : file_write_all(fd, text, strlen(text));

	if (r < 0)
		return err_sys(e, -r, "cannot map the cage's ids: writing '%s'", name);
	return 0;
}

static int write_maps(const char *who, const struct cage_ids *ids, unsigned inside, struct err *e)
{
	own_fd int process = open_process(who, e);
	char uids[48], gids[48];
	int r = process < 0 ? process : 0;

	snprintf(uids, sizeof(uids), "%u %u 1\n", inside, ids->uid);
	snprintf(gids, sizeof(gids), "%u %u 1\n", inside, ids->gid);
	/* Without rights over the outer groups the kernel wants setgroups given up first. */
	if (r == 0 && !ids->is_given)
		r = write_proc(process, "setgroups", "deny", e);
	if (r == 0)
		r = write_proc(process, "uid_map", uids, e);
	/* The keeper has another group of the operator mapped by a set-group-id program. */
	return r == 0 && !ids->is_team ? write_proc(process, "gid_map", gids, e) : r;
}

int cage_write_maps(pid_t pid, const struct cage_ids *ids, unsigned inside, struct err *e)
{
	char who[16];

	snprintf(who, sizeof(who), "%d", pid);
	return write_maps(who, ids, inside, e);
}

/* A change of ids clears the effective set; raises it again. */
static int raise_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];

	if (syscall(SYS_capget, &head, sets) < 0)
		return -errno;
	sets[0].effective = sets[0].permitted;
	sets[1].effective = sets[1].permitted;
	return syscall(SYS_capset, &head, sets) < 0 ? -errno : 0;
}

int cage_become(unsigned inside)
{
	/* libc's wrappers would signal threads, which this process does not have. */
	if (prctl(PR_SET_KEEPCAPS, 1) < 0 || syscall(SYS_setresgid, inside, inside, inside) < 0 ||
		syscall(SYS_setresuid, inside, inside, inside) < 0)
		return -errno;
	return raise_capabilities();
}

static int cage_take_ids(struct cage *c, const struct plan_op *op, struct err *e)
{
	unsigned inside = (unsigned)op->n;
	struct wire_message m = { 0 };
	int r;

	if (!c->start->ids.is_given && !c->start->ids.is_team)
		return write_maps("self", &c->start->ids, inside, e);
	/* EOF on the channel: the keeper has ended. */
	if (wire_receive(c->channel, &m, NULL) < 0 || m.kind != WIRE_MAPPED)
		_exit(125);
	r = cage_become(inside);
	if (r < 0)
		return err_sys(e, -r, "cannot become user %u of the cage", inside);
	/* The change of ids made it undumpable, and a user's keeper could not inspect it. */
	if (c->start->ids.is_team && prctl(PR_SET_DUMPABLE, 1) < 0)
		return err_sys(e, errno, "cannot become dumpable");
	return 0;
}

/* Needs the host's /proc; the file shows the quota of the user namespace that opens it. */
static int cage_take_share(struct cage *c, const struct plan_op *op, struct err *e)
{
	char path[64], text[24];
	cage_fd int fd = -1;

	snprintf(path, sizeof(path), "/proc/sys/user/max_%s", cage_a(c, op));
	snprintf(text, sizeof(text), "%" PRIu64, op->n);
	if (cage_is_broken("share"))
		return 0;
	fd = file_open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		int num = fd < 0 ? -fd : errno;

		return err_sys(e, num, "cannot write to '%s'", path);
	}
	return 0;
}

cage_step *const cage_ids_steps[PLAN_OP_KIND_COUNT] = {
	[PLAN_IDS] = cage_take_ids,
	[PLAN_SHARE] = cage_take_share,
};

/* --- as the keeper --- */

/*
 * Stays in a user namespace of its own until EOF on the pipe, which comes with the keeper's end at
 * the latest. It shares the keeper's memory, so it only makes system calls. It closes the keeper's
 * other descriptors, because an open copy would keep locks and sockets alive.
 */
static int be_holder(void *of)
{
	const struct cage_idmap *map = of;
	char unused;

	if (map->pipe[0] > 0)
		call(__NR_close_range, 0, map->pipe[0] - 1, 0, 0, 0, 0);
	call(__NR_close_range, map->pipe[0] + 1, ~0U, 0, 0, 0, 0);
	call(__NR_read, map->pipe[0], (long)&unused, 1, 0, 0, 0);
	return 0;
}

/* Gives the holder its map and opens its namespace: a descriptor or -errno. */
static int map_holder(pid_t pid, const struct cage_ids *ids, uid_t uid, gid_t gid, struct err *e)
{
	char who[16], path[32], uids[48], gids[48];
	own_fd int process = -1;
	int fd, r;

	snprintf(who, sizeof(who), "%d", pid);
	process = open_process(who, e);
	if (process < 0)
		return process;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	snprintf(uids, sizeof(uids), "%u %u 1\n", uid, ids->uid);
	snprintf(gids, sizeof(gids), "%u %u 1\n", gid, ids->gid);
	r = write_proc(process, "uid_map", uids, e);
	if (r == 0)
		r = write_proc(process, "gid_map", gids, e);
	if (r < 0)
		return r;
	fd = file_open(path, O_RDONLY);
	return fd < 0 ? err_sys(e, -fd, "cannot open an id map") : fd;
}

int cage_idmap_make(
	struct cage_idmap *map, const struct cage_ids *ids, uid_t uid, gid_t gid, struct err *e)
{
	if (pipe2(map->pipe, O_CLOEXEC) < 0)
		return err_sys(e, errno, "cannot make an id map");
	map->holder = clone(be_holder, map->stack + sizeof(map->stack),
		CLONE_VM | CLONE_NEWUSER | SIGCHLD, map);
	if (map->holder < 0)
		return err_sys(e, errno, "cannot make an id map");
	map->uid = uid;
	map->gid = gid;
	map->fd = map_holder(map->holder, ids, uid, gid, e);
	return map->fd < 0 ? map->fd : 0;
}

void cage_idmap_done(struct cage_idmap *map)
{
	const int fds[] = { map->pipe[0], map->pipe[1], map->fd };

	for (size_t i = 0; i < COUNT_OF(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	/* No EOF while another process has the pipe open. */
	if (map->holder > 0)
		kill(map->holder, SIGKILL);
	while (map->holder > 0 && waitpid(map->holder, NULL, 0) < 0 && errno == EINTR)
		;
	cage_idmap_init(map);
}

/* --- paths of the plan --- */

bool cage_fill_in(const struct cage_start *start, enum plan_root root, const char *path, char *ret,
	size_t size)
{
	const char *const heads[PLAN_ROOT_COUNT] = {
		[PLAN_ROOT_NONE] = "",
		[PLAN_ROOT_HOME] = start->home,
		[PLAN_ROOT_PROJECT] = start->project,
		[PLAN_ROOT_GIT] = start->git,
		[PLAN_ROOT_RUN] = start->run,
	};
	const char *head = heads[root];
	int n;

	if (!head)
		return false;
	if (str_eq(head, "/") && path[0] == '/')
		head = "";
	n = snprintf(ret, size, "%s%s", head, path);
	return n >= 0 && (size_t)n < size;
}
