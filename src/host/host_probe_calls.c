/*
 * host_probe_calls - system calls that can be tried in place, because asking changes nothing.
 *
 * Runs as:     a child of the probe, since a filter may kill who asks; without rights of its own.
 * Leaves:      nothing but its results.
 * Must not:    allocate, or restrict the process it runs in.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "host/host_probe.h"

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

void host_try_calls(struct host_report *report)
{
	report->tried[HOST_OPENAT2] = try_openat2();
	report->tried[HOST_SECCOMP] = try_seccomp(SECCOMP_RET_ERRNO);
	report->tried[HOST_SECCOMP_NOTIFY] = try_seccomp(SECCOMP_RET_USER_NOTIF);
	report->tried[HOST_LANDLOCK] = try_landlock(&report->landlock_abi);
}
