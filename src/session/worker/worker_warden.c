/*
 * worker_warden - starts runners, and ends them in time.
 *
 * Runs as:     the operator; a process of its own, forked before the store is opened.
 * Enters with: a channel to the coordinator, and memory shared with it.
 * Must not:    wait for the coordinator. That may be stopped, or hang on a store that is cut off;
 *              its runs end nevertheless before another worker may take their sessions.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "cage/cage_break.h"
#include "session/worker/worker_inside.h"
#include "wire/wire.h"

#define IDLE_MS  2000 /* for runners that have nothing to do to end by themselves */
#define NS_PER_S ((uint64_t)1000000000)

struct runner_process {
	pid_t pid; /* or 0 */
	int pidfd;
};

struct warden {
	const struct worker_settings *settings;
	struct worker_shared *shared;
	int channel, timer;
	struct runner_process *runners;
};

uint64_t worker_boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* --- what runners must not have --- */

/* A variable's value, also where the kernel shows what the process was started with. */
static void wipe_variable(const char *name)
{
	char *value = getenv(name);

	if (value)
		explicit_bzero(value, strlen(value));
	unsetenv(name);
}

static void wipe_credentials(void)
{
	static const char *const names[] = { "BAWN_STORE", "PGPASSWORD", "PGPASSFILE",
		"PGSERVICEFILE", "PGSSLKEY", "PGSSLPASSWORD" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		wipe_variable(names[i]);
}

/* --- runners --- */

/* Ends with its parent, also if that ended just now. */
static void follow_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
}

/* Nothing to read; nobody to print to but about itself. */
static void drop_streams(void)
{
	own_fd int null = file_open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(1);
}

