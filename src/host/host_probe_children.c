/*
 * host_probe_children - the probe's two children, which try what a cage does.
 *
 * Runs as:     the operator, in the process that asked; and the children: all capabilities in a
 *              user namespace of their own, none outside.
 * Leaves:      nothing: the children's mounts, network and processes end with them, and they with
 *              their parent. No signal: a child's end raises none, so a SIGCHLD handler of the
 *              process never hears of it.
 * Must not:    in a child: allocate, log, write to a file of the host, outlive the parent. In the
 *              parent: wait for ever, end a process it did not start.
 *
 * The cage's child gets its namespaces in one clone, as a cage does. Where that is refused it gets
 * the user namespace alone and tries the others singly, so that each failure has its own errno. A
 * network namespace takes the kernel as long as all the rest, so another child makes it meanwhile.
 * Each result is written at once to memory that the parent sees, so that those before a filter's
 * kill are not lost. A namespace that can be made but not used counts as missing.
 *
 * Root gives the cage an id that is not its own, as it will for real; that takes rights over the
 * outer ids, so the parent writes the map. Everybody else may map the own id and no other.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/own.h"
#include "host/host_probe.h"

/* --- id maps --- */

#define ID_NOBODY 65534UL
#define ID_ALL    4294967295UL

/* One line of a map; false where it is none. */
static bool parse_range(const char *line, unsigned long ret[static 3])
{
	char *end;

	for (int i = 0; i < 3; i++) {
		ret[i] = strtoul(line, &end, 10);
		if (end == line)
			return false;
		line = end;
	}
	return true;
}

/* An id other than 0 that exists in this user namespace: nobody's, or else the last; 0 if none. */
static unsigned long probe_maps_pick_id(const char *path)
{
	own(lines) struct lines l = { .fd = -1 };
	unsigned long range[3], id = 0;
	char *line;

	lines_open(&l, path);
	while ((line = lines_next(&l))) {
		if (!parse_range(line, range) || range[2] == 0)
			continue;
		if (range[0] <= ID_NOBODY && ID_NOBODY - range[0] < range[2])
			return ID_NOBODY;
		if (range[0] + range[2] - 1 > id)
			id = range[0] + range[2] - 1;
	}
	return id;
}

bool host_maps_is_initial(void)
{
	unsigned long range[3] = { 0 };
	char text[128];

	if (file_read_small("/proc/self/uid_map", text, sizeof(text)) <= 0)
		return true;
	return parse_range(text, range) && range[0] == 0 && range[1] == 0 && range[2] == ID_ALL;
}

static void print_maps(struct host_maps *ret, unsigned long uid, unsigned long gid)
{
	snprintf(ret->uid, sizeof(ret->uid), "%d %lu 1\n", HOST_ID_INSIDE, uid);
	snprintf(ret->gid, sizeof(ret->gid), "%d %lu 1\n", HOST_ID_INSIDE, gid);
}

/* The map of our own id. Not for the child to call: its own id means nothing to it any more. */
static void host_maps_choose_own(struct host_maps *ret)
{
	ret->has_other = false;
	print_maps(ret, geteuid(), getegid());
}

/* has_other where `is_root` and this user namespace has an id other than 0 to give. */
static void host_maps_choose(struct host_maps *ret, bool is_root)
{
	unsigned long uid = is_root ? probe_maps_pick_id("/proc/self/uid_map") : 0;
	unsigned long gid = is_root ? probe_maps_pick_id("/proc/self/gid_map") : 0;

	if (uid == 0 || gid == 0) {
		host_maps_choose_own(ret);
		return;
	}
	ret->has_other = true;
	print_maps(ret, uid, gid);
}

static int probe_maps_write_file(const char *who, const char *name, const char *text)
{
	char path[64];
	own_fd int fd = -1;

	snprintf(path, sizeof(path), "/proc/%s/%s", who, name);
	fd = file_open(path, O_WRONLY);
	return fd < 0 ? -fd : -file_write_all(fd, text, strlen(text));
}

/* Writes the maps of process `who`, "self" or a number. 0 or an errno. Does not allocate. */
static int host_maps_write(const char *who, const struct host_maps *maps)
{
	int num = 0;

	/* Without rights over the outer groups the kernel wants setgroups given up first. */
	if (!maps->has_other)
		num = probe_maps_write_file(who, "setgroups", "deny");
	if (num == 0)
		num = probe_maps_write_file(who, "uid_map", maps->uid);
	if (num == 0)
		num = probe_maps_write_file(who, "gid_map", maps->gid);
	return num;
}

