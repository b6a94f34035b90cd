/* Processes, processor time, descriptors, and what is counted per user. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT_MAX 2000 /* of processes and threads, whatever is asked for */

static int count_of(const char *text)
{
	int n = atoi(text);

	return n < COUNT_MAX ? n : COUNT_MAX;
}

static int had(int got, int wanted, const char *what)
{
	int error = errno;

	return got >= wanted ? worked("%d %s", got, what)
			     : refused("%d %s: %s", got, what, error_name(error));
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- processes --- */

/* Everybody forks, until so many are there or nobody can any more. */
static void breed(int *total, int most)
{
	while (__atomic_add_fetch(total, 1, __ATOMIC_SEQ_CST) <= most)
		if (fork() < 0)
			break;
	__atomic_sub_fetch(total, 1, __ATOMIC_SEQ_CST);
}

static int attack_forks(char **args)
{
	int *total = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int wanted = count_of(args[0]), got;
	pid_t first = getpid();

	if (total == MAP_FAILED)
		return untried("mmap: %s", error_name(errno));
	setpgid(0, 0);
	breed(total, wanted);
	if (getpid() != first) {
		sleep(SECONDS_MAX);
		_exit(0);
	}
	for (int i = 0; i < 20 && __atomic_load_n(total, __ATOMIC_SEQ_CST) < wanted; i++)
		usleep(10000);
	got = __atomic_load_n(total, __ATOMIC_SEQ_CST);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	errno = EAGAIN;
	return had(got, wanted, "processes");
}

static int attack_zombies(char **args)
{
	int wanted = count_of(args[0]), got = 0;
	pid_t pid;

	while (got < wanted && (pid = fork()) >= 0) {
		if (pid == 0)
			_exit(0);
		got++;
	}
	return had(got, wanted, "zombies");
}

static void *wait_for_end(void *unused)
{
	pause();
	return unused;
}

static int attack_threads(char **args)
{
	int wanted = count_of(args[0]), got = 0;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	while (got < wanted && (errno = pthread_create(&thread, &attr, wait_for_end, NULL)) == 0)
		got++;
	return had(got, wanted, "threads");
}

/* Tells a process that a socket can be read, by a signal of our choice. */
static bool signal_as_owner(pid_t pid)
{
	int ends[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 &&
	       fcntl(ends[0], F_SETOWN, pid) == 0 && fcntl(ends[0], F_SETSIG, SIGTERM) == 0 &&
	       fcntl(ends[0], F_SETFL, O_ASYNC) == 0 && write(ends[1], "", 1) == 1;
}

/* By every call that takes the number of a process. */
static int attack_signals(char **args)
{
	pid_t pid = atoi(args[0]);
	siginfo_t about = { .si_signo = SIGTERM, .si_code = SI_QUEUE };
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (syscall(SYS_rt_sigqueueinfo, pid, SIGTERM, &about) == 0)
		return worked("rt_sigqueueinfo");
	if (syscall(SYS_tgkill, pid, pid, SIGTERM) == 0 || syscall(SYS_tkill, pid, SIGTERM) == 0)
		return worked("tgkill");
	if (fd >= 0 && syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0)
		return worked("pidfd_send_signal");
	return outcome(signal_as_owner(pid), "signal it, in five ways");
}

/* --- processor time --- */

static void be_busy(unsigned cpu, double end)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	setsid(); /* a group of the scheduler's own, where there are such */
	setpriority(PRIO_PROCESS, 0, -20);
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
	while (now() < end)
		;
	_exit(0);
}

/* More than so many ms of processor time in 3 s, on every processor; others may be busy too. */
static int attack_busy(char **args)
{
	double end = now() + 3;
	struct rusage used;
	long ms;

	for (unsigned i = 0; i < 2; i++)
		if (fork() == 0)
			be_busy(i, end);
	while (wait(NULL) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &used);
	ms = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
	     (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
	return ms > atol(args[0]) ? worked("%ld ms", ms) : refused("%ld ms", ms);
}

static int attack_scheduler(char **args)
{
	struct sched_param lowest = { .sched_priority = 1 };
	struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} deadline = { sizeof(deadline), 6, 0, 0, 0, 1000000, 10000000, 10000000 };

	(void)args;
	setrlimit(RLIMIT_RTPRIO, &none);
	if (sched_setscheduler(0, SCHED_FIFO, &lowest) == 0)
		return worked("SCHED_FIFO");
	if (sched_setscheduler(0, SCHED_RR, &lowest) == 0)
		return worked("SCHED_RR");
	return outcome(syscall(SYS_sched_setattr, 0, &deadline, 0) == 0, "real-time scheduling");
}

static int attack_io_priority(char **args)
{
	(void)args;
	return outcome(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
			       IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)) == 0,
		"the highest priority for disks");
}

/* Whoever has our user id, wherever: the host sees whether it was reached. */
static int attack_slow_down(char **args)
{
	(void)args;
	return outcome(setpriority(PRIO_USER, 0, 3) == 0, "a lower priority for all of the user");
}

/* --- limits --- */

static int attack_many_files(char **args)
{
	int wanted = count_of(args[0]), got = 0;

	while (got < wanted && dup(0) >= 0)
		got++;
	return had(got, wanted, "descriptors");
}

