/*
 * worker - the coordinator: waits for the store, for runners and for the clock, and for all of them
 * at once.
 *
 * Runs as:  the operator; the only process of the worker that has the store.
 * Leaves:   no process, no lease, no run that is neither reported nor another worker's.
 * Must not: do anything that takes long, but for what the store itself takes; use its store in a
 *           process that it forks: a sweep is a command, started anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_fields.h"
#include "base/own.h"
#include "base/str.h"
#include "session/folder/session.h"
#include "session/worker/worker_inside.h"

#define NS_PER_MS  ((uint64_t)1000000)
#define METRICS_MS 1000  /* between two files of metrics */
#define COUNT_MS   15000 /* between two times that all sessions are counted */

void worker_tell(struct worker *w, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	w->settings->tell(text, true);
}

void worker_warn(struct worker *w, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	w->settings->tell(text, false);
}

void worker_note_count(struct worker *w)
{
	if (w->settings->metrics && !w->metrics_ns)
		w->metrics_ns = w->written_ns + METRICS_MS * NS_PER_MS;
}

static void worker_write_metrics(struct worker *w)
{
	struct err e = { 0 };

	w->metrics_ns = 0;
	w->written_ns = clock_ns();
	if (w->settings->metrics && metrics_write(&w->metrics, w->settings->metrics, &e) < 0)
		worker_warn(w, "%s", e.text);
}

/* How long a store that does not answer is left alone. */
static uint64_t worker_retry_ns(const struct worker *w)
{
	uint64_t ms = w->settings->lease_ms / 15;

	return (ms < 1000 ? ms : 1000) * NS_PER_MS;
}

void worker_note_failure(struct worker *w, const char *attempt, int r, const struct err *e)
{
	if (!w->is_cut && e->kind != ERR_NONE)
		worker_warn(w, "%s; trying again", e->text);
	else if (!w->is_cut)
		worker_warn(w, "cannot %s: %s; trying again", attempt, strerror(-r));
	w->is_cut = w->is_deaf = true;
	if (w->renew_ns > clock_ns() + worker_retry_ns(w))
		w->renew_ns = clock_ns() + worker_retry_ns(w);
}

void worker_log(struct worker *w, const char *type, const struct worker_slot *slot,
	const struct store_session *x, const char *text)
{
	own(log) struct log l;
	struct json *j;

	log_init(&l, w->settings->state, slot ? slot->taken.run.id : NULL, x->id);
	j = log_begin(&l, type);
	json_text(j, "worker", w->self.name);
	json_int(j, "token", (int64_t)x->token);
	json_text(j, "text", text);
	log_end(&l);
	if (log_write(&l) < 0)
		worker_warn(w, "%s", l.failure.text);
}

static int count_session(void *of, const struct store_session *x)
{
	(void)x;
	++*(uint64_t *)of;
	return 0;
}

static int lease_count_worker(void *of, const struct store_worker *x)
{
	*(uint64_t *)of += x->is_alive;
	return 0;
}

int worker_count_all(struct worker *w, struct err *e)
{
	struct metrics *m = &w->metrics, before = *m;
	uint64_t now = clock_ns();
	struct store_queue queue;
	int r;

	if (!w->settings->metrics || (w->counted_ns && now - w->counted_ns < COUNT_MS * NS_PER_MS))
		return 0;
	w->counted_ns = now;
	m->sessions = m->workers = 0;
	r = store_each_session(w->store, count_session, &m->sessions, e);
	if (r == 0)
		r = store_each_worker(w->store, lease_count_worker, &m->workers, e);
	if (r == 0)
		r = store_measure_queue(w->store, &queue, e);
	if (r == 0) {
		m->queued = queue.runs;
		m->oldest_s = queue.oldest_ms / 1000;
	}
	if (r < 0)
		*m = before;
	else if (memcmp(m, &before, sizeof(before)) != 0)
		worker_note_count(w);
	return r;
}

/* --- mounts --- */

/*
 * A session's workspace is mounted by a process that ends when nobody is connected to it any more.
 * Here is one connection for each session that is held, open, and under a lease of ours.
 */

#define OTHER_FILES 64 /* that the coordinator has open beside those of slots and sessions */
#define AT_ONCE     64

static int worker_open_mounts(struct worker *w, struct err *e)
{
	struct rlimit limit = { 0 };
	size_t others = OTHER_FILES + 4 * (size_t)w->settings->slots;

	w->mounts = epoll_create1(EPOLL_CLOEXEC);
	if (w->mounts < 0)
		return err_set(e, ERR_SYS, errno, "cannot watch the sessions that are mounted");
	/* For this process: those that run commands are there already, and have the usual one. */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	w->most_mounted = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > others
				  ? limit.rlim_cur - others
				  : 0;
	return 0;
}

