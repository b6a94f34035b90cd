/*
 * cage_confine - what the processes of a cage lose, for good.
 *
 * Runs as:     the first process, after the tree is entered.
 * Enters with: all capabilities in its own user namespace.
 * Leaves:      no capability in any set, no groups, no keys, no way to gain privileges, a Landlock
 *              domain, and the profile's system calls. Child processes inherit all of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

static int cage_set_hostname(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *name = cage_a(c, op);

	if (cage_is_broken("namespace:uts"))
		return 0;
	if (sethostname(name, strlen(name)) < 0 || setdomainname("", 0) < 0)
		return err_sys(e, errno, "cannot set the cage's host name");
	return 0;
}

/* The loopback of a new network namespace is down; programs expect it to be up. */
static int bring_loopback_up(int fd)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

/*
 * Without a network the keeper answers as name server, so that programs do not wait for a timeout.
 * It is no part of the wall: if the port cannot be bound, lookups fail
 * without an answer.
 */
static int hand_over_names(const struct cage *c, int fd)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
		.sin_port = htons(53),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (bind(fd, (const struct sockaddr *)&here, sizeof(here)) < 0)
		return 0;
	return wire_send_fd(c->channel, WIRE_NAMES, fd);
}

static int cage_set_network(struct cage *c, const struct plan_op *op, struct err *e)
{
	cage_fd int fd = -1;
	int r;

	if (str_eq(cage_a(c, op), "host") || cage_is_broken("namespace:net"))
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	r = bring_loopback_up(fd);
	if (r == 0 && str_eq(cage_a(c, op), "none") && !cage_is_broken("names"))
		r = hand_over_names(c, fd);
	if (r < 0)
		return err_sys(e, -r, "cannot bring the cage's loopback up");
	return 0;
}

/* Sets a limit for good. A tighter one stays: only root outside of user namespaces can raise it. */
static int confine_limit(enum __rlimit_resource resource, rlim_t n)
{
	struct rlimit limit = { .rlim_cur = n, .rlim_max = n }, old;
	int r = prlimit(0, resource, &limit, &old);

	if (r == 0 && old.rlim_max >= n)
		return 0;
	if (r < 0 && (errno != EPERM || getrlimit(resource, &old) < 0))
		return -errno;
	old.rlim_cur = old.rlim_max;
	return setrlimit(resource, &old) < 0 ? -errno : 0;
}

static int set_rlimit(
	enum __rlimit_resource resource, const struct plan_op *op, const char *name, struct err *e)
{
	errno = -confine_limit(resource, op->n);
	if (errno)
		return err_hint(e, err_sys(e, errno, "cannot set %s", name), "%s",
			errno == EPERM ? "a profile of system calls must allow prlimit64" : "");
	return 0;
}

/* Only limits of processes; the keeper and the file systems enforce the others. */
static int cage_set_limit(struct cage *c, const struct plan_op *op, struct err *e)
{
	if (!str_eq(cage_a(c, op), "limits.pids") || !str_eq(cage_b(c, op), "user namespace"))
		return 0;
	return set_rlimit(RLIMIT_NPROC, op, "limits.pids", e);
}

int cage_limit_files(const struct cage *c, struct err *e)
{
	const struct plan_op *op = plan_find(c->start->plan, PLAN_LIMIT, "limits.files");

	return op ? set_rlimit(RLIMIT_NOFILE, op, "limits.files", e) : 0;
}

/* --- dropping --- */

#define MAX_PENDING 4096 /* signals and timers */

#define SECUREBITS                                                                                 \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
		SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |                          \
		SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/*
 * A user's cage has given setgroups up, and the kernel refuses even an empty list. A login puts the
 * user's own group into the list as well, where it gives no right that the group itself does not.
 */
static int drop_groups(const struct cage *c)
{
	const struct plan_op *ids = plan_find(c->start->plan, PLAN_IDS, NULL);
	gid_t own = ids ? (gid_t)ids->n : getegid();
	int num = EPERM;

	if (c->start->ids.is_given)
		num = syscall(SYS_setgroups, 0, NULL) < 0 ? errno : 0;

	return num == 0 || ids_count_groups(own) == 0 ? 0 : -num;
}

/*
 * Empties all five sets; the securebits keep uid 0 from regaining any. An ambient capability must
 * be permitted and inheritable, so capset clears those too.
 */
