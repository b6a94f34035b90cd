/*
 * tool - what commands do in a cage to come to its limits; static.
 *
 *     tool WHAT [ARGUMENT…]
 *
 * Prints what it got, and returns 0 when that was all.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/count.h"

#define MB ((size_t)1024 * 1024)

static const char *error_name(int num)
{
	return num ? strerrorname_np(num) : "all";
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int say(int n, int num)
{
	printf("%d %s\n", n, error_name(num));
	fflush(stdout);
	return num != 0;
}

/* --- memory --- */

static void touch(size_t mb)
{
	char *memory =
		mmap(NULL, mb * MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t at = 0; memory != MAP_FAILED && at < mb * MB; at += 4096)
		memory[at] = 1;
}

static int allocate(char **args)
{
	touch((size_t)atoi(args[0]));
	return say(atoi(args[0]), 0);
}

/* N processes have M MB each at the same time; how many of them are killed? */
static int allocate_together(char **args)
{
	int count = atoi(args[0]), killed = 0, status;

	for (int i = 0; i < count; i++) {
		if (fork() == 0) {
			touch((size_t)atoi(args[1]));
			sleep(1);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	printf("%d killed\n", killed);
	return killed;
}

/* --- processors --- */

/* N processes are busy for M ms; how much processor time was that, in ms? */
static int be_busy(char **args)
{
	double end = now(CLOCK_MONOTONIC) + atoi(args[1]) / 1e3;
	struct rusage used;

	for (int i = 0; i < atoi(args[0]); i++) {
		if (fork() == 0) {
			while (now(CLOCK_MONOTONIC) < end)
				;
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &used);
	printf("%ld\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
				(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000);
	return 0;
}

/* --- processes --- */

static int fork_many(char **args)
{
	int n = 0, num = 0;

	while (n < atoi(args[0]) && num == 0) {
		pid_t pid = fork();

		if (pid == 0) {
			pause();
			_exit(0);
		}
		num = pid < 0 ? errno : 0;
		n += pid > 0;
	}
	say(n, num);
	return 0;
}

static void *wait_for_end(void *unused)
{
	pause();
	return unused;
}

static int start_threads(char **args)
{
	int n = 0, num = 0;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	while (n < atoi(args[0]) && (num = pthread_create(&thread, &attr, wait_for_end, NULL)) == 0)
		n++;
	say(n, num);
	return 0;
}

/* Starts processes as fast as they end, for ever. */
static int fork_for_ever(char **args)
{
	(void)args;
	signal(SIGCHLD, SIG_IGN);
	puts("ready");
	fflush(stdout);
	for (;;)
		if (fork() == 0)
			_exit(0);
}

/* --- what outlives its parent --- */

static void ignore_everything(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	for (int n = 1; n < NSIG; n++)
		signal(n, SIG_IGN);
}

static void be_left(const char *how)
{
	if (strcmp(how, "session") == 0)
		setsid();
	if (strcmp(how, "deaf") == 0)
		ignore_everything();
	if (strcmp(how, "stopped") == 0)
		raise(SIGSTOP);
	for (int i = 0; strcmp(how, "zombies") == 0 && i < 20; i++)
		if (fork() == 0)
			_exit(0);
	signal(SIGCHLD, SIG_IGN);
	while (strcmp(how, "forking") == 0)
		if (fork() == 0)
			_exit(0);
	for (;;)
		pause();
}

/* A process of each kind is left, in a double fork; the word after them is only to be found by. */
static int leave(char **args)
{
	static const char *const kinds[] = { "session", "deaf", "stopped", "zombies", "forking" };

	(void)args;
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		if (fork() == 0) {
			if (fork() == 0)
				be_left(kinds[i]);
			_exit(0);
		}
		wait(NULL);
	}
	usleep(50000);
	puts("left");
	return 0;
}

/* --- files --- */

static int make_files(char **args)
{
	int n = 0, num = 0;
	char path[256];

	while (n < atoi(args[1]) && num == 0) {
		int fd;

		snprintf(path, sizeof(path), "%s/%d", args[0], n);
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
		num = fd < 0 ? errno : 0;
		n += fd >= 0;
		close(fd);
	}
	return say(n, num);
}

/* Writes KB to a file. */
static int fill(char **args)
{
	int fd = open(args[0], O_CREAT | O_TRUNC | O_WRONLY, 0600), n = 0, num = fd < 0 ? errno : 0;
	char block[1024];

	memset(block, 'x', sizeof(block));
	while (n < atoi(args[1]) && num == 0) {
		ssize_t r = write(fd, block, sizeof(block));

		num = r < 0 ? errno : r < (ssize_t)sizeof(block) ? ENOSPC : 0;
		n += num == 0;
	}
	return say(n, num);
}

static int open_many(char **args)
{
	int n = 0;

	(void)args;
	while (dup(0) >= 0)
		n++;
	say(n, errno);
	return 0;
}

/* --- cgroups --- */

/* Is there a file of a cgroup to be reached, or a tree to be mounted? */
static int reach_cgroups(char **args)
{
	static const char *const paths[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/cgroup.procs",
		"/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/memory.limit_in_bytes" };
	static const char *const kinds[] = { "cgroup", "cgroup2" };
	FILE *mounts = fopen("/proc/self/mountinfo", "r");
	char line[4096];
	struct stat st;
	int found = 0;

	(void)args;
	for (size_t i = 0; i < 4; i++)
		if (stat(paths[i], &st) == 0)
			found += printf("%s is there\n", paths[i]) > 0;
	for (size_t i = 0; i < 2; i++)
		if (mount("none", "/tmp", kinds[i], 0, i ? "" : "memory") == 0)
			found += printf("%s can be mounted\n", kinds[i]) > 0;
	while (mounts && fgets(line, sizeof(line), mounts))
		if (strstr(line, " - cgroup"))
			found += printf("it is mounted: %s", line) > 0;
	return found;
}

static const struct {
	const char *name;
	int (*does)(char **args);
} tools[] = {
	{ "allocate", allocate },
	{ "allocate-together", allocate_together },
	{ "busy", be_busy },
	{ "cgroups", reach_cgroups },
	{ "descriptors", open_many },
	{ "files", make_files },
	{ "fill", fill },
	{ "fork", fork_for_ever },
	{ "leave", leave },
	{ "processes", fork_many },
	{ "threads", start_threads },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < COUNT_OF(tools); i++)
		if (strcmp(argv[1], tools[i].name) == 0)
			return tools[i].does(argv + 2);
	return 2;
}
