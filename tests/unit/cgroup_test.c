/* What of the cgroups is pure: names, places, limits as the kernel writes them, counts. */
#include <errno.h>
#include <unistd.h>

#include "base/count.h"
#include "cgroup/cgroup_inside.h"
#include "cgroup/cgroup_place.h"
#include "check.h"

static void test_names(void)
{
	static const char *const wrong[] = {
		"",
		"bawn",
		"bawn-",
		"bawn-probe-123",
		"bawn-20261115-224501-0a1b2c3",
		"bawn-20261115-224501-0a1b2c3d4",
		"bawn-20261115-224501-0a1b2c3d/",
		"bawn-20261115-224501-0A1B2C3D",
		"bawn-20261115-224501-0a1b2c3g",
		"bawn-2026111a-224501-0a1b2c3d",
		"bawn-20261115_224501-0a1b2c3d",
		"Bawn-20261115-224501-0a1b2c3d",
		" bawn-20261115-224501-0a1b2c3d",
		"20261115-224501-0a1b2c3d",
	};
	static const char *const runs[] = {
		"../../20261115-224501-0a1b2c3d",
		"20261115-224501-0a1b2c3d-and-more-than-fits",
		"",
	};
	struct cgroup g;
	struct err e;

	CHECK(cgroup_is_name("bawn-20261115-224501-0a1b2c3d"));
	CHECK(cgroup_is_name("bawn-00000000-000000-ffffffff"));
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		CHECK(!cgroup_is_name(wrong[i]));
	cgroup_init(&g);
	for (size_t i = 0; i < COUNT_OF(runs); i++)
		CHECK(cgroup_find(&g, runs[i], ~0U, &e) == -EINVAL && g.count == 0);
}

/* What cgroup_init gives can be asked anything. */
static void test_nothing(void)
{
	struct cgroup_counts counts = { .oom_kills = 7 };
	char fault[128];
	struct cgroup g;
	struct err e;

	cgroup_init(&g);
	CHECK(cgroup_limit(&g, CGROUP_PIDS, 8, &e) == -ENOENT && e.kind == ERR_REFUSED);
	CHECK_STR(e.text, "cannot limit pids: no cgroup can be made here");
	CHECK_STR(e.hint, "bawn doctor says why");
	cgroup_look(&g, CGROUP_CPU, getpid(), 8, fault, sizeof(fault));
	CHECK_STR(fault, "there is no cgroup for cpu");
	CHECK(cgroup_clone_fd(&g) == -1);
	CHECK(cgroup_enter(&g, false, &e) == 0);
	CHECK(cgroup_count(&g, &counts) == 0 && counts.oom_kills == 0);
	cgroup_kill(&g);
	cgroup_sweep(&g);
	CHECK(cgroup_remove(&g, &e) == 0);
	cgroup_done(&g);
}

