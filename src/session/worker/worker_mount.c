/*
 * worker_mount - keeps the workspaces of its sessions mounted between their runs.
 *
 * Runs as:     the coordinator. A workspace is mounted by a process that ends when nobody is
 *              connected to it any more: here is one connection for each session that is held.
 * Must not:    keep one of a session that is stopped, or whose lease is not ours.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/own.h"
#include "session/worker/worker_inside.h"

#define OTHER_FILES 64 /* that the coordinator has open beside those of slots and sessions */
#define AT_ONCE     64

int worker_open_mounts(struct worker *w, struct err *e)
{
	struct rlimit limit = { 0 };
	size_t others = OTHER_FILES + 4 * (size_t)w->settings->slots;

	w->mounts = epoll_create1(EPOLL_CLOEXEC);
	if (w->mounts < 0)
		return err_set(e, ERR_SYS, errno, "cannot watch the sessions that are mounted");
	/* For this process: those that run commands are there already, and have the usual one. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	w->most_mounted = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > others
				  ? limit.rlim_cur - others
				  : 0;
	return 0;
}

bool worker_wants_mount(struct worker *w, const struct store_session *x)
{
	const struct worker_held *held = worker_find_held(w, x->id);

	return held && held->mount < 0 && w->settings->idle_ms > 0 && w->mounted < w->most_mounted;
}

void worker_keep_mount(struct worker *w, const struct store_session *x, int *fd)
{
	struct worker_held *held = worker_find_held(w, x->id);
	struct epoll_event what = { .events = EPOLLIN };

	if (!held || held->session.token != x->token || held->mount >= 0)
		return;
	what.data.fd = *fd;
	if (epoll_ctl(w->mounts, EPOLL_CTL_ADD, *fd, &what) < 0)
		return;
	held->mount = take_fd(fd);
	w->mounted++;
}

void worker_drop_mount(struct worker *w, struct worker_held *held)
{
	if (held->mount < 0)
		return;
	/* Others may have a copy of it for a moment: closing alone would not take it out. */
	epoll_ctl(w->mounts, EPOLL_CTL_DEL, held->mount, NULL);
	close(held->mount);
	held->mount = -1;
	w->mounted--;
}

void worker_hear_mounts(struct worker *w)
{
	struct epoll_event seen[AT_ONCE];
	int n = epoll_wait(w->mounts, seen, AT_ONCE, 0);

	/* Whatever is said, the session is stopped, or its process has ended. */
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < w->held_count; k++)
			if (w->held[k].mount == seen[i].data.fd)
				worker_drop_mount(w, &w->held[k]);
}
