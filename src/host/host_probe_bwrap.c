/*
 * host_probe_bwrap - whether an installed bubblewrap can do what we cannot.
 *
 * Runs as:  the operator; starts one bubblewrap and waits for its end.
 * Must not: run a program found through PATH, pass on our environment, or wait for ever.
 *
 * Where our own namespaces work, bubblewrap's do too, and nothing is started. Where they do not,
 * a bubblewrap with the set-user-id bit or with an AppArmor profile of its own may still be
 * allowed to make them; only trying tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "host/host_probe.h"

#define PATIENCE_MS 3000

static bool needs_trial(const struct host *h)
{
	for (enum host_ability a = HOST_NS_USER; a <= HOST_NS_CGROUP; a++)
		if (!host_can(h, a))
			return true;
	return !host_can(h, HOST_PROC);
}

/* The wait status of the child, or -errno; kills it when it takes too long. */
static int wait_for(pid_t pid)
{
	own_fd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int status = 0;

	if (fd >= 0 && poll(&p, 1, PATIENCE_MS) != 1)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

void host_probe_bwrap(struct host *h, const char *path)
{
	static char words[][20] = { "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/",
		"/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/true" };
	char *argv[sizeof(words) / sizeof(words[0]) + 1] = { NULL };
	char *no_environment[] = { NULL };
	posix_spawn_file_actions_t silence;
	pid_t pid = -1;
	int r;

	if (!needs_trial(h) || !host_can(h, HOST_BWRAP))
		return;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		argv[i] = words[i];
	posix_spawn_file_actions_init(&silence);
	for (int fd = 0; fd <= 2; fd++)
		posix_spawn_file_actions_addopen(&silence, fd, "/dev/null", O_RDWR, 0);
	r = posix_spawn(&pid, path, &silence, NULL, argv, no_environment);
	posix_spawn_file_actions_destroy(&silence);
	if (r != 0 || wait_for(pid) != 0)
		host_set(h, HOST_BWRAP, HOST_CAUSE_DENIED, r ? r : EPERM);
}
