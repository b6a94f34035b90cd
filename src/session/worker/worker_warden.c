/*
 * worker_runner - does one run after the other, and what has to be done to workspaces.
 *
 * Runs as:     the operator; a process of its own, forked from the warden.
 * Enters with: a channel to the coordinator. No store, and nothing that opens one.
 * Must not:    know or decide whose session it is: it asks before anything of a run is signed.
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
#include "keeper/keeper.h"
#include "run/run_session.h"
#include "session/folder/session.h"
#include "session/worker/worker_inside.h"
#include "wire/wire.h"

#define LEFT_MS 4000 /* for what another left running to end */

struct runner {
	const struct worker_settings *settings;
	int channel;
	struct run_pool pool; /* cages that wait for the next run */
};

/* Without an answer nobody hears of the result: the coordinator sees the end of this process. */
static void runner_answer(const struct runner *r, struct worker_answer *a,
	const struct worker_part *more, size_t count)
{
	struct worker_part parts[WORKER_MAX_PARTS] = { { a, sizeof(*a) } };

	/* The store keeps one text. */
	err_join_hint(&a->error);
	for (size_t i = 0; i < count; i++)
		parts[i + 1] = more[i];
	if (worker_send(r->channel, WORKER_DONE, parts, count + 1) < 0)
		_exit(1);
}

/* --- a run --- */

struct one_run {
	struct runner *runner;
	uint64_t hits, misses; /* of the pool, before it */
	int hold;
	struct tail printed[2];
	bool is_done;
};

static int is_still_ours(void *of, struct err *e)
{
	const struct runner *r = ((struct one_run *)of)->runner;
	own(worker_letter) struct worker_letter l = { .fd = -1 };

	if (cage_is_broken("ask"))
		return 0;
	if (worker_send(r->channel, WORKER_ASK, NULL, 0) == 0 &&
		worker_receive(r->channel, &l) == 0 && l.kind == WORKER_YES)
		return 0;
	return err_set(e, ERR_REFUSED, ESTALE,
		"cannot keep the result: the lease of the session was lost while the command ran");
}

/* One that came when the run before had just ended is not for the next. */
static void forget_signals(void)
{
	const struct timespec now = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	while (sigtimedwait(&set, NULL, &now) == SIGTERM)
		;
}

/* Before a cage is made for the next run: it would have a copy, and keep the session mounted. */
static void runner_let_go(struct one_run *one)
{
	if (one->hold >= 0)
		close(one->hold);
	one->hold = -1;
}

static void tell_end(void *of, struct run_result *x)
{
	struct one_run *one = of;
	const struct run_pool *pool = &one->runner->pool;
	own(buf) struct buf out = { .max = STORE_MAX_OUTPUT }, err = { .max = STORE_MAX_OUTPUT };
	struct worker_answer a = {
		.state = x->state, .status = x->status, .counted = x->counted, .error = x->error
	};

	a.counted.pool_hits = pool->hits - one->hits;
	a.counted.pool_misses = pool->misses - one->misses;
	/* Without it the session is mounted anew by its next run. */
	if (one->hold >= 0)
		(void)worker_send_note(one->runner->channel, WORKER_HOLD, 0, 0, one->hold);
	runner_let_go(one);
	tail_print(&one->printed[0], &out);
	tail_print(&one->printed[1], &err);
	runner_answer(one->runner, &a,
		(struct worker_part[]){ { buf_text(&x->record), x->record.len + 1 },
			{ buf_text(&out), out.len }, { buf_text(&err), err.len } },
		3);
	one->is_done = true;
}

/* What was queued by another bawn, or by something else, is read here and refused. */
static void runner_run(struct one_run *one, const struct run_job *job, const char *text)
{
	own(run_request) struct run_request request = { 0 };
	struct run_result result = { .state = STORE_FAILED, .status = RUN_FAILED };
	struct run_job asked = *job;

	if (run_request_read(text, strlen(text), &request, &result.error) < 0) {
		metrics_count_run(&result.counted, METRICS_FAILED, 0);
		tell_end(one, &result);
		return;
	}
	asked.request = &request;
	forget_signals();
	run_in_session(&asked, &result);
	buf_done(&result.record);
}