static int attack_raise(char **args)
{
	rlim_t wanted = (rlim_t)count_of(args[0]);
	struct rlimit limit = { wanted, wanted };

	setrlimit(RLIMIT_NOFILE, &limit);
	prlimit(0, RLIMIT_NOFILE, &limit, NULL);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return untried("getrlimit: %s", error_name(errno));
	return limit.rlim_max >= wanted ? worked("%lu files", limit.rlim_max)
					: refused("%lu files", limit.rlim_max);
}

static int attack_inodes(char **args)
{
	int wanted = atoi(args[1]), got = 0;
	char path[128];

	while (got < wanted && got < 50000) {
		snprintf(path, sizeof(path), "%.64s/inode-%d", args[0], got);
		if (mknod(path, S_IFREG | 0600, 0) < 0)
			break;
		got++;
	}
	return had(got, wanted, "empty files");
}

/* Ourselves into the cgroup of the host, by its files or by a tree of our own. */
static int attack_leave_cgroup(char **args)
{
	for (; *args; args++)
		if (access(*args, W_OK) == 0)
			return worked("%s can be written", *args);
	syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWCGROUP);
	return outcome(mount("none", "/tmp", "cgroup2", 0, NULL) == 0 ||
			       mount("none", "/tmp", "cgroup", 0, "memory") == 0,
		"a tree of cgroups");
}

/* --- keys and queues --- */

static int attack_keys(char **args)
{
	int wanted = count_of(args[0]), got = 0;
	char name[32];

	do
		snprintf(name, sizeof(name), "escape-%d", got);
	while (syscall(SYS_add_key, "user", name, "x", 1, -2) > 0 && ++got < wanted);
	return had(got, wanted, "keys");
}

/* It takes some 100 kB of the kernel's. */
static bool take_queue(void)
{
	struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
	char name[64];
	mqd_t queue;

	snprintf(name, sizeof(name), "/bawn-escape-%d", getpid());
	queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	return queue >= 0 && mq_unlink(name) == 0;
}

/* --- what each user has a share of, in a cage or not --- */

static bool take_inotify(void)
{
	return inotify_init1(0) >= 0;
}

static bool take_timer(void)
{
	struct sigevent nothing = { .sigev_notify = SIGEV_NONE };
	timer_t timer;

	return timer_create(CLOCK_MONOTONIC, &nothing, &timer) == 0;
}

static const struct {
	const char *name;
	bool (*take)(void);
} shares[] = {
	{ "inotify", take_inotify },
	{ "timers", take_timer },
	{ "queues", take_queue },
};

static int attack_share(char **args)
{
	int wanted = atoi(args[1]), got = 0;

	for (size_t i = 0; i < ELEMENTS(shares); i++) {
		if (strcmp(shares[i].name, args[0]) != 0)
			continue;
		while (got < wanted && shares[i].take())
			got++;
		return had(got, wanted, args[0]);
	}
	return untried("there is no share of '%s'", args[0]);
}

/* --- the end of a run, and its terminal --- */

/* Deaf to everything, with limits of its own, it goes on for so many ms. */
static int attack_outstay(char **args)
{
	struct rlimit soon = { 1, RLIM_INFINITY };
	double end = now() + atoi(args[0]) / 1e3;
	sigset_t all;

	for (int n = 1; n < NSIG; n++)
		signal(n, SIG_IGN);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setrlimit(RLIMIT_CPU, &soon);
	setsid();
	while (now() < end)
		usleep(10000);
	return worked("it is still there after %s ms", args[0]);
}

/* Into the clipboard, and questions whose answers would be typed. */
static int attack_escapes(char **args)
{
	(void)args;
	printf("begin\033]52;c;ZXNjYXBl\007\033]0;title\007\033[21t\033P$qm\033\\\005end\n");
	fflush(stdout);
	return 0;
}

const struct attack attacks_resources[] = {
	{ "forks", "COUNT", attack_forks, "processes that start processes" },
	{ "zombies", "COUNT", attack_zombies, "processes that nobody waits for" },
	{ "threads", "COUNT", attack_threads, "threads" },
	{ "signals", "PID", attack_signals, "signals a process, in five ways" },
	{ "busy", "MS", attack_busy, "uses processor time, by every trick" },
	{ "scheduler", "", attack_scheduler, "a real-time process" },
	{ "io-priority", "", attack_io_priority, "the highest priority for disks" },
	{ "slow-down", "", attack_slow_down, "a lower priority for the user's processes" },
	{ "many-files", "COUNT", attack_many_files, "opens descriptors" },
	{ "raise", "COUNT", attack_raise, "raises the limit of descriptors" },
	{ "inodes", "DIR COUNT", attack_inodes, "makes empty files" },
	{ "leave-cgroup", "FILE …", attack_leave_cgroup, "opens files of cgroups" },
	{ "keys", "COUNT", attack_keys, "makes keys" },
	{ "share", "NAME COUNT", attack_share,
		"takes the user's share of inotify, timers, queues" },
	{ "outstay", "MS", attack_outstay, "goes on when it has to end", true },
	{ "escapes", "", attack_escapes, "prints what reaches out of the screen", true },
	{ 0 },
};
