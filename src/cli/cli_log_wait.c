/*
 * cli_log_wait - waits until more is written to a log.
 *
 * Runs as:  the operator.
 * Must not: lock what it waits for, or go on when nobody reads.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli_log.h"

#define MOMENT 200 /* ms: the end of a run is no change of a file */

int cli_log_watch(int folder)
{
	own_fd int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", folder);
	if (watch < 0 || inotify_add_watch(watch, path, IN_MODIFY | IN_CREATE | IN_MOVE) < 0)
		return -1;
	return take_fd(&watch);
}

bool cli_log_wait(int watch)
{
	struct pollfd fds[] = {
		{ .fd = STDOUT_FILENO, .events = 0 },
		{ .fd = watch, .events = POLLIN },
	};
	char events[4096];

	/* Without inotify a moment is all there is. */
	poll(fds, 2, MOMENT);
	while (watch >= 0 && read(watch, events, sizeof(events)) > 0)
		; /* what it was, reading tells */
	return !(fds[0].revents & (POLLERR | POLLHUP | POLLNVAL));
}

bool cli_log_is_locked(int folder)
{
	if (flock(folder, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	flock(folder, LOCK_UN);
	return false;
}