/* The tables of a process, several lines each. */
static void find(struct cgroup_places *p, const char *own_paths, const char *mounts)
{
	static char copy[4096];
	char *rest, *line;

	memset(p, 0, sizeof(*p));
	snprintf(copy, sizeof(copy), "%s", own_paths);
	for (line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		cgroup_place_take_own(p, line);
	snprintf(copy, sizeof(copy), "%s", mounts);
	for (line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		cgroup_place_take_mount(p, line);
}

static void test_places(void)
{
	struct cgroup_places p;

	/* Version 1 with a tree of version 2 beside it, and controllers that share a tree. */
	find(&p, "5:pids:/\n4:memory:/a/b\n3:cpu,cpuacct:/c d\n2:cpuset:/x\n0::/u\n",
		"32 31 0:29 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
		"35 31 0:32 /a /cg/mem\\040ory rw shared:9 - cgroup cgroup rw,memory\n"
		"36 31 0:33 / /cg/pids rw,relatime - cgroup cgroup rw,pids\n"
		"37 31 0:33 / /other rw,relatime - cgroup cgroup rw,pids\n"
		"41 31 0:38 / /cg/unified rw,relatime - cgroup2 cgroup2 rw\n"
		"42 31 0:39 / /memory rw - tmpfs memory rw,memory\n");
	CHECK_STR(p.v1[CGROUP_MEMORY].dir, "/cg/mem ory/b");
	CHECK_STR(p.v1[CGROUP_CPU].dir, "/cg/cpu,cpuacct/c d");
	CHECK_STR(p.v1[CGROUP_PIDS].dir, "/cg/pids");
	CHECK_STR(p.v2.dir, "/cg/unified/u");
	CHECK_STR(p.v2.mount, "/cg/unified");
	/* Version 2 alone. */
	find(&p, "0::/user.slice/app.slice/one.scope\n",
		"30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
	CHECK_STR(p.v2.dir, "/sys/fs/cgroup/user.slice/app.slice/one.scope");
	CHECK_STR(p.v1[CGROUP_MEMORY].dir, "");
	/* A mount that does not show where we are; a place outside our namespace; other words. */
	find(&p, "4:memory:/ab\n5:pids:/../x\n6:cpuset:/y\n0::/\n",
		"35 31 0:32 /a /cg/memory rw - cgroup cgroup rw,memory\n"
		"36 31 0:33 / /cg/pids rw - cgroup cgroup rw,pids\n"
		"37 31 0:34 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
		"rubbish\n1 2 - cgroup\n - cgroup2 x\n");
	for (int i = 0; i < CGROUP_COUNT; i++)
		CHECK_STR(p.v1[i].dir, "");
	CHECK_STR(p.v2.dir, "");
}

static void check_knobs(enum cgroup_controller c, bool is_v2, uint64_t limit, const char *wanted)
{
	struct cgroup_knob knobs[CGROUP_MAX_KNOBS];
	int count = cgroup_knobs(c, is_v2, limit, knobs);
	char text[256] = "";

	for (int i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s=%s%s",
			i ? " " : "", knobs[i].file, knobs[i].text,
			knobs[i].may_be_missing ? "?" : "");
	CHECK_STR(text, wanted);
}

static void test_knobs(void)
{
	check_knobs(CGROUP_PIDS, false, 512, "pids.max=512");
	check_knobs(CGROUP_PIDS, true, 512, "pids.max=512");
	check_knobs(CGROUP_PIDS, true, 4194305, "pids.max=4194304");
	check_knobs(CGROUP_PIDS, true, UINT64_MAX, "pids.max=4194304");
	check_knobs(CGROUP_CPU, false, 1500, "cpu.cfs_period_us=100000 cpu.cfs_quota_us=150000");
	check_knobs(CGROUP_CPU, true, 1500, "cpu.max=150000 100000");
	check_knobs(CGROUP_CPU, true, 10, "cpu.max=1000 100000");
	check_knobs(CGROUP_CPU, true, 9, "cpu.max=9000 1000000");
	check_knobs(CGROUP_CPU, true, 1, "cpu.max=1000 1000000");
	check_knobs(CGROUP_CPU, true, UINT64_MAX, "");
	for (int c = 0; c < CGROUP_COUNT; c++)
		check_knobs((enum cgroup_controller)c, false, 0, "");
	if (sysconf(_SC_PAGESIZE) != 4096)
		return;
	check_knobs(CGROUP_MEMORY, false, 8191,
		"memory.limit_in_bytes=4096 memory.memsw.limit_in_bytes=4096?");
	check_knobs(CGROUP_MEMORY, true, 1U << 30, "memory.max=1073741824 memory.swap.max=0?");
	check_knobs(CGROUP_MEMORY, false, UINT64_MAX,
		"memory.limit_in_bytes=9223372036854771712 "
		"memory.memsw.limit_in_bytes=9223372036854771712?");
	check_knobs(CGROUP_MEMORY, true, INT64_MAX, "memory.max=max memory.swap.max=0?");
}

static void check_number(const char *text, const char *key, long wanted)
{
	uint64_t n = 0;
	bool found = cgroup_find_number(text, key, &n);

	CHECK(found == (wanted >= 0));
	CHECK(!found || n == (uint64_t)wanted);
}

static void test_numbers(void)
{
	static const char events[] = "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\noom_group_kill 5\n";

	check_number(events, "max", 2);
	check_number(events, "oom", 3);
	check_number(events, "oom_kill", 4);
	check_number(events, "oom_group", -1);
	check_number(events, "low", 0);
	check_number("oom_kill_disable 0\nunder_oom 0\noom_kill 12", "oom_kill", 12);
	check_number("nr_throttled 3\nthrottled_time 99000000000\n", "throttled_time", 99000000000);
	check_number("1234\n", "", 1234);
	check_number("max\n", "", -1);
	check_number("max\n", "max", -1);
	check_number("max -1\n", "max", -1);
	check_number("", "max", -1);
	check_number("", "", -1);
}

int main(void)
{
	test_names();
	test_nothing();
	test_places();
	test_knobs();
	test_numbers();
	return check_report();
}
