/*
 * host_probe_child - what the probe's children try in their new namespaces.
 *
 * Runs as:     a child of the probe: all capabilities in its own user namespace, none outside.
 * Enters with: the namespaces it was cloned into, at least a user namespace.
 * Leaves:      nothing: its mounts, its network and its processes end with it, and it ends with
 *              its parent.
 * Must not:    allocate, log, write to a file of the host, outlive its parent.
 *
 * Results are written where the parent sees them, one by one: what was learnt before a filter kills
 * the child is not lost. Each thing is tried the way a cage does it, so that a namespace that can
 * be made but not used counts as missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "host/host_probe.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/* 0 or the errno of a call that answers -1. */
static int result_of(long answer)
{
	return answer < 0 ? errno : 0;
}

/* Takes the ids that the parent gave, where it does that, or maps its own. */
static int take_ids(struct host_children *c)
{
	int *tried = c->report->tried;
	char unused;

	if (c->maps.has_other) {
		close(c->go[1]);
		(void)!TEMP_FAILURE_RETRY(read(c->go[0], &unused, 1));
		/* The pipe has ended, and nothing was said: the parent is dead. */
		if (tried[HOST_SUBIDS] == HOST_UNTRIED)
			_exit(1);
	}
	if (tried[HOST_SUBIDS] != 0)
		return host_maps_write("self", &c->own_maps);
	/* System calls, not libc's wrappers: those would tell threads this child does not have. */
	tried[HOST_NO_GROUPS] = result_of(syscall(SYS_setgroups, 0, NULL));
	if (syscall(SYS_setresgid, HOST_ID_INSIDE, HOST_ID_INSIDE, HOST_ID_INSIDE) < 0 ||
		syscall(SYS_setresuid, HOST_ID_INSIDE, HOST_ID_INSIDE, HOST_ID_INSIDE) < 0)
		return errno;
	return 0;
}

/* What it was not born into, one by one. */
static void try_namespaces(const struct host_children *c)
{
	static const struct {
		enum host_ability ability;
		int flag;
	} spaces[] = {
		{ HOST_NS_MOUNT, CLONE_NEWNS },
		{ HOST_NS_PID, CLONE_NEWPID },
		{ HOST_NS_IPC, CLONE_NEWIPC },
		{ HOST_NS_UTS, CLONE_NEWUTS },
		{ HOST_NS_CGROUP, CLONE_NEWCGROUP },
	};

	for (size_t i = 0; i < COUNT_OF(spaces); i++) {
		int flag = spaces[i].flag;
		bool has_it = (c->namespaces & (uint64_t)flag) != 0;

		c->report->tried[spaces[i].ability] = has_it ? 0 : result_of(unshare(flag));
	}
}

/* A new file system of this type, detached: a descriptor or -errno. */
static int mount_new(const char *type, const char *const (*options)[2])
{
	own_fd int fs = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return -errno;
	for (; options && (*options)[0]; options++) {
		const char *key = (*options)[0], *value = (*options)[1];
		unsigned command = value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		if (fsconfig(fs, command, key, value, 0) < 0)
			return -errno;
	}
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return fd < 0 ? -errno : fd;
}

/*
 * Attaches a mount at a new directory of the root we stand in; 0 or an errno. All are attached,
 * since the kernel takes a namespace's mounts down in one go and each detached one by itself.
 */
static int attach_at(int fd, const char *dir)
{
	if (mkdir(dir, 0755) < 0)
		return errno;
	return result_of(move_mount(fd, "", AT_FDCWD, dir, MOVE_MOUNT_F_EMPTY_PATH));
}

/* An empty root that we stand in, attached where it hides nothing that is still needed. */
static int enter_root(void)
{
	own_fd int fd = mount_new("tmpfs", NULL);

	if (fd < 0)
		return -fd;
	if (move_mount(fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return errno;
	return result_of(fchdir(fd));
}

/* A directory of the host, cloned, and made read-only before anybody can see it. */
static int try_clone(void)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	};
	own_fd int fd = open_tree(AT_FDCWD, "/usr", flags);

	if (fd < 0 && errno == ENOENT)
		fd = open_tree(AT_FDCWD, "/", flags);
	if (fd < 0)
		return errno;
	if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return errno;
	return attach_at(fd, "usr");
}

/* Captures something new and a deletion above a lower directory. */
static int try_overlay(void)
{
	static const char *const options[][2] = {
		{ "lowerdir", "lower" },
		{ "upperdir", "upper" },
		{ "workdir", "work" },
		{ "userxattr", NULL },
		{ NULL, NULL },
	};
	own_fd int fd = -1;
	int num;

	if (mkdir("lower", 0700) < 0 || mkdir("upper", 0700) < 0 || mkdir("work", 0700) < 0 ||
		mkdir("lower/old", 0700) < 0)
		return errno;
	fd = mount_new("overlay", options);
	if (fd < 0)
		return -fd;
	num = attach_at(fd, "overlay");
	if (num != 0)
		return num;
	if (mkdirat(fd, "new", 0700) < 0)
		return errno;
	return result_of(unlinkat(fd, "old", AT_REMOVEDIR));
}

