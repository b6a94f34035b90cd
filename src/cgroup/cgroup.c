/*
 * cgroup - the folders of a run: found, made, limited, entered, killed, removed; and those of dead
 * keepers swept.
 *
 * Runs as:     the keeper; cgroup_enter in the cage's first process, before anything else there.
 * Enters with: a place in the trees of cgroups.
 * Leaves:      folders that the keeper has locked.
 * Must not:    change a cgroup that is not the run's own, or what a parent hands down; signal a
 *              process that is not in the folder; remove what is not named as a run's folder, or
 *              what its keeper still has locked; wait without end.
 *
 * Everyone goes by the lock: who removes a folder has it locked, and has seen that the name still
 * stands for the locked one, so no other folder can get the name in between. A folder cannot be
 * made and locked in one go, and in between it looks like one that a dead keeper left. So a sweeper
 * may remove it, which shows once the lock is taken: the name then stands for another folder or for
 * none, and the folder is made again.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cgroup/cgroup.h"
#include "cgroup/cgroup_inside.h"
#include "cgroup/cgroup_place.h"

/* --- the kernel's files in a folder --- */

#define PERIOD_US      100000
#define LONG_PERIOD_US 1000000 /* for shares so small that the kernel wants a longer one */
#define LEAST_QUOTA_US 1000
#define MOST_PIDS      4194304 /* that a kernel can have */

ssize_t cgroup_read(int folder, const char *file, char *ret, size_t size)
{
	own_fd int fd = file_open_name(folder, file, O_RDONLY);

	return file_read_text(fd, ret, size);
}

int cgroup_write(int folder, const char *file, const char *text)
{
	own_fd int fd = file_open_name(folder, file, O_WRONLY);

	return fd < 0 ? fd : file_write_all(fd, text, strlen(text));
}

/* --- limits --- */

static int memory_knobs(bool is_v2, uint64_t limit, struct cgroup_knob *ret)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), most = INT64_MAX / page * page;
	uint64_t bytes = limit < most ? limit / page * page : most;

	snprintf(ret[0].text, sizeof(ret[0].text), "%" PRIu64, bytes);
	if (is_v2) {
		if (bytes == most)
			snprintf(ret[0].text, sizeof(ret[0].text), "max");
		ret[0].file = "memory.max";
		ret[1] = (struct cgroup_knob){ "memory.swap.max", "0", true };
	} else {
		/* Memory and swap together, which must not be the smaller one at any time. */
		ret[1] = ret[0];
		ret[0].file = "memory.limit_in_bytes";
		ret[1].file = "memory.memsw.limit_in_bytes";
		ret[1].may_be_missing = true;
	}
	return 2;
}

static int cpu_knobs(bool is_v2, uint64_t milli, struct cgroup_knob *ret)
{
	uint64_t period = milli * (PERIOD_US / 1000) < LEAST_QUOTA_US ? LONG_PERIOD_US : PERIOD_US;
	uint64_t quota = milli * (period / 1000);

	if (is_v2) {
		ret[0].file = "cpu.max";
		snprintf(ret[0].text, sizeof(ret[0].text), "%" PRIu64 " %" PRIu64, quota, period);
		return 1;
	}
	ret[0].file = "cpu.cfs_period_us";
	snprintf(ret[0].text, sizeof(ret[0].text), "%" PRIu64, period);
	ret[1].file = "cpu.cfs_quota_us";
	snprintf(ret[1].text, sizeof(ret[1].text), "%" PRIu64, quota);
	return 2;
}

int cgroup_knobs(enum cgroup_controller c, bool is_v2, uint64_t limit,
	struct cgroup_knob ret[static CGROUP_MAX_KNOBS])
{
	memset(ret, 0, CGROUP_MAX_KNOBS * sizeof(*ret));
	if (limit == 0)
		return 0;
	if (c == CGROUP_MEMORY)
		return memory_knobs(is_v2, limit, ret);
	if (c == CGROUP_CPU)
		return limit > UINT32_MAX ? 0 : cpu_knobs(is_v2, limit, ret);
	ret[0].file = "pids.max";
	snprintf(ret[0].text, sizeof(ret[0].text), "%" PRIu64,
		limit < MOST_PIDS ? limit : MOST_PIDS);
	return 1;
}