bool worker_wants_mount(struct worker *w, const struct store_session *x)
{
	const struct worker_held *held = worker_find_held(w, x->id);

	return held && held->mount < 0 && w->settings->idle_ms > 0 && w->mounted < w->most_mounted;
}

void worker_keep_mount(struct worker *w, const struct store_session *x, int *fd)
{
	struct worker_held *held = worker_find_held(w, x->id);
	struct epoll_event what = { .events = EPOLLIN };

	if (!held || held->session.token != x->token || held->mount >= 0)
		return;
	what.data.fd = *fd;
	if (epoll_ctl(w->mounts, EPOLL_CTL_ADD, *fd, &what) < 0)
		return;
	held->mount = take_fd(fd);
	w->mounted++;
}

void worker_drop_mount(struct worker *w, struct worker_held *held)
{
	if (held->mount < 0)
		return;
	/* Others may have a copy of it for a moment: closing alone would not take it out. */
	epoll_ctl(w->mounts, EPOLL_CTL_DEL, held->mount, NULL);
	close(held->mount);
	held->mount = -1;
	w->mounted--;
}

/* Sessions were stopped. */
static void worker_hear_mounts(struct worker *w)
{
	struct epoll_event seen[AT_ONCE];
	int n = epoll_wait(w->mounts, seen, AT_ONCE, 0);

	/* Whatever is said, the session is stopped, or its process has ended. */
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < w->held_count; k++)
			if (w->held[k].mount == seen[i].data.fd)
				worker_drop_mount(w, &w->held[k]);
}

/* --- sweeps --- */

#define MAX_OUTPUT ((size_t)64 << 20) /* it names every session that it removed */

extern char **environ;

static void sweep_settle(struct worker *w, uint64_t failed)
{
	w->metrics.sweeps++;
	w->metrics.sweep_failures += failed;
	worker_note_count(w);
	w->sweep_ns = clock_ns() + w->settings->sweep_ms * 1000000;
}

static int sweep_spawn(struct worker *w, int output)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t how;
	sigset_t none, usual;
	int r;

	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGHUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&how);
	r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(
			&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &usual);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (r == 0)
		r = posix_spawn(&w->sweep.pid, "/proc/self/exe", &actions, &how, w->settings->sweep,
			environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&how);
	return -r;
}

static void worker_begin_sweep(struct worker *w)
{
	int ends[2] = { -1, -1 }, r = pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;
	own_fd int near = ends[0], far = ends[1];

	w->sweep_ns = 0;
	if (r == 0)
		r = sweep_spawn(w, far);
	if (r == 0) {
		(void)fcntl(near, F_SETFL, O_NONBLOCK);
		w->sweep.output = take_fd(&near);
		buf_init(&w->sweep.text, MAX_OUTPUT);
		return;
	}
	w->sweep.pid = 0;
	worker_warn(w, "cannot start a sweep: %s", strerror(-r));
	sweep_settle(w, 1);
}

/* --- what it says --- */

struct sweep_result {
	int64_t removed, kept, failed;
};

static bool sweep_read_number(void *reader, void *into)
{
	return json_read_int(reader, into);
}

static const struct json_field fields[] = {
	{ "removed", sweep_read_number, offsetof(struct sweep_result, removed), true },
	{ "kept", sweep_read_number, offsetof(struct sweep_result, kept), true },
	{ "failed", sweep_read_number, offsetof(struct sweep_result, failed), true },
};

static void sweep_judge(struct worker *w, int status)
{
	struct sweep_result x = { 0 };
	struct json_reader r;
	bool is_good;

	json_read_init(&r, buf_text(&w->sweep.text), w->sweep.text.len, MAX_OUTPUT);
	JSON_READ_FIELDS(&r, fields, &x);
	json_read_end(&r);
	is_good = !r.wrong && !w->sweep.text.failed && WIFEXITED(status) &&
		  WEXITSTATUS(status) == 0 && x.failed == 0;
	if (!r.wrong && x.removed > 0)
		w->metrics.swept += (uint64_t)x.removed;
	json_reader_done(&r);
	/* Once, and again when there are more. */
	if (is_good && x.kept > w->sweep.kept)
		worker_warn(w,
			"%" PRId64 " expired sessions are kept: they have changes that were not "
			"applied; bawn session sweep names them, and --discard removes them",
			x.kept);
	w->sweep.kept = is_good ? x.kept : w->sweep.kept;
	if (!is_good)
		worker_warn(w, "a sweep failed, or could not remove everything");
	sweep_settle(w, x.failed > 0 ? (uint64_t)x.failed : !is_good);
}

