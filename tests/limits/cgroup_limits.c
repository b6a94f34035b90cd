/* Limits hold, are seen and are counted; what is inside is killed, however fast it forks. */
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/check.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "cgroup/cgroup_place.h"
#include "groups.h"

static void limits_are_set_and_seen(void)
{
	char fault[256];
	struct cgroup g;
	struct stat st;
	pid_t pid;

	CHECK(groups_make(&g, GROUPS_ALL));
	CHECK(fstat(g.folders[0].fd, &st) == 0 && (st.st_mode & 0777) == 0700);
	pid = groups_start(&g, groups_stay);
	cgroup_look(&g, CGROUP_MEMORY, pid, GROUPS_MEMORY + 1, fault, sizeof(fault));
	CHECK_STR(fault, "");
	cgroup_look(&g, CGROUP_CPU, pid, GROUPS_CPU, fault, sizeof(fault));
	CHECK_STR(fault, "");
	cgroup_look(&g, CGROUP_PIDS, pid, GROUPS_PIDS, fault, sizeof(fault));
	CHECK_STR(fault, "");
	cgroup_look(&g, CGROUP_PIDS, pid, GROUPS_PIDS - 1, fault, sizeof(fault));
	CHECK_STR(fault, "pids.max is 20 instead of 19");
	cgroup_look(&g, CGROUP_MEMORY, getpid(), GROUPS_MEMORY, fault, sizeof(fault));
	CHECK(strstr(fault, " is not in the cgroup for memory"));
	CHECK(WTERMSIG(groups_end(pid, SIGKILL)) == SIGKILL);
	CHECK(groups_remove(&g));
}

static void use_memory(void)
{
	size_t size = 2 * GROUPS_MEMORY;
	char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; bytes != MAP_FAILED && i < size; i += 4096)
		bytes[i] = 1;
}

static void memory_ends_with_the_limit(void)
{
	struct cgroup_counts counts;
	struct cgroup g;
	int status;

	CHECK(groups_make(&g, 1U << CGROUP_MEMORY));
	status = groups_wait(groups_start(&g, use_memory));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(cgroup_count(&g, &counts) == 0);
	CHECK(counts.oom_kills == 1 && counts.forks_refused == 0);
	/* Version 2 has it since Linux 5.19. */
	CHECK(counts.memory_peak == 0 || counts.memory_peak > GROUPS_MEMORY / 2);
	CHECK(counts.memory_peak <= GROUPS_MEMORY);
	CHECK(groups_remove(&g));
	/* The twin: outside of it the same process ends well. */
	if (fork() == 0) {
		use_memory();
		_exit(0);
	}
	CHECK(wait(&status) > 0 && status == 0);
}

static void use_processes(void)
{
	int count = 0;

	while (count < 3 * GROUPS_PIDS) {
		pid_t pid = fork();

		if (pid == 0)
			groups_stay();
		if (pid < 0)
			break;
		count++;
	}
	_exit(count);
}

static void processes_end_with_the_limit(void)
{
	struct cgroup_counts counts;
	struct cgroup g;

	CHECK(groups_make(&g, 1U << CGROUP_PIDS));
	CHECK(WEXITSTATUS(groups_wait(groups_start(&g, use_processes))) == GROUPS_PIDS - 1);
	CHECK(cgroup_count(&g, &counts) == 0);
	CHECK(counts.forks_refused == 1 && counts.oom_kills == 0);
	cgroup_kill(&g);
	CHECK(groups_remove(&g));
}

static void use_processor(void)
{
	uint64_t end = clock_ns() + 500000000;

	while (clock_ns() < end)
		;
}

static void processors_are_shared_out(void)
{
	struct cgroup_counts counts;
	struct cgroup g;

	CHECK(groups_make(&g, 1U << CGROUP_CPU));
	CHECK(groups_wait(groups_start(&g, use_processor)) == 0);
	CHECK(cgroup_count(&g, &counts) == 0 && counts.throttled_us > 1000);
	CHECK(groups_remove(&g));
}

static void fork_for_ever(void)
{
	for (;;)
		if (fork() < 0)
			sched_yield();
}

static void check_bomb(unsigned wanted)
{
	struct cgroup g;
	uint64_t start;
	pid_t pid;

	CHECK(groups_make(&g, wanted));
	pid = groups_start(&g, fork_for_ever);
	groups_sleep(100);
	start = clock_ns();
	cgroup_kill(&g);
	CHECK(clock_ns() - start < 1500000000);
	for (int i = 0; i < g.count; i++)
		CHECK(cgroup_lists(g.folders[i].fd, pid) == 0);
	CHECK(WTERMSIG(groups_wait(pid)) == SIGKILL);
	CHECK(groups_remove(&g));
}

static void fork_bombs_are_killed(void)
{
	check_bomb(GROUPS_ALL);
	check_bomb(1U << CGROUP_PIDS);
	/* Where forks cannot be forbidden, the killer has to be faster. */
	check_bomb(1U << CGROUP_MEMORY);
}

/* A folder of version 2, which may be without controllers here: what is done in it is the same. */
static bool make_v2(struct cgroup *g)
{
	struct cgroup_places places;
	struct cgroup_folder *f = &g->folders[0];
	char run[32];

	groups_name_run(run);
	cgroup_init(g);
	snprintf(g->name, sizeof(g->name), "bawn-%.24s", run);
	cgroup_place_find(NULL, &places);
	f->parent = cgroup_place_open(places.v2.dir, CGROUP2_SUPER_MAGIC);
	f->is_v2 = true;
	g->count = 1;
	if (f->parent < 0 || mkdirat(f->parent, g->name, 0700) < 0)
		return false;
	f->fd = file_open_name(f->parent, g->name, O_RDONLY | O_DIRECTORY);
	f->door = file_open_name(f->fd, "cgroup.procs", O_WRONLY);
	return f->door >= 0;
}

static void version_2_is_born_into(void)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	struct cgroup g;
	struct err e;
	pid_t pid;

	CHECK(make_v2(&g));
	args.cgroup = (unsigned)cgroup_clone_fd(&g);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		if (cgroup_enter(&g, true, &e) == 0)
			fork_for_ever();
		_exit(99);
	}
	CHECK(cgroup_lists(g.folders[0].fd, pid) == 1);
	groups_sleep(50);
	cgroup_kill(&g);
	CHECK(WTERMSIG(groups_wait(pid)) == SIGKILL);
	/* By the door, where the kernel has no clone3. */
	pid = groups_start(&g, groups_stay);
	CHECK(cgroup_lists(g.folders[0].fd, pid) == 1);
	cgroup_kill(&g);
	CHECK(WTERMSIG(groups_wait(pid)) == SIGKILL);
	CHECK(groups_remove(&g));
}

int main(void)
{
	static const struct groups_case cases[] = {
		GROUPS_CASE(limits_are_set_and_seen),
		GROUPS_CASE(memory_ends_with_the_limit),
		GROUPS_CASE(processes_end_with_the_limit),
		GROUPS_CASE(processors_are_shared_out),
		GROUPS_CASE(fork_bombs_are_killed),
		GROUPS_CASE(version_2_is_born_into),
	};

	return groups_run(cases, COUNT_OF(cases), &check_failed);
}