static int try_proc(const char *dir, bool has_subset)
{
	static const char *const subset[][2] = { { "subset", "pid" }, { NULL, NULL } };
	own_fd int fd = mount_new("proc", has_subset ? subset : NULL);

	return fd < 0 ? -fd : attach_at(fd, dir);
}

/* From the empty root to the change of root, which comes last: it hides what the others need. */
static void try_mounts(int *tried)
{
	int num = tried[HOST_NS_MOUNT];

	if (num == 0)
		num = result_of(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	tried[HOST_NS_MOUNT] = num;
	if (num == 0)
		num = enter_root();
	if (num != 0) {
		tried[HOST_MOUNT_API] = tried[HOST_OVERLAY] = num;
		tried[HOST_PROC] = tried[HOST_PROC_SUBSET] = num;
		return;
	}
	tried[HOST_OVERLAY] = try_overlay();
	num = tried[HOST_NS_PID];
	tried[HOST_PROC] = num ? num : try_proc("proc", false);
	tried[HOST_PROC_SUBSET] = num ? num : try_proc("subset", true);
	num = try_clone();
	tried[HOST_MOUNT_API] = num ? num : result_of(syscall(SYS_pivot_root, ".", "."));
}

/*
 * Changes loopback by the right that bringing it up takes, and at a tenth of the cost. Restricted
 * AppArmor profiles let a network namespace be made and refuse exactly this.
 */
static int try_loopback(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_mtu = 65536 };
	own_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? errno : result_of(ioctl(fd, SIOCSIFMTU, &lo));
}

struct pids_stack {
	char bytes[4 * 1024] __attribute__((aligned(16)));
	char end[];
};

static int end_at_once(void *unused)
{
	(void)unused;
	return 0;
}

/*
 * With room for one more process than there are in here, one is possible and another is not, though
 * the user has others outside: then they are counted in here alone. (Under an id that root gave us
 * and nobody else has, a kernel that counts by id does the same, and the limit holds as well.) An
 * ended one counts until it is reaped. They share our memory, as that is cheaper than a copy, and
 * touch a stack each.
 */
static int try_pids(rlim_t here)
{
	static struct pids_stack second, third;
	struct rlimit room = { here + 1, here + 1 };

	if (setrlimit(RLIMIT_NPROC, &room) < 0 ||
		clone(end_at_once, second.end, CLONE_VM, NULL) < 0)
		return errno;
	return clone(end_at_once, third.end, CLONE_VM, NULL) < 0 ? 0 : EOPNOTSUPP;
}

/* The kernel reaps for the first process of a pid namespace, at its end; others do it. */
static void reap_all(void)
{
	while (getpid() != 1 && waitpid(-1, NULL, __WALL) > 0)
		;
}

/* `here` processes are in the user namespace. */
static void try_all(int *tried, rlim_t here)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	tried[HOST_USERNS_PIDS] = try_pids(here);
	try_mounts(tried);
	if (tried[HOST_NS_UTS] == 0)
		tried[HOST_NS_UTS] = result_of(sethostname("bawn", 4));
	tried[HOST_NS_TIME] = result_of(unshare(CLONE_NEWTIME));
	reap_all();
}

/* Needs no ids: in its own namespaces it has every right without them. */
_Noreturn void host_child_run_net(struct host_children *c)
{
	uint64_t flags = CLONE_NEWUSER | CLONE_NEWNET;
	int num, status = 0;
	pid_t pid = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	host_try_calls(c->report);
	num = result_of(unshare((int)flags));
	/* Filters may forbid unshare alone; what a cage needs is clone. */
	if (num != 0) {
		pid = host_clone(flags, NULL);
		num = pid < 0 ? errno : 0;
	}
	if (pid <= 0)
		c->report->tried[HOST_NS_NET] = num ? num : try_loopback();
	else
		waitpid(pid, &status, __WALL);
	_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 0);
}

_Noreturn void host_child_run_cage(struct host_children *c)
{
	int *tried = c->report->tried, status = 0;
	bool is_second;
	pid_t pid = 0;

	tried[HOST_NS_USER] = take_ids(c);
	if (tried[HOST_NS_USER] != 0)
		_exit(0);
	/* Not earlier: a change of ids takes this off again. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	try_namespaces(c);
	/* A process is never moved into a new pid namespace; its children are born there. */
	is_second = !(c->namespaces & CLONE_NEWPID) && tried[HOST_NS_PID] == 0;
	if (is_second)
		pid = host_clone(0, NULL);
	if (pid < 0)
		tried[HOST_NS_PID] = errno;
	if (pid <= 0) {
		try_all(tried, is_second && pid == 0 ? 2 : 1);
		_exit(0);
	}
	waitpid(pid, &status, __WALL);
	_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 0);
}