static void worker_hear_sweep(struct worker *w)
{
	char bytes[4096];
	int status = 0;
	ssize_t n = read(w->sweep.output, bytes, sizeof(bytes));

	if (n > 0) {
		buf_add(&w->sweep.text, bytes, (size_t)n);
		return;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	close(w->sweep.output);
	w->sweep.output = -1;
	while (waitpid(w->sweep.pid, &status, 0) < 0 && errno == EINTR)
		;
	w->sweep.pid = 0;
	sweep_judge(w, status);
	buf_done(&w->sweep.text);
}

static void worker_end_sweep(struct worker *w)
{
	if (!w->sweep.pid)
		return;
	kill(w->sweep.pid, SIGTERM);
	while (waitpid(w->sweep.pid, NULL, 0) < 0 && errno == EINTR)
		;
	w->sweep.pid = 0;
	close(w->sweep.output);
	w->sweep.output = -1;
	buf_done(&w->sweep.text);
}

#define LOOK_MS 250  /* between two looks at sessions, however much happens */
#define LAST_MS 5000 /* that a store which does not answer is waited for at the end */

/* --- one round --- */

static unsigned count_runs(const struct worker *w)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->settings->slots; i++)
		n += w->slots[i].step != WORKER_IDLE;
	return n;
}

static void worker_end_runs(struct worker *w)
{
	for (unsigned i = 0; i < w->settings->slots; i++)
		worker_end_slot(w, &w->slots[i], WORKER_GOING);
}

static void kill_runs(struct worker *w)
{
	worker_end_runs(w);
	for (unsigned i = 0; i < w->settings->slots; i++)
		if (worker_is_busy(&w->slots[i]))
			w->slots[i].kill_ns = clock_ns();
}

static void hear_signal(struct worker *w)
{
	struct signalfd_siginfo got;

	if (read(w->signals, &got, sizeof(got)) != (ssize_t)sizeof(got))
		return;
	if (w->is_going) {
		kill_runs(w);
		w->drain_ns = 0;
		return;
	}
	worker_tell(w, "going, when what runs has ended: %u", count_runs(w));
	w->is_going = true;
	/* Others may take what is queued for sessions of ours. */
	w->self.slots = 0;
	worker_renew(w);
	w->drain_ns = clock_ns() + w->settings->drain_ms * NS_PER_MS;
}

static void hear_store(struct worker *w)
{
	struct err e = { 0 };
	int r = store_hear(w->store, &e);

	if (r < 0)
		worker_note_failure(w, "hear from the store", r, &e);
	w->may_have_work = true;
	if (!w->look_ns)
		w->look_ns = clock_ns() + LOOK_MS * NS_PER_MS;
}

/* What is due by the clock. */
static void do_what_is_due(struct worker *w)
{
	uint64_t now = clock_ns();

	worker_fence(w);
	if (now >= w->renew_ns)
		worker_renew(w);
	if (w->look_ns && now >= w->look_ns)
		worker_look_at_sessions(w);
	if (w->sweep_ns && now >= w->sweep_ns && !w->is_going)
		worker_begin_sweep(w);
	if (w->metrics_ns && now >= w->metrics_ns)
		worker_write_metrics(w);
	if (w->drain_ns && now >= w->drain_ns) {
		w->drain_ns = 0;
		worker_end_runs(w);
	}
	for (unsigned i = 0; i < w->settings->slots; i++) {
		struct worker_slot *slot = &w->slots[i];

		if (!slot->kill_ns || now < slot->kill_ns)
			continue;
		slot->kill_ns = 0;
		slot->is_doomed = true;
		if (slot->pidfd >= 0)
			syscall(SYS_pidfd_send_signal, slot->pidfd, SIGKILL, NULL, 0);
	}
}

static void worker_sooner(uint64_t *when, uint64_t other)
{
	if (other && other < *when)
		*when = other;
}

static int worker_wait_ms(const struct worker *w)
{
	uint64_t now = clock_ns(), when = w->renew_ns, ms;

	worker_sooner(&when, w->look_ns);
	worker_sooner(&when, w->is_going ? 0 : w->sweep_ns);
	worker_sooner(&when, w->drain_ns);
	worker_sooner(&when, w->metrics_ns);
	for (unsigned i = 0; i < w->settings->slots; i++)
		worker_sooner(&when, w->slots[i].kill_ns);
	ms = when <= now ? 0 : (when - now) / NS_PER_MS + 1;
	return ms > 60000 ? 60000 : (int)ms;
}