static void do_run(struct runner *r, const struct worker_letter *l, const struct worker_head *head)
{
	const struct worker_settings *s = r->settings;
	struct one_run one = { .runner = r,
		.hits = r->pool.hits,
		.misses = r->pool.misses,
		.hold = -1,
		.printed = { { .max = STORE_MAX_OUTPUT }, { .max = STORE_MAX_OUTPUT } } };
	const char *spec = worker_text(l, 1), *project = worker_text(l, 2);
	const char *request = worker_text(l, 3);
	own(arena) struct arena texts = { .max = 2 * l->map_size + 64 };
	struct store_session x = head->session;
	struct run_job job = { .session = &x,
		.run = head->run,
		.worker = head->worker,
		.token = x.token,
		.command_line = s->command_line,
		.command_line_size = s->command_line_size,
		.sink = s->sink,
		.root = s->root,
		.printed = { &one.printed[0], &one.printed[1] },
		.hold = head->wants_mount ? &one.hold : NULL,
		.is_still_ours = is_still_ours,
		.done = tell_end,
		.of = &one,
		.pool = &r->pool };

	if (!spec || !project || !request)
		_exit(1);
	x.spec = arena_copy(&texts, spec, strlen(spec));
	x.project = arena_copy(&texts, project, strlen(project));
	if (!x.spec || !x.project)
		_exit(1);
	runner_run(&one, &job, request);
	/* Nobody would hear of it. */
	if (!one.is_done)
		_exit(1);
	runner_let_go(&one);
	tail_done(&one.printed[0]);
	tail_done(&one.printed[1]);
}

/* --- workspaces --- */

/* A workspace that has the lease's number is the lease's: it was made, and nobody heard of it. */
static struct err failure_of(int failure, const struct err *e)
{
	struct err none = { 0 };

	if (failure == 0 || failure == -EEXIST)
		return none;
	if (e->kind == ERR_NONE)
		err_set(&none, ERR_SYS, -failure,
			"cannot use the workspace of the session: it does not exist");
	return e->kind == ERR_NONE ? none : *e;
}

/*
 * Commands that share a cage outlive who started them, also a worker; its successor has another
 * workspace, and they would go on beside it. On this machine: elsewhere they write to a workspace
 * that nobody uses any more.
 */
static void end_left(const struct runner *r, const struct worker_head *head)
{
	struct err e;
	own_fd int workspace =
		session_open_workspace(r->settings->root, head->session.id, head->from, &e);

	if (workspace >= 0 && !cage_is_broken("left") &&
		faccessat(workspace, "cage", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		(void)keeper_stop_workspace(workspace, LEFT_MS, &e);
}

static void do_move(struct runner *r, const struct worker_letter *l, const struct worker_head *head)
{
	struct worker_answer a = { 0 };
	bool is_copied;
	int failure;

	end_left(r, head);
	failure = session_move_workspace(r->settings->root, head->session.id, head->from,
		head->session.workspace, &is_copied, &a.error);

	(void)l;
	a.error = failure_of(failure, &a.error);
	runner_answer(r, &a, NULL, 0);
}

static void do_unpack(
	struct runner *r, const struct worker_letter *l, const struct worker_head *head)
{
	struct worker_answer a = { 0 };
	int failure;

	if (l->count != 2)
		_exit(1);
	failure = session_unpack(r->settings->root, head->session.id, head->session.workspace,
		l->parts[1].bytes, l->parts[1].size, &a.error);
	a.error = failure_of(failure, &a.error);
	runner_answer(r, &a, NULL, 0);
}

static void do_pack(struct runner *r, const struct worker_letter *l, const struct worker_head *head)
{
	struct worker_answer a = { 0 };
	own(buf) struct buf bytes = { .max = STORE_MAX_SAVED };
	own_fd int workspace = session_open_workspace(
		r->settings->root, head->session.id, head->session.workspace, &a.error);

	(void)l;
	if (workspace >= 0)
		(void)session_pack(workspace, &bytes, &a.error);
	if (a.error.kind == ERR_NONE && workspace < 0)
		err_set(&a.error, ERR_SYS, -workspace,
			"cannot use the workspace of the session: it does not exist any more");
	runner_answer(r, &a, (struct worker_part[]){ { buf_text(&bytes), bytes.len } }, 1);
}

/* --- the process --- */

static void (*const deeds[WORKER_KIND_COUNT])(
	struct runner *, const struct worker_letter *, const struct worker_head *) = {
	[WORKER_RUN] = do_run,
	[WORKER_MOVE] = do_move,
	[WORKER_UNPACK] = do_unpack,
	[WORKER_PACK] = do_pack,
};

/* Does what comes over the channel, until it ends. */
static _Noreturn void worker_be_runner(const struct worker_settings *s, int channel)
{
	struct runner r = { .settings = s, .channel = channel };

	for (;;) {
		struct worker_letter l;
		const struct worker_head *head;

		if (worker_receive(channel, &l) < 0) {
			run_pool_done(&r.pool);
			_exit(0);
		}
		head = worker_struct(&l, 0, sizeof(*head));
		if (!head || !deeds[l.kind])
			_exit(1);
		deeds[l.kind](&r, &l, head);
		worker_letter_done(&l);
	}
}

/* --- the warden --- */

/*
 * worker_warden - starts runners, and ends them in time.
 *
 * Runs as:     the operator; a process of its own, forked before the store is opened.
 * Enters with: a channel to the coordinator, and memory shared with it.
 * Must not:    wait for the coordinator. That may be stopped, or hang on a store that is cut off;
 *              its runs end nevertheless before another worker may take their sessions.
 */

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
