/*
 * Each case runs in a place of the test's own, as root or as a user, and leaves it empty.
 */
#include "groups.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "place.h"

#define USER 12345 /* an id that owns nothing here */

const char groups_foreign[] = "bawn-20260101-000000-00f0e167";

/* --- a keeper's steps --- */

void groups_name_run(char ret[static 32])
{
	static unsigned count;

	snprintf(
		ret, 32, "20260101-000000-%04x%04x", (unsigned)getpid() & 0xffff, count++ & 0xffff);
}

bool groups_make(struct cgroup *g, unsigned wanted)
{
	static const uint64_t limits[] = { GROUPS_MEMORY, GROUPS_CPU, GROUPS_PIDS };
	struct err e = { 0 };
	char run[32];
	int r;

	groups_name_run(run);
	cgroup_init(g);
	r = cgroup_find(g, run, wanted, &e);
	for (int c = 0; c < CGROUP_COUNT && r == 0; c++)
		if (wanted & 1U << c)
			r = cgroup_limit(g, (enum cgroup_controller)c, limits[c], &e);
	if (r < 0)
		printf("# %s\n", e.text);
	return r == 0;
}

pid_t groups_start(const struct cgroup *g, void (*work)(void))
{
	int ready[2];
	bool is_in;
	char byte;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		struct err e;

		if (cgroup_enter(g, false, &e) < 0)
			_exit(99);
		if (write(ready[1], "", 1) == 1)
			work();
		_exit(0);
	}
	close(ready[1]);
	is_in = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	return is_in ? pid : -1;
}

int groups_wait(pid_t pid)
{
	int status = 0;

	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

int groups_end(pid_t pid, int signal)
{
	if (pid > 0)
		kill(pid, signal);
	return groups_wait(pid);
}

void groups_sleep(unsigned ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
}

void groups_stay(void)
{
	for (;;)
		pause();
}

bool groups_exist(const struct cgroup *g, const char *name)
{
	int found = 0;

	for (int i = 0; i < g->count; i++)
		found += faccessat(g->folders[i].parent, name, F_OK, 0) == 0;
	if (found > 0 && found < g->count)
		printf("# %s is in %d of %d places\n", name, found, g->count);
	return found > 0;
}

bool groups_remove(struct cgroup *g)
{
	struct cgroup places = *g;
	struct err e = { 0 };
	bool is_gone;

	for (int i = 0; i < g->count; i++)
		places.folders[i].parent = fcntl(g->folders[i].parent, F_DUPFD_CLOEXEC, 0);
	is_gone = cgroup_remove(g, &e) == 0 && !groups_exist(&places, places.name);
	for (int i = 0; i < places.count; i++)
		close(places.folders[i].parent);
	if (!is_gone)
		printf("# %s\n", e.text);
	return is_gone;
}

/* --- running cases --- */

static int tell(bool is_good, unsigned number, const char *name, uid_t uid)
{
	printf("%sok %u - %s as %s\n", is_good ? "" : "not ", number, name,
		uid == 0 ? "root" : "a user");
	fflush(stdout);
	return is_good ? 0 : 1;
}

struct suite {
	const struct groups_case *cases;
	unsigned count;
	const int *failed;
};

/*
 * In the place, as the user, and first in a pid namespace: orphans are adopted, nothing outlives
 * it, and no signal reaches anyone else, whatever a case does wrong.
 */
static int run_cases(const struct suite *s, const struct test_place *p, unsigned number)
{
	int failed = 0;

	if (!test_place_enter(p)) {
		printf("# the place cannot be entered: %s\n", strerror(errno));
		return 1;
	}
	for (unsigned i = 0; i < s->count; i++) {
		int before = *s->failed, status;

		s->cases[i].run();
		while (waitpid(-1, &status, WNOHANG) > 0)
			;
		failed += tell(*s->failed == before, number + i, s->cases[i].name, p->uid);
	}
	return failed;
}

/* The folder that is not the user's: made before, and taken away afterwards. */
static void put_foreign(const struct test_place *p, bool is_there)
{
	char path[CGROUP_PATH_SIZE + 128];

	for (int i = 0; i < p->count; i++) {
		snprintf(path, sizeof(path), "%s/%s", p->folders[i].path, groups_foreign);
		if ((is_there ? mkdir(path, 0700) : rmdir(path)) < 0 && errno != ENOENT)
			printf("# %s: %s\n", path, strerror(errno));
	}
}

static int run_as(const struct suite *s, uid_t uid, unsigned number)
{
	static struct test_place p;
	const char *problem = test_place_make(&p, uid);
	int status = 0;
	pid_t pid;

	for (unsigned i = 0; i < s->count && problem; i++)
		printf("ok %u - %s # SKIP %s\n", number + i, s->cases[i].name, problem);
	if (!problem) {
		put_foreign(&p, true);
		fflush(stdout);
		pid = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWPID, NULL, NULL, NULL, NULL);
		if (pid == 0)
			exit(run_cases(s, &p, number));
		status = groups_wait(pid);
		put_foreign(&p, false);
	}
	return tell(test_place_remove(&p), number + s->count, "nothing_is_left", uid) || status;
}

int groups_run(const struct groups_case *cases, unsigned count, const int *failed)
{
	struct suite s = { cases, count, failed };
	int result;

	if (geteuid() != 0) {
		printf("1..0 # SKIP only root can give a place in the trees of cgroups away\n");
		return 0;
	}
	printf("1..%u\n", 2 * (count + 1));
	result = run_as(&s, 0, 1);
	result |= run_as(&s, USER, count + 2);
	return result ? 1 : 0;
}
