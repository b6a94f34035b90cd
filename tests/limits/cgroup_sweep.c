/* What dead keepers left is removed, and nothing else, however many sweep and make at once. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/check.h"
#include "base/clock.h"
#include "base/count.h"
#include "groups.h"

static bool is_dead(pid_t pid)
{
	return pid <= 0 || (kill(pid, 0) < 0 && errno == ESRCH);
}

/* In another process: a keeper with a cage, both of which groups_stay. */
struct other {
	pid_t keeper, cage;
	char name[CGROUP_NAME_SIZE];
};

static void be_keeper(struct other *o)
{
	struct cgroup g;

	if (!groups_make(&g, GROUPS_ALL))
		_exit(1);
	memcpy(o->name, g.name, sizeof(o->name));
	__atomic_store_n(&o->cage, groups_start(&g, groups_stay), __ATOMIC_RELEASE);
	groups_stay();
}

static struct other *start_keeper(void)
{
	struct other *o =
		mmap(NULL, sizeof(*o), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t keeper = fork();

	if (keeper == 0)
		be_keeper(o);
	o->keeper = keeper;
	for (int i = 0; i < 2000 && !__atomic_load_n(&o->cage, __ATOMIC_ACQUIRE); i++)
		groups_sleep(1);
	return o;
}

static void only_dead_keepers_are_swept(void)
{
	struct other *o = start_keeper();
	struct cgroup g;

	CHECK(groups_make(&g, GROUPS_ALL));
	cgroup_sweep(&g);
	CHECK(groups_exist(&g, o->name) && !is_dead(o->cage));
	/* Its cage lives on, has not executed anything, and yet does not have the lock. */
	CHECK(WTERMSIG(groups_end(o->keeper, SIGKILL)) == SIGKILL);
	CHECK(groups_exist(&g, o->name) && !is_dead(o->cage));
	cgroup_sweep(&g);
	CHECK(!groups_exist(&g, o->name));
	CHECK(WTERMSIG(groups_wait(o->cage)) == SIGKILL);
	CHECK(groups_exist(&g, g.name));
	CHECK(groups_remove(&g));
}

static void only_our_names_are_swept(void)
{
	static const char *const names[] = { "bawn-probe-1", "bawn-20260101-000000-0000000",
		"bawn-20260101-000000-0000000g", "other" };
	struct cgroup g;

	CHECK(groups_make(&g, GROUPS_ALL));
	for (size_t n = 0; n < COUNT_OF(names); n++)
		for (int i = 0; i < g.count; i++)
			CHECK(mkdirat(g.folders[i].parent, names[n], 0755) == 0);
	cgroup_sweep(&g);
	for (size_t n = 0; n < COUNT_OF(names); n++) {
		CHECK(groups_exist(&g, names[n]));
		for (int i = 0; i < g.count; i++)
			unlinkat(g.folders[i].parent, names[n], AT_REMOVEDIR);
	}
	/* What root left in a user's place is not the user's to remove; root's own is. */
	CHECK(groups_exist(&g, groups_foreign) == (geteuid() != 0));
	CHECK(groups_remove(&g));
}

static void what_is_not_empty_is_left_to_a_sweep(void)
{
	struct cgroup g, other;
	struct err e;
	pid_t pid;

	CHECK(groups_make(&g, 1U << CGROUP_PIDS) && groups_make(&other, 1U << CGROUP_PIDS));
	pid = groups_start(&g, groups_stay);
	CHECK(cgroup_remove(&g, &e) == -EBUSY);
	CHECK(strstr(e.text, "cannot remove cgroup 'bawn-2026"));
	CHECK(!is_dead(pid));
	cgroup_sweep(&other);
	CHECK(WTERMSIG(groups_wait(pid)) == SIGKILL);
	CHECK(groups_remove(&other));
}

static struct cgroup left, sweeper;
static int lets_sweep[2];

/* In a folder whose keeper is dead, as soon as it is. */
static void sweep_from_inside(void)
{
	char byte;

	cgroup_done(&left);
	close(lets_sweep[1]);
	if (read(lets_sweep[0], &byte, 1) != 0)
		_exit(98);
	cgroup_sweep(&sweeper);
	_exit(7);
}

/* A run that was started in the cage of another may outlive its keeper. */
static void who_sweeps_does_not_end_itself(void)
{
	char name[CGROUP_NAME_SIZE];
	int status;
	pid_t pid;

	CHECK(groups_make(&sweeper, GROUPS_ALL) && groups_make(&left, GROUPS_ALL));
	CHECK(pipe2(lets_sweep, O_CLOEXEC) == 0);
	memcpy(name, left.name, sizeof(name));
	pid = groups_start(&left, sweep_from_inside);
	/* Nobody has it locked any more, as if its keeper were dead. */
	cgroup_done(&left);
	close(lets_sweep[0]);
	close(lets_sweep[1]);
	status = groups_wait(pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(groups_exist(&sweeper, name));
	/* The pair: from outside it is swept. */
	cgroup_sweep(&sweeper);
	CHECK(!groups_exist(&sweeper, name));
	CHECK(groups_remove(&sweeper));
}

/* Makers whose folders may be swept between being made and being locked, and sweepers. */
static void be_maker(uint64_t end)
{
	int before = check_failed;

	while (clock_ns() < end && check_failed == before) {
		char fault[128];
		struct cgroup g;
		pid_t pid;

		CHECK(groups_make(&g, 1U << CGROUP_PIDS | 1U << CGROUP_CPU));
		pid = groups_start(&g, groups_stay);
		cgroup_look(&g, CGROUP_PIDS, pid, GROUPS_PIDS, fault, sizeof(fault));
		CHECK_STR(fault, "");
		CHECK(WTERMSIG(groups_end(pid, SIGTERM)) == SIGTERM);
		CHECK(groups_remove(&g));
	}
	_exit(check_failed != before);
}

static void be_sweeper(uint64_t end)
{
	struct cgroup g;
	struct err e;
	char run[32];

	groups_name_run(run);
	cgroup_init(&g);
	if (cgroup_find(&g, run, GROUPS_ALL, &e) < 0)
		_exit(1);
	while (clock_ns() < end)
		cgroup_sweep(&g);
	_exit(0);
}

static void makers_and_sweepers_agree(void)
{
	uint64_t end = clock_ns() + 2000000000;
	int status;

	for (int i = 0; i < 2; i++) {
		if (fork() == 0)
			be_maker(end);
		if (fork() == 0)
			be_sweeper(end);
	}
	for (int i = 0; i < 4; i++)
		CHECK(wait(&status) > 0 && status == 0);
}

int main(void)
{
	static const struct groups_case cases[] = {
		GROUPS_CASE(only_dead_keepers_are_swept),
		GROUPS_CASE(only_our_names_are_swept),
		GROUPS_CASE(what_is_not_empty_is_left_to_a_sweep),
		GROUPS_CASE(who_sweeps_does_not_end_itself),
		GROUPS_CASE(makers_and_sweepers_agree),
	};

	return groups_run(cases, COUNT_OF(cases), &check_failed);
}
