/*
 * cgroup_file - the kernel's files in a cgroup: which has a limit, and how numbers stand in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/lines.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cgroup/cgroup_inside.h"

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
