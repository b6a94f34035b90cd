/*
 * gate_confine - what a process loses before it faces strangers.
 *
 * Runs as:     the gate and the dialer, before their first hostile byte.
 * Enters with: the keeper's rights: root's, a user's, or all capabilities of the cage's user
 *              namespace.
 * Leaves:      one user that is not root, no capability in any set, no way to gain one, the files
 *              and ports of the wall, its system calls.
 *
 * Each step takes away what the ones after it do not need: the bounding set and the groups go
 * while there is a capability to drop them with, the wish to die with the parent is forgotten by
 * the kernel when ids change, Landlock and the filter need the promise of no new privileges.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "gate/gate.h"

/* --- Landlock: no files but those that are named, no TCP but to the ports that are --- */

/* Newer than the headers this is built with. */
#define RULE_NET_PORT 2 /* ABI 4 */
#define NET_BIND      (1ULL << 0)
#define NET_CONNECT   (1ULL << 1)
#define SCOPES        3ULL /* ABI 6: abstract sockets, signals */

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct net_port_attr {
	uint64_t allowed, port;
};

/* The rights of files: each ABI added its own at the end. */
static uint64_t landlock_known_rights(int abi)
{
	static const unsigned counts[] = { 0, 13, 14, 15, 15, 16 };
	const int last = COUNT_OF(counts) - 1;

	return (1ULL << counts[abi < last ? abi : last]) - 1;
}

static int make_ruleset(int abi)
{
	struct ruleset_attr attr = { landlock_known_rights(abi), NET_BIND | NET_CONNECT, SCOPES };
	size_t size = sizeof(attr.fs);
	long fd;

	if (abi >= 4)
		size += sizeof(attr.net);
	if (abi >= 6)
		size += sizeof(attr.scoped);
	fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	return fd < 0 ? -errno : (int)fd;
}

/* A file that is not there now is none later either. */
static int add_file(int ruleset, const char *path)
{
	own_fd int fd = file_open(path, O_PATH);
	struct landlock_path_beneath_attr rule = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
		.parent_fd = fd,
	};

	if (fd < 0)
		return 0;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

static int landlock_add_port(int ruleset, uint16_t port)
{
	struct net_port_attr rule = { NET_CONNECT, port };

	return syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) < 0 ? -errno : 0;
}

static int landlock_add_rules(const struct gate_wall *wall, int ruleset, int abi)
{
	int r = 0;

	for (size_t i = 0; !r && wall->readable && wall->readable[i]; i++)
		r = add_file(ruleset, wall->readable[i]);
	for (size_t i = 0; !r && abi >= 4 && i < wall->port_count; i++)
		r = landlock_add_port(ruleset, wall->ports[i]);
	return r;
}

/* No rule opens a folder. */
static bool landlock_is_held(void)
{
	own_fd int fd = file_open("/", O_RDONLY | O_DIRECTORY);

	return fd == -EACCES;
}

/* Enters a Landlock domain in which nothing is left but the wall's files and ports. */
static int gate_landlock(const struct gate_wall *wall, struct err *e)
{
	int abi =
		(int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	own_fd int ruleset = abi < 1 ? -ENOSYS : make_ruleset(abi);
	int r = ruleset < 0 ? ruleset : landlock_add_rules(wall, ruleset, abi);

	if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, -r, "cannot enter a Landlock domain");
	if (!landlock_is_held())
		return err_set(e, ERR_SYS, EINVAL,
			"cannot rely on Landlock: it is on and refuses nothing");
	return 0;
}

/* As many descriptors as wanted, if the system has them, and never more. No core dumps: 1 is the
 * one limit that keeps the kernel from starting the host's handler. */
static int set_limits(const struct gate_wall *wall)
{
	struct rlimit files, no_core = { .rlim_cur = 1, .rlim_max = 1 };

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	if (files.rlim_max > wall->max_files)
		files.rlim_max = wall->max_files;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	/* A limit of 0 stays, for it cannot be raised; who is not dumpable leaves no dump. */
	return setrlimit(RLIMIT_CORE, &no_core) < 0 && errno != EPERM ? -errno : 0;
}

/* --- ids and capabilities --- */

#define HEAD                                                                                       \
	{                                                                                          \
		.version = _LINUX_CAPABILITY_VERSION_3                                             \
	}

/* Does nothing without CAP_SETPCAP: such a process can regain nothing from its bounding set. */
static int drop_bounding_set(void)
{
	struct __user_cap_header_struct head = HEAD;
	struct __user_cap_data_struct sets[2];

	if (syscall(SYS_capget, &head, sets) < 0)
		return -errno;
	if (!(sets[CAP_TO_INDEX(CAP_SETPCAP)].effective & CAP_TO_MASK(CAP_SETPCAP)))
		return 0;
	/* The kernel says where its capabilities end. */
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	return 0;
}

/* Others have their one user already, who joined a cage's namespace or not. */
static int drop_ids(const struct gate_wall *wall, const struct wire_rules *rules)
{
	if (!wall->is_root)
		return 0;
	if (!rules->uid || !rules->gid)
		return -EINVAL;
	return setgroups(0, NULL) < 0 || setresgid(rules->gid, rules->gid, rules->gid) < 0 ||
			       setresuid(rules->uid, rules->uid, rules->uid) < 0
		       ? -errno
		       : 0;
}

static int confine_drop_capabilities(void)
{
	struct __user_cap_header_struct head = HEAD;
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* --- others --- */

/*
 * No debugger, no dump, no life without the parent: the channel's end tells if it is gone already.
 */
static int hold_to_parent(const struct gate_wall *wall)
{
	struct pollfd channel = { .fd = wall->channel };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || poll(&channel, 1, 0) < 0)
		return -errno;
	return channel.revents & (POLLHUP | POLLERR | POLLNVAL) ? -ECONNRESET : 0;
}

static int set_filter(const struct filter *filter)
{
	struct sock_fprog program = { .len = filter->count };

	/* The kernel does not write to it. */
	memcpy(&program.filter, &filter->code, sizeof(program.filter));
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int confine_fail(struct err *e, int r, const char *attempt)
{
	return err_sys(e, -r, "cannot %s", attempt);
}

int gate_confine(const struct gate_wall *wall, const struct wire_rules *rules, struct err *e)
{
	int r;

	if ((r = set_limits(wall)) < 0)
		return confine_fail(e, r, "set the limits of a process");
	if ((r = drop_bounding_set()) < 0)
		return confine_fail(e, r, "drop the bounding set of capabilities");
	if ((r = drop_ids(wall, rules)) < 0)
		return confine_fail(e, r, "become a user without rights");
	if ((r = confine_drop_capabilities()) < 0)
		return confine_fail(e, r, "drop capabilities");
	if ((r = hold_to_parent(wall)) < 0)
		return confine_fail(e, r, "hold on to the process that started this one");
	if (rules->is_landlocked && (r = gate_landlock(wall, e)) < 0)
		return r;
	if ((r = set_filter(wall->filter)) < 0)
		return confine_fail(e, r, "set the system-call filter");
	return 0;
}
