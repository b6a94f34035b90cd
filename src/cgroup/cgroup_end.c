/*
 * cgroup_end - kills what is in a run's folders, and takes folders away, also those of dead
 * keepers.
 *
 * Runs as:     the keeper.
 * Must not:    signal a process that is not in the folder; remove what is not named as a run's
 *              folder, or what its keeper still has locked; wait without end.
 *
 * The lock is what everyone goes by: who removes a folder has it locked, and has seen that the name
 * still stands for the locked one. So what has the name cannot become another folder in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cgroup/cgroup_inside.h"

#define KILL_MS     2000
#define SWEEP_MS    200 /* what does not end by then is left to the next */
#define FIRST_US    100
#define LONGEST_US  20000
#define BATCH_COUNT 64

bool cgroup_wait(struct cgroup_patience *p)
{
	struct timespec nap;

	if (p->spent_us >= p->ms * 1000)
		return false;
	p->nap_us = p->nap_us == 0 ? FIRST_US : p->nap_us * 2;
	if (p->nap_us > LONGEST_US)
		p->nap_us = LONGEST_US;
	nap = (struct timespec){ .tv_nsec = (long)p->nap_us * 1000 };
	nanosleep(&nap, NULL);
	p->spent_us += p->nap_us;
	return true;
}

int cgroup_lock(int folder, unsigned ms)
{
	struct cgroup_patience patience = { .ms = ms };

	while (flock(folder, LOCK_EX | LOCK_NB) < 0)
		if ((errno != EWOULDBLOCK && errno != EINTR) || !cgroup_wait(&patience))
			return -errno;
	return 0;
}

bool cgroup_is_at(int parent, const char *name, int folder)
{
	struct stat named, held;

	return fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(folder, &held) == 0 && named.st_dev == held.st_dev &&
	       named.st_ino == held.st_ino;
}

int cgroup_remove_folder(int parent, const char *name, unsigned ms)
{
	struct cgroup_patience patience = { .ms = ms };

	while (unlinkat(parent, name, AT_REMOVEDIR) < 0) {
		if (errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
		if (!cgroup_wait(&patience))
			return -EBUSY;
	}
	return 0;
}

/* --- killing --- */

struct batch {
	uint64_t pids[BATCH_COUNT];
	int fds[BATCH_COUNT];
	int count;
};

/*
 * Between the list and the descriptor a process may have ended, and another may have got its
 * number. Who is on a list made after the descriptor was is the one meant.
 */
static void kill_batch(int folder, struct batch *b)
{
	own(lines) struct lines l = { .fd = file_open_name(folder, "cgroup.procs", O_RDONLY) };
	const char *line;
	uint64_t pid;

	while (b->count && (line = lines_next(&l)))
		for (int i = 0; i < b->count && num_scan(line, 10, &pid, 1); i++)
			if (b->pids[i] == pid)
				syscall(SYS_pidfd_send_signal, b->fds[i], SIGKILL, NULL, 0);
	while (b->count)
		close(b->fds[--b->count]);
}

/* Each opening of the list is a new one, whereas what is open may be a second old. */
static bool kill_listed(int folder)
{
	own(lines) struct lines l = { .fd = file_open_name(folder, "cgroup.procs", O_RDONLY) };
	struct batch b = { .count = 0 };
	bool has_any = false;
	const char *line;

	while ((line = lines_next(&l))) {
		uint64_t pid;
		long fd;

		if (!num_scan(line, 10, &pid, 1) || pid == 0)
			continue;
		has_any = true;
		fd = syscall(SYS_pidfd_open, (pid_t)pid, 0);
		if (fd < 0)
			continue;
		b.pids[b.count] = pid;
		b.fds[b.count++] = (int)fd;
		if (b.count == BATCH_COUNT)
			kill_batch(folder, &b);
	}
	kill_batch(folder, &b);
	return has_any;
}

/* Who forks faster than it is killed cannot, and who dies does not wait for its share. */
static void prepare_end(int folder)
{
	cgroup_write(folder, "pids.max", "0");
	cgroup_write(folder, "cpu.cfs_quota_us", "-1");
	cgroup_write(folder, "cpu.max", "max");
}

static void kill_folder(int folder, unsigned ms)
{
	struct cgroup_patience patience = { .ms = ms };

	if (cgroup_write(folder, "cgroup.kill", "1") == 0 || !kill_listed(folder))
		return;
	prepare_end(folder);
	while (kill_listed(folder) && cgroup_wait(&patience))
		;
}

/* The one with the number of processes comes first: once nobody forks, the others are easy. */
static const struct cgroup_folder *nth_folder(const struct cgroup *g, int n)
{
	int first = g->of[CGROUP_PIDS] < 0 ? 0 : g->of[CGROUP_PIDS];

	return &g->folders[(first + n) % g->count];
}

void cgroup_kill(const struct cgroup *g)
{
	for (int i = 0; i < g->count; i++)
		if (nth_folder(g, i)->fd >= 0)
			kill_folder(nth_folder(g, i)->fd, KILL_MS);
}

/* --- sweeping --- */

static void end_sweep_folder(int parent, const char *name)
{
	own_fd int folder = file_open_name(parent, name, O_RDONLY | O_DIRECTORY);

	if (folder < 0 || cgroup_lock(folder, 0) < 0 || !cgroup_is_at(parent, name, folder))
		return;
	/* A keeper may itself run in what a dead one left. */
	if (cgroup_lists(folder, getpid()) != 0)
		return;
	kill_folder(folder, SWEEP_MS);
	cgroup_remove_folder(parent, name, SWEEP_MS);
}

void cgroup_sweep(const struct cgroup *g)
{
	for (int i = 0; i < g->count; i++) {
		own_fd int parent =
			file_open_name(nth_folder(g, i)->parent, ".", O_RDONLY | O_DIRECTORY);
		struct file_entries entries = { .fd = parent };
		const struct file_entry *entry;

		while (parent >= 0 && (entry = file_next_entry(&entries)))
			if (cgroup_is_name(entry->name) && !str_eq(entry->name, g->name))
				end_sweep_folder(parent, entry->name);
	}
}