/* --- what the kernel says --- */

bool cgroup_find_number(const char *text, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);

	while (text) {
		const char *rest = text + n;

		if (str_starts(text, key) && (n == 0 || *rest == ' '))
			return num_scan(rest, 10, ret, 1);
		text = strchr(text, '\n');
		text += text != NULL;
	}
	return false;
}

int cgroup_lists(int folder, pid_t pid)
{
	own(lines) struct lines l = { .fd = file_open_name(folder, "cgroup.procs", O_RDONLY) };
	const char *line;
	uint64_t n;

	if (l.fd < 0)
		return l.fd;
	while ((line = lines_next(&l)))
		if (num_scan(line, 10, &n, 1) && n == (uint64_t)pid)
			return 1;
	return 0;
}

/* "" where everything is as set. */
static void look_at_limit(const struct cgroup_folder *folder, enum cgroup_controller c,
	uint64_t limit, char *fault, size_t size)
{
	struct cgroup_knob knobs[CGROUP_MAX_KNOBS];
	int count = cgroup_knobs(c, folder->is_v2, limit, knobs);
	char text[64];

	for (int i = 0; i < count && !fault[0]; i++) {
		ssize_t n = cgroup_read(folder->fd, knobs[i].file, text, sizeof(text));

		if (n == -ENOENT && knobs[i].may_be_missing)
			continue;
		text[strcspn(text, "\n")] = '\0';
		if (n < 0)
			snprintf(fault, size, "%s cannot be read: %s", knobs[i].file,
				strerror((int)-n));
		else if (!str_eq(text, knobs[i].text))
			snprintf(fault, size, "%s is %s instead of %s", knobs[i].file, text,
				knobs[i].text);
	}
}

void cgroup_look(const struct cgroup *g, enum cgroup_controller c, pid_t pid, uint64_t limit,
	char *fault, size_t size)
{
	const struct cgroup_folder *folder = g->of[c] < 0 ? NULL : &g->folders[g->of[c]];
	int r;

	fault[0] = '\0';
	if (!folder || folder->fd < 0) {
		snprintf(fault, size, "there is no cgroup for %s", cgroup_controller_names[c]);
		return;
	}
	look_at_limit(folder, c, limit, fault, size);
	if (fault[0])
		return;
	r = cgroup_lists(folder->fd, pid);
	if (r < 0)
		snprintf(fault, size, "the processes of the cgroup for %s cannot be read: %s",
			cgroup_controller_names[c], strerror(-r));
	else if (r == 0)
		snprintf(fault, size, "process %d is not in the cgroup for %s", pid,
			cgroup_controller_names[c]);
}

/* --- what came of it --- */

static const struct {
	enum cgroup_controller controller;
	bool is_v2;
	const char *file, *key;
	size_t count; /* where it goes */
	unsigned unit;
} counters[] = {
#define TO(member) offsetof(struct cgroup_counts, member)
	{ CGROUP_MEMORY, false, "memory.oom_control", "oom_kill", TO(oom_kills), 1 },
	{ CGROUP_MEMORY, false, "memory.max_usage_in_bytes", "", TO(memory_peak), 1 },
	{ CGROUP_MEMORY, true, "memory.events", "oom_kill", TO(oom_kills), 1 },
	{ CGROUP_MEMORY, true, "memory.peak", "", TO(memory_peak), 1 },
	{ CGROUP_CPU, false, "cpu.stat", "throttled_time", TO(throttled_us), 1000 },
	{ CGROUP_CPU, true, "cpu.stat", "throttled_usec", TO(throttled_us), 1 },
	{ CGROUP_PIDS, false, "pids.events", "max", TO(forks_refused), 1 },
	{ CGROUP_PIDS, true, "pids.events", "max", TO(forks_refused), 1 },
	{ CGROUP_PIDS, false, "pids.peak", "", TO(pids_peak), 1 },
	{ CGROUP_PIDS, true, "pids.peak", "", TO(pids_peak), 1 },
#undef TO
};

