/*
 * store_bell - wakes processes that wait for a store in a file, without anybody looking again and
 * again.
 *
 * Runs as: the operator.
 * Leaves:  PATH-bell.
 */
#include "session/store/store_bell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"

void store_bell_init(struct store_bell *b)
{
	*b = (struct store_bell){ -1, -1 };
}

void store_bell_done(struct store_bell *b)
{
	own_fd_(&b->file);
	own_fd_(&b->watch);
	store_bell_init(b);
}

int store_bell_open(struct store_bell *b, const char *path, struct err *e)
{
	char name[PATH_MAX + 8];

	snprintf(name, sizeof(name), "%s-bell", path);
	b->file = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (b->file < 0)
		return err_sys(e, errno, "cannot open the store: %s", name);
	return 0;
}

/* Should it fail, those who wait look again when they renew. */
void store_bell_ring(const struct store_bell *b)
{
	futimens(b->file, NULL);
}

int store_bell_listen(struct store_bell *b, const char *path, struct err *e)
{
	char name[64];

	if (b->watch >= 0)
		return 0;
	/* The file that is open, whatever has its name by now. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", b->file);
	b->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (b->watch < 0 || inotify_add_watch(b->watch, name, IN_ATTRIB) < 0) {
		int num = errno;

		own_fd_(&b->watch);
		b->watch = -1;
		return err_hint(e,
			err_sys(e, num, "cannot listen: %s-bell cannot be watched", path), "%s",
			num == EMFILE || num == ENOSPC ? "raise the limits in /proc/sys/fs/inotify"
						       : "");
	}
	return 0;
}

void store_bell_hear(const struct store_bell *b)
{
	_Alignas(struct inotify_event) char events[4096];

	while (b->watch >= 0 && read(b->watch, events, sizeof(events)) > 0)
		;
}