/* --- calls that can be tried in place --- */

static int try_openat2(void)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	own_fd int root = file_open("/", O_PATH | O_DIRECTORY);
	own_fd int fd = (int)syscall(SYS_openat2, root, ".", &how, sizeof(how));

	return fd < 0 ? errno : 0;
}

static int try_seccomp(uint32_t action)
{
	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ? errno : 0;
}

/* Asks for the newest ABI the kernel has; 0 would be a kernel that answers without having one. */
static int try_landlock(int *ret_abi)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi < 0)
		return errno;
	*ret_abi = (int)abi;
	return abi > 0 ? 0 : EOPNOTSUPP;
}

static void host_try_calls(struct host_report *report)
{
	report->tried[HOST_OPENAT2] = try_openat2();
	report->tried[HOST_SECCOMP] = try_seccomp(SECCOMP_RET_ERRNO);
	report->tried[HOST_SECCOMP_NOTIFY] = try_seccomp(SECCOMP_RET_USER_NOTIF);
	report->tried[HOST_LANDLOCK] = try_landlock(&report->landlock_abi);
}

/* --- in a child --- */

/* clone3, or clone where a filter hides it, like fork: no signal at its end, *ret_fd its pidfd. */
static pid_t host_clone(uint64_t flags, int *ret_fd)
{
	struct clone_args args = {
		.flags = flags | (ret_fd ? CLONE_PIDFD : 0),
		.pidfd = (uint64_t)(uintptr_t)ret_fd,
	};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	/* Filters that cannot look into clone3's arguments hide it and judge clone instead. */
	if (pid < 0 && errno == ENOSYS)
#ifdef __s390x__
		pid = syscall(SYS_clone, 0, (unsigned long)args.flags, ret_fd, NULL, 0);
#else
		pid = syscall(SYS_clone, (unsigned long)args.flags, 0, ret_fd, NULL, 0);
#endif
	return (pid_t)pid;
}

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

/* Tries the namespaces that it was not cloned into, one by one. */
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

/* Tries mounts in an empty root; the change of root comes last, as it hides what others need. */
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
static _Noreturn void host_child_run_net(struct host_children *c)
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

static _Noreturn void host_child_run_cage(struct host_children *c)
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

/* --- starting and reaping them --- */

#define CHILD_MAX_MS 5000

/* Shows files of "/" with the ids of a user namespace, detached: nobody ever sees the mount. */
static int try_idmap(int userns_fd)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	own_fd int tree = -1;

	if (userns_fd < 0)
		return -userns_fd;
	tree = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return errno;
	attr.userns_fd = (unsigned)userns_fd;
	return mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? errno : 0;
}

/*
 * As root: gives the child an id that is not ours, and shows it what came of that. The end of the
 * pipe says "look now": it wakes the child on a processor of its own, which a byte would not.
 */
static void give_ids(struct host_children *c)
{
	char who[16], path[32];

	snprintf(who, sizeof(who), "%d", c->cage.pid);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", c->cage.pid);
	c->other_ids = host_maps_write(who, &c->maps);
	c->userns = file_open(path, O_RDONLY);
	c->report->tried[HOST_SUBIDS] = c->other_ids;
	close(c->go[1]);
	c->go[1] = -1;
}

/* Both clones: 0 or an errno. */
static int clone_cage(struct host_children *c, uint64_t namespaces)
{
	c->namespaces = namespaces;
	c->cage.pid = host_clone(namespaces, &c->cage.fd);
	if (c->cage.pid == 0)
		host_child_run_cage(c);
	return c->cage.pid < 0 ? errno : 0;
}

static int clone_net(struct host_children *c)
{
	int num;

	c->net.pid = host_clone(0, &c->net.fd);
	if (c->net.pid == 0)
		host_child_run_net(c);
	if (c->net.pid > 0)
		return 0;
	num = errno;
	c->report->tried[HOST_NS_NET] = num;
	host_try_calls(c->report);
	return num;
}

static struct host_report *map_report(void)
{
	size_t size = sizeof(struct host_report);
	/* cppcheck-suppress invalidFunctionArg ; -1 is what mmap(2) asks for here */
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct host_report *report = page == MAP_FAILED ? NULL : page;

	for (int i = 0; report && i < HOST_ABILITY_COUNT; i++)
		report->tried[i] = HOST_UNTRIED;
	return report;
}