enum {
	AT_SIGNALS,
	AT_STORE,
	AT_WARDEN,
	AT_WARDENS_END,
	AT_SWEEP,
	AT_MOUNTS,
	AT_SLOTS
};

static void worker_wait_for_all(struct worker *w, struct pollfd *fds)
{
	const int first[AT_SLOTS] = { w->signals, w->is_cut ? -1 : store_wait_fd(w->store),
		w->warden, w->warden_pidfd, w->sweep.output, w->mounts };
	unsigned slots = w->settings->slots;

	for (unsigned i = 0; i < AT_SLOTS; i++)
		fds[i] = (struct pollfd){ .fd = first[i], .events = POLLIN };
	for (unsigned i = 0; i < slots; i++) {
		fds[AT_SLOTS + 2 * i] =
			(struct pollfd){ .fd = w->slots[i].channel, .events = POLLIN };
		fds[AT_SLOTS + 2 * i + 1] =
			(struct pollfd){ .fd = w->slots[i].pidfd, .events = POLLIN };
	}
	if (poll(fds, AT_SLOTS + 2 * slots, worker_wait_ms(w)) < 0)
		for (unsigned i = 0; i < AT_SLOTS + 2 * slots; i++)
			fds[i].revents = 0;
}

static void do_round(struct worker *w, struct pollfd *fds)
{
	worker_wait_for_all(w, fds);
	/* First of all: whatever we hear, we may have slept for long. */
	worker_fence(w);
	if (fds[AT_SIGNALS].revents)
		hear_signal(w);
	for (unsigned i = 0; i < w->settings->slots; i++) {
		struct worker_slot *slot = &w->slots[i];

		if (fds[AT_SLOTS + 2 * i].revents && slot->channel >= 0)
			worker_hear_runner(w, slot);
		/* What it said last is heard before. */
		else if (fds[AT_SLOTS + 2 * i + 1].revents && slot->pidfd >= 0)
			worker_bury_runner(w, slot);
	}
	if (fds[AT_WARDEN].revents)
		worker_hear_warden(w);
	if (fds[AT_WARDENS_END].revents) {
		err_set(&w->failure, ERR_SYS, ECHILD,
			"cannot go on: the worker's warden was ended");
		w->is_ended = true;
	}
	if (fds[AT_STORE].revents)
		hear_store(w);
	if (fds[AT_SWEEP].revents)
		worker_hear_sweep(w);
	if (fds[AT_MOUNTS].revents)
		worker_hear_mounts(w);
	do_what_is_due(w);
	worker_take(w);
}

static bool is_done(const struct worker *w)
{
	if (w->is_ended)
		return true;
	if (count_runs(w) > 0 || (w->is_cut && !w->is_going))
		return false;
	return w->is_going || (w->settings->is_once && !w->may_have_work);
}

/* --- the beginning and the end --- */

static int worker_open_signals(struct worker *w, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGHUP, SIG_IGN);
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return w->signals < 0 ? err_sys(e, errno, "cannot receive signals") : 0;
}

static int count_other(void *of, const struct store_worker *x)
{
	*(uint64_t *)of += x->is_alive && x->slots > 0;
	return 0;
}

/* Whoever starts one on two machines sees here that both have the same store. */
static void say_hello(struct worker *w)
{
	uint64_t workers = 0;
	struct err e = { 0 };

	if (store_each_worker(w->store, count_other, &workers, &e) < 0)
		worker_note_failure(w, "list the workers", -e.num, &e);
	else
		worker_warn(w, "worker %s: %u slot%s; store %s; workers of this store: %llu",
			w->self.name, w->self.slots, w->self.slots == 1 ? "" : "s",
			store_name(w->store), (unsigned long long)workers);
}

static int worker_begin(struct worker *w, struct err *e)
{
	const struct worker_settings *s = w->settings;
	int r = session_root_id(s->root, w->self.place, e);

	snprintf(w->self.name, sizeof(w->self.name), "%s", s->name);
	(void)gethostname(w->self.host, sizeof(w->self.host) - 1);
	w->self.slots = s->slots;
	w->self.lease_ms = (int64_t)s->lease_ms;
	if (r == 0 && s->metrics)
		r = metrics_write(&w->metrics, s->metrics, e);
	if (r == 0)
		r = worker_start_warden(s, w->shared, &w->warden, &w->warden_pidfd, e);
	if (r == 0)
		r = worker_open_mounts(w, e);
	if (r == 0)
		r = worker_open_signals(w, e);
	if (r == 0)
		r = s->open_store(&w->store, e);
	if (r == 0)
		r = store_listen(w->store, e);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < s->slots; i++)
		worker_start_runner(w, &w->slots[i]);
	worker_renew(w);
	say_hello(w);
	if (s->sweep_ms)
		w->sweep_ns = clock_ns() + s->sweep_ms * NS_PER_MS;
	return 0;
}