static _Noreturn void become_runner(struct warden *w, pid_t parent, int channel)
{
	sigset_t set;

	follow_parent(parent);
	for (unsigned i = 0; i < w->settings->slots; i++)
		if (w->runners[i].pid)
			close(w->runners[i].pidfd);
	close(w->channel);
	close(w->timer);
	munmap(w->shared, sizeof(*w->shared));
	/* What a terminal sends is for the coordinator. */
	setpgid(0, 0);
	drop_streams();
	/* While nothing runs it is not heard; when something does, the keeper hears it. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_SETMASK, &set, NULL);
	worker_be_runner(w->settings, channel);
}

static int warden_start(struct warden *w, unsigned slot)
{
	pid_t self = getpid();
	int ends[2] = { -1, -1 }, r = wire_pair(ends);
	own_fd int near = ends[0], far = ends[1];
	pid_t pid = r < 0 ? -1 : fork();
	int pidfd;

	if (pid == 0) {
		close(take_fd(&near));
		become_runner(w, self, far);
	}
	if (pid < 0)
		return r < 0 ? r : -errno;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		r = -errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return r;
	}
	w->runners[slot] = (struct runner_process){ pid, pidfd };
	atomic_store(&w->shared->slots[slot].is_fenced, false);
	r = worker_send_note(w->channel, WORKER_STARTED, slot, 0, near);
	return r == 0 ? worker_send_note(w->channel, WORKER_PROCESS, slot, 0, pidfd) : r;
}

static void bury(struct runner_process *p)
{
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(p->pidfd);
	*p = (struct runner_process){ 0 };
}

/* Those that do nothing see the end of their channels too, and have cages to put away. */
static void await_idle(const struct warden *w)
{
	uint64_t until = clock_ns() + (uint64_t)IDLE_MS * 1000000;

	for (unsigned i = 0; i < w->settings->slots; i++) {
		struct pollfd end = { .fd = w->runners[i].pidfd, .events = POLLIN };
		uint64_t now = clock_ns();

		if (w->runners[i].pid && !atomic_load(&w->shared->slots[i].is_busy) && now < until)
			(void)poll(&end, 1, (int)((until - now) / 1000000));
	}
}

static _Noreturn void end_all(struct warden *w)
{
	await_idle(w);
	for (unsigned i = 0; i < w->settings->slots; i++)
		if (w->runners[i].pid)
			syscall(SYS_pidfd_send_signal, w->runners[i].pidfd, SIGKILL, NULL, 0);
	for (unsigned i = 0; i < w->settings->slots; i++)
		if (w->runners[i].pid)
			bury(&w->runners[i]);
	_exit(0);
}

/* --- time --- */

static void set_timer(const struct warden *w, uint64_t ns)
{
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)(ns / NS_PER_S),
					   .tv_nsec = (long)(ns % NS_PER_S) } };

	timerfd_settime(w->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Leases that hold are looked at again when they would end. */
static void check_time(struct warden *w)
{
	uint64_t now = worker_boot_ns(), until = atomic_load(&w->shared->until_ns);

	if (until > now) {
		set_timer(w, until);
		return;
	}
	for (unsigned i = 0; i < w->settings->slots; i++) {
		if (!w->runners[i].pid || !atomic_load(&w->shared->slots[i].is_busy) ||
			cage_is_broken("warden"))
			continue;
		atomic_store(&w->shared->slots[i].is_fenced, true);
		syscall(SYS_pidfd_send_signal, w->runners[i].pidfd, SIGKILL, NULL, 0);
	}
	set_timer(w, now + w->settings->lease_ms * (NS_PER_S / 1000) / 8);
}

/* --- the process --- */

static void warden_hear(struct warden *w)
{
	own(worker_letter) struct worker_letter l = { .fd = -1 };
	int r = worker_receive(w->channel, &l);

	if (r < 0 || l.kind != WORKER_START || l.slot >= w->settings->slots)
		end_all(w);
	if (w->runners[l.slot].pid)
		bury(&w->runners[l.slot]);
	r = warden_start(w, l.slot);
	if (r < 0 && worker_send_note(w->channel, WORKER_FAILED, l.slot, -r, -1) < 0)
		end_all(w);
}

static void warden_watch(struct warden *w, struct pollfd *fds)
{
	unsigned slots = w->settings->slots;

	fds[0] = (struct pollfd){ .fd = w->channel, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = w->timer, .events = POLLIN };
	for (unsigned i = 0; i < slots; i++)
		fds[2 + i] = (struct pollfd){ .fd = w->runners[i].pid ? w->runners[i].pidfd : -1,
			.events = POLLIN };
	if (poll(fds, slots + 2, -1) < 0)
		return;
	for (unsigned i = 0; i < slots; i++)
		if (fds[2 + i].revents)
			bury(&w->runners[i]);
	if (fds[1].revents)
		check_time(w);
	if (fds[0].revents)
		warden_hear(w);
}

static _Noreturn void be_warden(struct warden *w, pid_t parent)
{
	struct pollfd *fds = calloc(w->settings->slots + 2, sizeof(*fds));
	sigset_t set;

	follow_parent(parent);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_SETMASK, &set, NULL);
	setsid();
	wipe_credentials();
	w->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	w->runners = calloc(w->settings->slots, sizeof(*w->runners));
	if (!fds || !w->runners || w->timer < 0)
		_exit(1);
	check_time(w);
	for (;;)
		warden_watch(w, fds);
}

int worker_start_warden(const struct worker_settings *s, struct worker_shared *shared,
	int *ret_channel, int *ret_pidfd, struct err *e)
{
	struct warden w = { .settings = s, .shared = shared, .timer = -1 };
	pid_t self = getpid(), pid;
	int ends[2] = { -1, -1 }, r = wire_pair(ends), pidfd;
	own_fd int near = ends[0], far = ends[1];

	pid = r < 0 ? -1 : fork();
	if (pid == 0) {
		close(take_fd(&near));
		w.channel = far;
		be_warden(&w, self);
	}
	if (pid < 0)
		return err_sys(e, r < 0 ? -r : errno, "cannot start the worker's warden");
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return err_sys(e, errno, "cannot watch the worker's warden");
	*ret_channel = take_fd(&near);
	*ret_pidfd = pidfd;
	return 0;
}