int cgroup_count(const struct cgroup *g, struct cgroup_counts *ret)
{
	char text[4096];
	int result = 0;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < COUNT_OF(counters); i++) {
		int of = g->of[counters[i].controller];
		uint64_t n = 0;
		ssize_t r;

		if (of < 0 || g->folders[of].fd < 0 || g->folders[of].is_v2 != counters[i].is_v2)
			continue;
		r = cgroup_read(g->folders[of].fd, counters[i].file, text, sizeof(text));
		if (r >= 0 && cgroup_find_number(text, counters[i].key, &n))
			n /= counters[i].unit;
		else if (r < 0 && r != -ENOENT && result == 0)
			result = (int)r;
		memcpy((char *)ret + counters[i].count, &n, sizeof(n));
	}
	return result;
}

/* --- ending what is in a folder --- */

#define KILL_MS     2000
#define SWEEP_MS    200 /* what does not end by then is left to the next */
#define FIRST_US    100
#define LONGEST_US  20000
#define BATCH_COUNT 64

struct cgroup_patience {
	unsigned ms, nap_us, spent_us;
};

/* Waits longer from time to time; false once it has waited `ms` in all. */
static bool cgroup_wait(struct cgroup_patience *p)
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

/* 0, or -EAGAIN when somebody else has the lock for longer than `ms`. */
static int cgroup_lock(int folder, unsigned ms)
{
	struct cgroup_patience patience = { .ms = ms };

	while (flock(folder, LOCK_EX | LOCK_NB) < 0)
		if ((errno != EWOULDBLOCK && errno != EINTR) || !cgroup_wait(&patience))
			return -errno;
	return 0;
}

/* True if the name still belongs to this folder, and not to a newer one. */
static bool cgroup_is_at(int parent, const char *name, int folder)
{
	struct stat named, held;

	return fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(folder, &held) == 0 && named.st_dev == held.st_dev &&
	       named.st_ino == held.st_ino;
}

/* Removes an empty folder; -EBUSY when it is not empty within `ms`. */
static int cgroup_remove_folder(int parent, const char *name, unsigned ms)
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

/*
 * Nothing can fork faster than it is killed, and a dying process does not wait for its CPU quota.
 */
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

/* --- the folders of a run --- */

#define MAKE_TRIES 64
#define LOCK_MS    1000 /* a sweeper is done with an empty folder long before */
#define REMOVE_MS  2000

bool cgroup_is_name(const char *name)
{
	static const char form[] = "bawn-########-######-xxxxxxxx";

	for (size_t i = 0; i < sizeof(form); i++) {
		bool is_hex = str_is_digit(name[i]) || (name[i] >= 'a' && name[i] <= 'f');

		if (form[i] == '#' ? !str_is_digit(name[i])
				   : (form[i] == 'x' ? !is_hex : name[i] != form[i]))
			return false;
	}
	return true;
}

void cgroup_init(struct cgroup *g)
{
	memset(g, 0, sizeof(*g));
	for (int i = 0; i < CGROUP_COUNT; i++) {
		g->folders[i].parent = g->folders[i].fd = g->folders[i].door = -1;
		g->of[i] = -1;
	}
}

static void cgroup_close_all(const struct cgroup *g)
{
	for (int i = 0; i < g->count; i++) {
		const struct cgroup_folder *f = &g->folders[i];
		const int fds[] = { f->parent, f->fd, f->door };

		for (size_t n = 0; n < COUNT_OF(fds); n++)
			if (fds[n] >= 0)
				close(fds[n]);
	}
}

