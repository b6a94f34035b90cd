/*
 * cage_confine - what the processes of a cage lose, for good.
 *
 * Runs as:     the first process, after the tree is entered.
 * Enters with: all capabilities in its own user namespace.
 * Leaves:      none in any set, no groups, no keys, no way to gain privileges, the system calls of
 *              the profile and no others. Whatever is started inherits all of it.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count.h"
#include "base/ids.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_inside.h"
#include "wire/wire.h"

int cage_set_hostname(struct cage *c, const struct plan_op *op, struct err *e)
{
	const char *name = cage_a(c, op);

	if (cage_is_broken("namespace:uts"))
		return 0;
	if (sethostname(name, strlen(name)) < 0 || setdomainname("", 0) < 0)
		return err_sys(e, errno, "cannot set the cage's host name");
	return 0;
}

/* A new network has a loopback that is down; programs expect theirs to work. */
static int bring_loopback_up(int fd)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

/*
 * Without a network the keeper answers for the name server, so that nobody waits for one. This is
 * no part of the wall: where the port cannot be had, names fail as they do without an answer.
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

int cage_set_network(struct cage *c, const struct plan_op *op, struct err *e)
{
	own_fd int fd = -1;
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

static int set_rlimit(
	enum __rlimit_resource resource, const struct plan_op *op, const char *name, struct err *e)
{
	struct rlimit limit = { 0 };

	/* One that is tighter already stays. */
	if (getrlimit(resource, &limit) == 0 && limit.rlim_max > op->n)
		limit.rlim_max = op->n;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(resource, &limit) < 0)
		return err_hint(e, err_sys(e, errno, "cannot set %s", name), "%s",
			errno == EPERM ? "a profile of system calls must allow prlimit64" : "");
	return 0;
}

/* The limits that a process carries with it; the others are the keeper's and the file system's. */
int cage_set_limit(struct cage *c, const struct plan_op *op, struct err *e)
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
static int drop_groups(void)
{
	int num = syscall(SYS_setgroups, 0, NULL) < 0 ? errno : 0;

	return num == 0 || ids_count_groups(getegid()) == 0 ? 0 : -num;
}

/* Out of all five sets, and out of the reach of uid 0. */
static int cage_confine_drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	unsigned long cap = 0;
	int num;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0)
		return -errno;
	while (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
		cap++;
	num = errno;
	/* The kernel says where its capabilities end: there is none of this number. */
	if (num != EINVAL || cap == 0 || prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0)
		return -num;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* A session keyring of its own, empty: the operator's is not reached any more. */
static int drop_keyring(void)
{
	long r = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

	/* A kernel without keys has none to reach. */
	return r < 0 && errno != ENOSYS ? -errno : 0;
}

/*
 * For good also: the host's handler of crashes. A core limit of 1 is the one value that keeps the
 * kernel from starting it; the filter keeps the limit.
 */
static int drop_new_privileges(void)
{
	struct rlimit no_core = { .rlim_cur = 1, .rlim_max = 1 };
	/* Counted for the operator too, as what PLAN_SHARE is about. */
	struct rlimit pending = { .rlim_cur = MAX_PENDING, .rlim_max = MAX_PENDING };
	struct rlimit now;

	if (!cage_is_broken("share") && getrlimit(RLIMIT_SIGPENDING, &now) == 0 &&
		now.rlim_max > MAX_PENDING && setrlimit(RLIMIT_SIGPENDING, &pending) < 0)
		return -errno;

	if (!cage_is_broken("core") && setrlimit(RLIMIT_CORE, &no_core) < 0)
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int cage_drop(struct cage *c, const struct plan_op *op, struct err *e)
{
	static const struct {
		const char *name;
		int (*drop)(void);
	} drops[] = {
		{ "groups", drop_groups },
		{ "capabilities", cage_confine_drop_capabilities },
		{ "keyring", drop_keyring },
		{ "new-privileges", drop_new_privileges },
	};

	for (size_t i = 0; i < COUNT_OF(drops); i++) {
		int r = str_eq(drops[i].name, cage_a(c, op)) ? drops[i].drop() : 1;

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

/* Where the kernel can, who is answered soon is not interrupted meanwhile. */
static int install_telling(const struct cage *c)
{
	const struct sock_filter *code = c->start->telling;
	unsigned short count = c->start->telling_count;
	int r = install(code, count,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	return r == -EINVAL ? install(code, count, SECCOMP_FILTER_FLAG_NEW_LISTENER) : r;
}

/*
 * What this filter tells has to be answered, and this process is under it from here on. So the
 * keeper gets the listener with the very next call, which it has seen to be an allowed one.
 */
static int confine_tell(struct cage *c, struct err *e)
{
	own_fd int listener = install_telling(c);

	if (listener < 0)
		return err_set(e, ERR_SYS, -listener,
			"cannot report what the system-call filter denies: %s",
			listener == -EBUSY ? "a filter around bawn has a listener already"
					   : strerror(-listener));
	if (wire_send_fd(c->channel, WIRE_LISTENER, listener) < 0)
		_exit(125);
	return 0;
}

int cage_confine_check(const struct cage *c)
{
	const struct plan_op *op = plan_find(c->start->plan, PLAN_DROP, "groups");
	int r = op ? drop_groups() : 0;

	/* The cage records it when it is confined itself. */
	if (r == 0 || op->need != PLAN_MUST)
		r = cage_confine_drop_capabilities();
	if (r == 0)
		r = drop_new_privileges();
	return r == 0 ? install(c->start->filter, c->start->filter_count, 0) : r;
}

static void skip_telling(const struct cage *c, const char *what, const struct err *why)
{
	const struct plan_op *op = plan_find(c->start->plan, PLAN_TELL, what);

	if (op && wire_send(c->channel, WIRE_SKIPPED, (int)cage_op_index(c, op), why) < 0)
		_exit(125);
}

int cage_set_filter(struct cage *c, const struct plan_op *op, struct err *e)
{
	int r;

	(void)op;
	if (c->start->telling && !cage_is_broken("tell")) {
		if (confine_tell(c, e) == 0)
			return 0;
		/* The wall is the same without; that it is silent must be on record. */
		skip_telling(c, PLAN_TELL_DENIED, e);
		skip_telling(c, PLAN_TELL_WRITES, e);
	}
	r = install(c->start->filter, c->start->filter_count, 0);
	if (r < 0)
		return err_sys(e, -r, "cannot set the system-call filter");
	return 0;
}
