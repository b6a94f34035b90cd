/*
 * host_probe_start - starts the two children that try things, writes maps, and reaps them.
 *
 * Runs as:     the operator, in the process that asked.
 * Enters with: no child of the probe.
 * Leaves:      no child, no descriptor, no signal: a child's end raises none, so a caller's
 *              SIGCHLD handler never hears of it.
 * Must not:    wait for ever, or end a process it did not start.
 *
 * The cage's child gets its namespaces in one clone, as a cage does. Where that is refused it gets
 * the user namespace alone and tries the others singly, so that each failure has its own errno. A
 * network namespace takes the kernel as long as all the rest, so another child makes it meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "host/host_probe.h"

#define CHILD_MAX_MS 5000

pid_t host_clone(uint64_t flags, int *ret_fd)
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

/* What a child was to try and left untried, because it could not go on. */
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