static int cage_confine_drop_capabilities(const struct cage *c)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	unsigned long cap = 0;

	(void)c;
	if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0)
		return -errno;
	while (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
		cap++;
	/* EINVAL: the kernel has no capability of this number. */
	if (errno != EINVAL || cap == 0)
		return -errno;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* A session keyring of its own, empty: the operator's is not reached any more. */
static int drop_keyring(const struct cage *c)
{
	long r = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

	(void)c;
	/* A kernel without keys has none to reach. */
	return r < 0 && errno != ENOSYS ? -errno : 0;
}

/*
 * For good also: the host's handler of crashes. A core limit of 1 is the one value that keeps the
 * kernel from starting it; the filter keeps the limit. An account whose limit is 0 cannot have it:
 * the keeper has seen that there is no handler.
 */
static int drop_new_privileges(const struct cage *c)
{
	struct rlimit no_core = { .rlim_cur = 1, .rlim_max = 1 }, none = { 0, 0 };
	/* Counted for the operator too, as what PLAN_SHARE is about. */
	int r = cage_is_broken("share") ? 0 : confine_limit(RLIMIT_SIGPENDING, MAX_PENDING);

	(void)c;
	if (r < 0)
		return r;
	if (!cage_is_broken("core") && setrlimit(RLIMIT_CORE, &no_core) < 0 &&
		(errno != EPERM || setrlimit(RLIMIT_CORE, &none) < 0))
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int cage_drop(struct cage *c, const struct plan_op *op, struct err *e)
{
	static const struct {
		const char *name;
		int (*drop)(const struct cage *c);
	} drops[] = {
		{ "groups", drop_groups },
		{ "capabilities", cage_confine_drop_capabilities },
		{ "keyring", drop_keyring },
		{ "new-privileges", drop_new_privileges },
	};

	for (size_t i = 0; i < COUNT_OF(drops); i++) {
		int r = str_eq(drops[i].name, cage_a(c, op)) ? drops[i].drop(c) : 1;

		if (r == 0)
			return 0;
		if (r < 0)
			return err_sys(e, -r, "cannot drop %s", drops[i].name);
	}
	return err_set(
		e, ERR_SYS, EINVAL, "cannot drop '%s': bawn does not know it", cage_a(c, op));
}

/* --- system calls --- */

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* A listener, where `flags` ask for one; or -errno. */
static int install(const struct sock_filter *code, unsigned short count, unsigned long flags)
{
	struct sock_fprog program = { .len = count };
	long r;

	/* The kernel does not write to it. */
	memcpy(&program.filter, &code, sizeof(program.filter));
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	return r < 0 ? -errno : (int)r;
}

/* WAIT_KILLABLE_RECV, where the kernel has it: no EINTR while the keeper answers. */
static int install_telling(const struct cage *c)
{
	const struct sock_filter *code = c->start->telling;
	unsigned short count = c->start->telling_count;
	int r = install(code, count,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	return r == -EINVAL ? install(code, count, SECCOMP_FILTER_FLAG_NEW_LISTENER) : r;
}

/*
 * A call that this filter reports waits for the keeper's answer, and this process is under the
 * filter from here on. So its next call, which the filter allows, sends the listener to the keeper.
 */
static int confine_tell(struct cage *c, struct err *e)
{
	cage_fd int listener = install_telling(c);

	if (listener < 0)
		return err_set(e, ERR_SYS, -listener,
			"cannot report what the system-call filter denies: %s",
			listener == -EBUSY ? "a filter around bawn has a listener already"
					   : strerror(-listener));
	if (wire_send_fd(c->channel, WIRE_LISTENER, listener) < 0)
		_exit(125);
	return 0;
}

static void skip_telling(const struct cage *c, const char *what, const struct err *why)
{
	const struct plan_op *op = plan_find(c->start->plan, PLAN_TELL, what);

	if (op && wire_send(c->channel, WIRE_SKIPPED, (int)cage_op_index(c, op), why) < 0)
		_exit(125);
}

static int cage_set_filter(struct cage *c, const struct plan_op *op, struct err *e)
{
	int r;

	(void)op;
	if (c->start->telling && !cage_is_broken("tell")) {
		if (confine_tell(c, e) == 0)
			return 0;
		/* The filter denies the same calls, but the missing reports must be on record. */
		skip_telling(c, PLAN_TELL_DENIED, e);
		skip_telling(c, PLAN_TELL_WRITES, e);
	}
	r = install(c->start->filter, c->start->filter_count, 0);
	if (r < 0)
		return err_sys(e, -r, "cannot set the system-call filter");
	return 0;
}

/* --- Landlock --- */

/*
 * A second wall, independent of the mounts: Landlock denies access to every path that no rule
 * allows, ioctls on devices, and signals and abstract sockets to processes outside of the cage.
 *
 * TCP is left to the network namespace, which has no way out: rules would close the cage's own
 * loopback too, and no rule can allow all of its ports.
 */
/* Newer than the headers this is built with. */
#define FS_REFER               (1ULL << 13) /* ABI 2 */
#define FS_TRUNCATE            (1ULL << 14) /* ABI 3 */
#define FS_IOCTL_DEV           (1ULL << 15) /* ABI 5 */
#define SCOPE_ABSTRACT_SOCKETS (1ULL << 0)  /* ABI 6 */
#define SCOPE_SIGNALS          (1ULL << 1)

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

#define READ    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define EXECUTE LANDLOCK_ACCESS_FS_EXECUTE
#define WRITE                                                                                      \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
		LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                     \
		LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                       \
		LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM | FS_REFER |            \
		FS_TRUNCATE | FS_IOCTL_DEV)
#define DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK) /* never given */
#define OF_FILES                                                                                   \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |                              \
		LANDLOCK_ACCESS_FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

/* The rights that a kernel of this ABI knows. */
static uint64_t cage_landlock_known_rights(int abi)
{
	uint64_t rights = READ | EXECUTE | WRITE | DEVICES;

	if (abi < 2)
		rights &= ~FS_REFER;
	if (abi < 3)
		rights &= ~FS_TRUNCATE;
	if (abi < 5)
		rights &= ~FS_IOCTL_DEV;
	return rights;
}

static int landlock_add_rule(const struct cage *c, int fd, bool is_dir, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };

	rule.allowed_access = rights & cage_landlock_known_rights(c->abi);
	if (!is_dir)
		rule.allowed_access &= OF_FILES;
	if (syscall(SYS_landlock_add_rule, c->rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

static int cage_make_ruleset(struct cage *c, const struct plan_op *op, struct err *e)
{
	struct ruleset_attr attr = { .fs = cage_landlock_known_rights((int)op->n) };
	size_t size = op->n >= 6 ? sizeof(attr) : sizeof(attr.fs);
	bool has_own_network = plan_find(c->start->plan, PLAN_NAMESPACE, "net") != NULL;

	c->abi = (int)op->n;
	if (op->n >= 6)
		attr.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
	/* Commands of a session have a domain each and must reach each other; the namespaces
	 * keep them from reaching others. */
	if (op->flags & PLAN_SHARED)
		attr.scoped &=
			~(has_own_network ? SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS : SCOPE_SIGNALS);
	c->rules = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (c->rules < 0)
		return err_sys(e, errno, "cannot make a Landlock ruleset of ABI %d", c->abi);
	return 0;
}

/*
 * Opens what the plan means by a path. Of a mount that this process attached the tree is open
 * already, and of a folder that it made it is known what it is.
 */
static int open_in_landlock(const struct cage *c, const char *path, uint64_t rights)
{
	const struct cage_shown *shown = cage_find_shown(c, path);
	cage_fd int fd = -1;
	struct stat st;

	if (shown)
		return landlock_add_rule(c, shown->tree, shown->is_dir, rights);
	/* Other processes of the session's cage may have put a link on the way. */
	fd = c->start->join ? file_open_real(path, O_PATH) : file_open(path, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	if (cage_is_known(c, path))
		return landlock_add_rule(c, fd, true, rights);
	if (fstat(fd, &st) < 0)
		return -errno;
	return landlock_add_rule(c, fd, S_ISDIR(st.st_mode), rights);
}

static int cage_add_rule(struct cage *c, const struct plan_op *op, struct err *e)
{
	char path[CAGE_PATH_SIZE], text[PLAN_TEXT_SIZE];
	uint64_t rights = READ;
	int r;

	if (!(op->flags & (PLAN_NO_EXEC | PLAN_LIST)))
		rights |= EXECUTE;
	if (!(op->flags & (PLAN_READ_ONLY | PLAN_LIST)))
		rights |= WRITE;
	if (op->flags & PLAN_LIST)
		rights = LANDLOCK_ACCESS_FS_READ_DIR;
	if (!cage_fill_in_place(c->start, op, path, sizeof(path)))
		return err_set(e, ERR_SYS, ENAMETOOLONG,
			"cannot open '%s' in Landlock: its path is too long",
			plan_root_text(op->b_root, cage_b(c, op), text));
	r = open_in_landlock(c, path, rights);
	if (r < 0)
		return err_sys(e, -r, "cannot open '%s' in Landlock", path);
	return 0;
}

static int cage_confine(struct cage *c, const struct plan_op *op, struct err *e)
{
	char nowhere[64];

	(void)op;
	/* A name that no image has. */
	snprintf(nowhere, sizeof(nowhere), "/.bawn-%.40s", c->start->run);
	if (syscall(SYS_landlock_restrict_self, c->rules, 0) < 0)
		return err_sys(e, errno, "cannot enter the Landlock domain");
	/* No rule allows mknod of devices, but without Landlock everybody may make device 0:0
	 * (a whiteout). EACCES shows that the domain is in force. */
	if (mknod(nowhere, S_IFCHR, 0) == 0 || errno != EACCES)
		return err_set(e, ERR_SYS, EINVAL,
			"cannot rely on Landlock: it is on and refuses nothing");
	c->is_confined = true;
	return 0;
}

cage_step *const cage_confine_steps[PLAN_OP_KIND_COUNT] = {
	[PLAN_HOSTNAME] = cage_set_hostname,
	[PLAN_NETWORK] = cage_set_network,
	[PLAN_LIMIT] = cage_set_limit,
	[PLAN_DROP] = cage_drop,
	[PLAN_LANDLOCK] = cage_make_ruleset,
	[PLAN_RULE] = cage_add_rule,
	[PLAN_CONFINE] = cage_confine,
	[PLAN_SYSCALLS] = cage_set_filter,
};