void host_children_done(struct host_children *c)
{
	own_fd_(&c->userns);
	if (c->report)
		munmap(c->report, sizeof(*c->report));
	c->userns = -1;
	c->report = NULL;
}

/* Errors that say nothing about what the machine can do. */
static bool is_shortage(int num)
{
	return num == EAGAIN || num == ENOMEM || num == EMFILE || num == ENFILE;
}

static int start_cage(struct host_children *c)
{
	int num;

	if (c->maps.has_other && pipe2(c->go, O_CLOEXEC) < 0)
		return errno;
	num = clone_cage(c, HOST_NAMESPACES);
	if (num != 0 && !is_shortage(num))
		num = clone_cage(c, CLONE_NEWUSER);
	if (num == 0 && c->maps.has_other)
		give_ids(c);
	own_fd_(&c->go[0]);
	own_fd_(&c->go[1]);
	return num;
}

int host_children_start(struct host_children *c, bool is_root, struct err *e)
{
	int num;

	*c = (struct host_children){
		.cage = { -1, -1 }, .net = { -1, -1 }, .go = { -1, -1 }, .userns = -1
	};
	c->other_ids = c->idmap = HOST_UNTRIED;
	host_maps_choose(&c->maps, is_root);
	host_maps_choose_own(&c->own_maps);
	c->report = map_report();
	if (!c->report)
		return err_set(e, ERR_SYS, errno,
			"cannot inspect this host: no memory for a child's report");
	num = c->start_error = start_cage(c);
	/* After the pipe is closed: its end is ours alone. */
	if (!is_shortage(num))
		num = clone_net(c);
	if (!is_shortage(num))
		return 0;
	host_children_finish(c);
	return err_set(e, ERR_SYS, num, "cannot inspect this host: no process can be started");
}

/* Filters may kill instead of refusing; a child that waited for a killed one says it by status. */
static bool is_filter_death(int status)
{
	return (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) ||
	       (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGSYS);
}

/* Waits until a child ended by itself or by us; the errno that what it left untried has. */
static int probe_start_reap(struct host_children *c, struct host_process *p)
{
	struct pollfd ended = { .fd = p->fd, .events = POLLIN };
	int status = 0, n;

	do
		n = p->fd < 0 ? 1 : poll(&ended, 1, CHILD_MAX_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		kill(p->pid, SIGKILL);
	while (waitpid(p->pid, &status, __WALL) < 0 && errno == EINTR)
		;
	own_fd_(&p->fd);
	if (n == 0)
		return ETIMEDOUT;
	c->was_filtered |= is_filter_death(status);
	return is_filter_death(status) ? EPERM : EINTR;
}

/* Marks the abilities that a child could not get to. */
static void set_missing(int *tried, const enum host_ability *abilities, size_t count, int num)
{
	for (size_t i = 0; i < count; i++)
		if (tried[abilities[i]] == HOST_UNTRIED)
			tried[abilities[i]] = num;
}

void host_children_finish(struct host_children *c)
{
	static const enum host_ability by_net[] = { HOST_NS_NET, HOST_OPENAT2, HOST_LANDLOCK,
		HOST_SECCOMP, HOST_SECCOMP_NOTIFY };
	static const enum host_ability by_cage[] = { HOST_NS_MOUNT, HOST_NS_PID, HOST_NS_IPC,
		HOST_NS_UTS, HOST_NS_CGROUP, HOST_NS_TIME, HOST_MOUNT_API, HOST_OVERLAY, HOST_PROC,
		HOST_PROC_SUBSET, HOST_USERNS_PIDS, HOST_NO_GROUPS };
	int *tried = c->report->tried, missing;

	/* Late: to undo this mount, the kernel waits until no processor is busy in it. */
	if (c->other_ids == 0)
		c->idmap = try_idmap(c->userns);
	if (c->net.pid > 0)
		set_missing(tried, by_net, COUNT_OF(by_net), probe_start_reap(c, &c->net));
	missing = c->start_error ? c->start_error : probe_start_reap(c, &c->cage);
	if (tried[HOST_NS_USER] == HOST_UNTRIED)
		tried[HOST_NS_USER] = missing;
	/* A failed user namespace explains the rest, which then counts as untried. */
	if (tried[HOST_NS_USER] != 0)
		tried[HOST_NS_NET] = HOST_UNTRIED;
	else
		set_missing(tried, by_cage, COUNT_OF(by_cage), missing);
}