/* The warden is gone, or there are no processes: what runs is ended, and that is written down. */
static void worker_give_up(struct worker *w)
{
	for (unsigned i = 0; i < w->settings->slots; i++) {
		struct worker_slot *slot = &w->slots[i];

		if (!worker_is_busy(slot))
			continue;
		if (slot->pidfd >= 0)
			syscall(SYS_pidfd_send_signal, slot->pidfd, SIGKILL, NULL, 0);
		worker_fail(w, slot, &w->failure);
	}
}

static int say_goodbye(struct worker *w, struct err *e)
{
	uint64_t until = clock_ns() + LAST_MS * NS_PER_MS;
	int r;

	for (size_t i = 0; i < w->held_count; i++)
		worker_drop_mount(w, &w->held[i]);
	while ((w->is_cut || count_runs(w)) && clock_ns() < until) {
		struct pollfd second_signal = { .fd = w->signals, .events = POLLIN };

		worker_renew(w);
		if (w->is_cut && poll(&second_signal, 1, 200) > 0)
			break;
	}
	if (w->is_cut || count_runs(w))
		return err_set(e, ERR_SYS, EPIPE,
			"cannot report %u runs: the store does not answer, and their leases last "
			"until they expire",
			count_runs(w));
	r = store_remove_worker(w->store, w->self.name, e);
	return r;
}

static void end_processes(struct worker *w)
{
	siginfo_t unused;

	worker_end_sweep(w);
	for (unsigned i = 0; i < w->settings->slots; i++) {
		struct worker_slot *slot = &w->slots[i];

		store_taken_done(&slot->taken);
		worker_letter_done(&slot->letter);
		worker_letter_done(&slot->packed);
		if (slot->channel >= 0)
			close(slot->channel);
		if (slot->pidfd >= 0)
			close(slot->pidfd);
	}
	if (w->warden >= 0)
		close(w->warden);
	if (w->warden_pidfd >= 0) {
		waitid(P_PIDFD, (id_t)w->warden_pidfd, &unused, WEXITED);
		close(w->warden_pidfd);
	}
	if (w->signals >= 0)
		close(w->signals);
	if (w->mounts >= 0)
		close(w->mounts);
}

static int work(struct worker *w, struct pollfd *fds, struct err *e)
{
	int r = worker_begin(w, e);

	if (r < 0)
		return r;
	while (!is_done(w))
		do_round(w, fds);
	if (w->is_ended)
		worker_give_up(w);
	r = say_goodbye(w, e);
	worker_write_metrics(w);
	if (w->failure.kind != ERR_NONE) {
		*e = w->failure;
		r = -e->num;
	}
	return r;
}

static struct worker_shared *share_memory(void)
{
	size_t size = sizeof(struct worker_shared);
	/* cppcheck-suppress invalidFunctionArg ; -1 is what mmap(2) asks for here */
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	return page;
}

int worker_run(const struct worker_settings *s, struct err *e)
{
	struct worker w = { .settings = s,
		.warden = -1,
		.warden_pidfd = -1,
		.signals = -1,
		.mounts = -1,
		.sweep.output = -1 };
	own(arena) struct arena a = { .max = SIZE_MAX / 2 };
	struct pollfd *fds = arena_array(&a, AT_SLOTS + 2 * (size_t)s->slots, sizeof(*fds));
	int r;

	w.slots = arena_array(&a, s->slots, sizeof(*w.slots));
	w.shared = share_memory();
	if (!fds || !w.slots || !w.shared)
		return err_set(e, ERR_SYS, ENOMEM, "cannot have %u slots: out of memory", s->slots);
	for (unsigned i = 0; i < s->slots; i++)
		w.slots[i] = (struct worker_slot){
			.number = i, .channel = -1, .pidfd = -1, .letter.fd = -1, .packed.fd = -1
		};
	r = work(&w, fds, e);
	end_processes(&w);
	store_close(w.store);
	free(w.held);
	munmap(w.shared, sizeof(*w.shared));
	return r;
}