void cgroup_done(struct cgroup *g)
{
	cgroup_close_all(g);
	cgroup_init(g);
}

/* --- finding --- */

static bool cgroup_is_same(int a, int b)
{
	struct stat of_a, of_b;

	return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

/* Version 1 trees may have several of the controllers, which then share a folder. */
static void find_v1(struct cgroup *g, int controller, const struct cgroup_place *place)
{
	own_fd int parent = cgroup_place_open(place->dir, CGROUP_SUPER_MAGIC);
	int i = 0;

	if (parent < 0)
		return;
	while (i < g->count && !cgroup_is_same(parent, g->folders[i].parent))
		i++;
	if (i == g->count)
		g->folders[g->count++].parent = take_fd(&parent);
	g->of[controller] = i;
}

/*
 * All that is wanted has to come from one folder: the nearest level that may be divided and hands
 * down most of it. What a level hands down those above it do as well.
 */
static void find_v2(struct cgroup *g, unsigned wanted, const struct cgroup_place *place)
{
	own(cgroup_level) struct cgroup_level level;
	struct cgroup_folder *folder = &g->folders[g->count];
	unsigned found = 0;

	cgroup_level_init(&level, place);
	while (found != wanted && cgroup_level_next(&level)) {
		unsigned here = 0;

		for (unsigned i = 0; i < CGROUP_COUNT; i++)
			here |= level.hands_down[i] ? wanted & 1U << i : 0;
		if (level.refusal || here == found)
			continue;
		if (folder->parent >= 0)
			close(folder->parent);
		folder->parent = fcntl(level.fd, F_DUPFD_CLOEXEC, 0);
		found = folder->parent < 0 ? 0 : here;
	}
	for (unsigned i = 0; i < CGROUP_COUNT; i++)
		if (found & 1U << i)
			g->of[i] = g->count;
	folder->is_v2 = true;
	g->count += found != 0;
}

/* Which of the wanted controllers have no place. Those of version 1 never have another. */
static unsigned find_all(struct cgroup *g, unsigned wanted)
{
	struct cgroup_places places;
	unsigned missing = 0;

	cgroup_place_find(NULL, &places);
	for (int i = 0; i < CGROUP_COUNT; i++) {
		if (!(wanted & 1U << i) || !places.v1[i].dir[0])
			continue;
		wanted &= ~(1U << i);
		find_v1(g, i, &places.v1[i]);
	}
	if (wanted && places.v2.dir[0])
		find_v2(g, wanted, &places.v2);
	for (unsigned i = 0; i < CGROUP_COUNT; i++)
		missing |= g->of[i] < 0 ? wanted & 1U << i : 0;
	return missing;
}

int cgroup_find(struct cgroup *g, const char *run, unsigned wanted, struct err *e)
{
	struct err why = { 0 };
	int n = snprintf(g->name, sizeof(g->name), "bawn-%s", run);

	if (n < 0 || (size_t)n >= sizeof(g->name) || !cgroup_is_name(g->name))
		return err_set(e, ERR_SYS, EINVAL,
			"cannot make a cgroup for '%.40s': it is not the name of a run", run);
	if (!find_all(g, wanted))
		return 0;
	if (cgroup_scope_enter(g->name, wanted, &why) < 0) {
		snprintf(g->why_not, sizeof(g->why_not), "%.199s", why.text);
		return 0;
	}
	cgroup_done(g);
	snprintf(g->name, sizeof(g->name), "bawn-%s", run);
	find_all(g, wanted);
	return 0;
}

/* --- making --- */

/* The folder, locked, where no sweeper takes it away any more: a descriptor or -errno. */
static int cgroup_make_folder(int parent, const char *name)
{
	for (int tries = 0; tries < MAKE_TRIES; tries++) {
		own_fd int folder = -1;
		int r;

		/* Nobody else may open the folder, so nobody else can lock it. */
		if (mkdirat(parent, name, 0700) < 0)
			return -errno;
		folder = file_open_name(parent, name, O_RDONLY | O_DIRECTORY);
		if (folder == -ENOENT)
			continue;
		r = folder < 0 ? folder : cgroup_lock(folder, LOCK_MS);
		if (r < 0) {
			unlinkat(parent, name, AT_REMOVEDIR);
			return r;
		}
		if (cgroup_is_at(parent, name, folder))
			return take_fd(&folder);
	}
	return -EBUSY;
}

static int cgroup_make(
	struct cgroup *g, struct cgroup_folder *f, enum cgroup_controller c, struct err *e)
{
	f->fd = cgroup_make_folder(f->parent, g->name);
	if (f->fd < 0)
		return err_sys(
			e, -f->fd, "cannot make a cgroup for %s", cgroup_controller_names[c]);
	/* A process that moves itself, and has one thread, does not make the kernel stop every
	 * fork. */
	f->door = file_open_name(f->fd, f->is_v2 ? "cgroup.procs" : "tasks", O_WRONLY);
	if (f->door < 0)
		return err_sys(
			e, -f->door, "cannot open the cgroup for %s", cgroup_controller_names[c]);
	return 0;
}

int cgroup_limit(struct cgroup *g, enum cgroup_controller c, uint64_t limit, struct err *e)
{
	struct cgroup_folder *f = g->of[c] < 0 ? NULL : &g->folders[g->of[c]];
	struct cgroup_knob knobs[CGROUP_MAX_KNOBS];
	int count, r = 0;

	if (!f)
		return err_hint(e,
			err_set(e, ERR_REFUSED, ENOENT,
				"cannot limit %s: no cgroup can be made here%s%s",
				cgroup_controller_names[c], g->why_not[0] ? ": " : "", g->why_not),
			"bawn doctor says why");
	count = cgroup_knobs(c, f->is_v2, limit, knobs);
	if (count == 0)
		return err_set(e, ERR_SYS, EINVAL, "cannot limit %s: there is no such limit",
			cgroup_controller_names[c]);
	if (f->fd < 0)
		r = cgroup_make(g, f, c, e);
	for (int i = 0; i < count && r == 0; i++) {
		r = cgroup_write(f->fd, knobs[i].file, knobs[i].text);
		if (r == -ENOENT && knobs[i].may_be_missing)
			r = 0;
		if (r < 0)
			err_hint(e,
				err_sys(e, -r, "cannot set %s to %s", knobs[i].file, knobs[i].text),
				"%s",
				r == -EINVAL && c == CGROUP_CPU ? "a cgroup above may have less"
								: "");
	}
	return r;
}

/* --- entering --- */

int cgroup_clone_fd(const struct cgroup *g)
{
	for (int i = 0; i < g->count; i++)
		if (g->folders[i].is_v2)
			return g->folders[i].fd;
	return -1;
}

int cgroup_enter(const struct cgroup *g, bool was_born_there, struct err *e)
{
	for (int i = 0; i < g->count; i++) {
		const struct cgroup_folder *f = &g->folders[i];
		int r = 0;

		if (f->door >= 0 && !(f->is_v2 && was_born_there))
			r = file_write_all(f->door, "0", 1);
		if (r < 0)
			return err_sys(e, -r, "cannot enter the run's cgroup");
	}
	/* The lock is the keeper's: it must not outlive it in a cage. */
	cgroup_close_all(g);
	return 0;
}

/* --- removing --- */

int cgroup_remove(struct cgroup *g, struct err *e)
{
	int result = 0;

	for (int i = 0; i < g->count; i++) {
		const struct cgroup_folder *f = &g->folders[i];
		int r = f->fd < 0 ? 0 : cgroup_remove_folder(f->parent, g->name, REMOVE_MS);

		if (r < 0 && result == 0)
			result = err_sys(e, -r, "cannot remove cgroup '%s'", g->name);
	}
	cgroup_done(g);
	return result;
}
