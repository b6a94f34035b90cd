/*
 * keeper_notify - hears of the calls that the filter of a cage refuses, and answers them.
 *
 * Runs as:     the keeper.
 * Enters with: a listener, from a cage whose filter stands.
 * Must not:    let a call through that the plain program refuses. What is answered is what that
 *              one says, and whatever goes wrong here, the call is refused: without an answer it
 *              waits, and without us the kernel says ENOSYS.
 *
 * Where writes are watched, calls come here that the plain program allows. They go on, whatever is
 * found, and the kernel judges them as it does without us. If they cannot be answered any more, no
 * file could be written in the cage: then the run is ended.
 *
 * All that is learnt of a dialer is a hint: its name is its own choice, and it may be gone by the
 * time it is looked at. Nothing is decided by it. A dialer waits until it is answered, and so a
 * flood of calls is as slow as we like: it waits for us, and we do not work for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "keeper/keeper_inside.h"

/* --- writes --- */

/*
 * A write that the filter reports, made by a process that waits for its answer. The paths are read
 * from its memory; what they are relative to, from /proc. Nothing is decided by it and nothing that
 * it names is opened: the kernel refuses the write in any case, and by the time it reads the path
 * that may be another one. No link is followed: a process that wants to stay unseen can.
 */

/* --- what is named --- */

/* A text in its memory. In two pieces, since nothing may be mapped where the second begins. */
static bool writes_read_text(pid_t pid, uint64_t address, char ret[static PATH_MAX])
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), first = page - address % page;
	struct iovec here = { ret, PATH_MAX }, there[2] = { 0 };
	ssize_t n;

	if (first > PATH_MAX)
		first = PATH_MAX;
	memcpy(&there[0].iov_base, &address, sizeof(address));
	there[0].iov_len = first;
	address += first;
	memcpy(&there[1].iov_base, &address, sizeof(address));
	there[1].iov_len = PATH_MAX - first;
	n = process_vm_readv(pid, &here, 1, there, there[1].iov_len ? 2 : 1, 0);
	return n > 0 && memchr(ret, '\0', (size_t)n);
}

/* The folder that a path begins at: its own, or that of a descriptor. */
static bool read_folder(pid_t pid, int at, char ret[static PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
	if (at != AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, at);
	n = readlink(link, ret, PATH_MAX - 1);
	ret[n < 0 ? 0 : n] = '\0';
	return ret[0] == '/';
}

bool keeper_join_path(const char *folder, const char *path, char ret[static PATH_MAX])
{
	const char *parts[] = { path[0] == '/' ? "" : folder, path };
	size_t len = 0;

	for (size_t i = 0; i < 2; i++) {
		for (const char *s = parts[i]; *s;) {
			size_t n = strcspn(s, "/");

			if (n == 2 && s[0] == '.' && s[1] == '.') {
				while (len > 0 && ret[--len] != '/')
					continue;
			} else if (n > 0 && !(n == 1 && s[0] == '.')) {
				if (len + 1 + n >= PATH_MAX)
					return false;
				ret[len++] = '/';
				memcpy(ret + len, s, n);
				len += n;
			}
			s += n + (s[n] == '/');
		}
	}
	if (len == 0)
		ret[len++] = '/';
	ret[len] = '\0';
	return true;
}

static bool writes_read_path(
	const struct seccomp_notif *call, int at, int path, char ret[static PATH_MAX])
{
	char text[PATH_MAX], folder[PATH_MAX] = "";
	pid_t pid = (pid_t)call->pid;

	if (!writes_read_text(pid, call->data.args[path], text) || !text[0])
		return false;
	if (text[0] != '/' &&
		!read_folder(pid, at < 0 ? AT_FDCWD : (int)call->data.args[at], folder))
		return false;
	return keeper_join_path(folder, text, ret);
}

/* --- whether it is protected --- */

/* What is held and would be touched by a write to `path` of its tree, or NULL. */
static const char *find_held(
	const struct keeper_protect *h, const char *path, const struct filter_watched *w)
{
	for (size_t i = 0; i < h->count; i++) {
		const struct cage_protected *held = &h->items[i];

		if (held->kind == CAGE_HELD_THERE && w->only_makes && str_eq(path, held->path))
			return NULL; /* as on the host */
		if (held->kind != CAGE_HELD_WAY && str_path_within(path, held->path))
			return held->path;
		if (w->takes_away && str_path_within(held->path, path))
			return path;
	}
	return NULL;
}

/* The place of a tree in the cage; false where there is none. */
static bool writes_find_place(const struct keeper *k, size_t which, char ret[static PATH_MAX])
{
	const struct plan *p = k->q->plan;

	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if ((op->kind == PLAN_PROJECT || op->kind == PLAN_GIT) &&
			cage_layer_of(op) == which)
			return cage_fill_in_place(&k->start, op, ret, PATH_MAX);
	}
	return false;
}

/* Puts what is said of it into `ret`: of git's folder, which is elsewhere, the whole path. */
static bool writes_is_held(const struct keeper *k, const char *path, const struct filter_watched *w,
	char ret[static RECORD_PATH_SIZE])
{
	char place[PATH_MAX];

	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++) {
		const char *inside, *held;
		size_t n;

		if (!k->protects[i].count || !writes_find_place(k, i, place) ||
			!str_path_within(path, place))
			continue;
		n = strlen(place);
		if (!path[n])
			continue;
		inside = path + n + (n > 1);
		held = find_held(&k->protects[i], inside, w);
		if (!held)
			continue;
		if (i == CAGE_LAYER_PROJECT)
			path = strlen(inside) < RECORD_PATH_SIZE ? inside : held;
		snprintf(ret, RECORD_PATH_SIZE, "%.*s", RECORD_PATH_SIZE - 1, path);
		return true;
	}
	return false;
}

/* Does a call that waits write to what is protected? To what, as far as that can be seen. */
static bool keeper_writes_see(
	const struct keeper *k, const struct seccomp_notif *call, char ret[static RECORD_PATH_SIZE])
{
	const struct filter_watched *w = filter_find_watched(&call->data);
	char path[PATH_MAX];

	for (size_t i = 0; w && i < COUNT_OF(w->places); i++)
		if (w->places[i].path >= 0 &&
			writes_read_path(call, w->places[i].at, w->places[i].path, path) &&
			writes_is_held(k, path, w, ret))
			return true;
	return false;
}

#define TURN_NS  ((uint64_t)10000000)
#define AT_ONCE  256                   /* answers in one turn */
#define PASSED   1024                  /* writes that go on, before others are heard */
#define NAMED_NS ((uint64_t)100000000) /* how long a process is taken for what it was */

static void keeper_notify_init(struct keeper *k)
{
	k->notify = (struct keeper_notify){ .listener = -1 };
}

static void keeper_notify_done(struct keeper *k)
{
	struct keeper_notify *n = &k->notify;

	if (n->listener >= 0)
		close(n->listener);
	filter_made_done(&n->telling);
	n->listener = -1;
}

/* --- before the start --- */

/* The kernel's may be larger than those we were built with. */
static bool notify_fit(void)
{
	struct seccomp_notif_sizes sizes = { 0 };

	return syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) == 0 &&
	       sizes.seccomp_notif <= sizeof(union keeper_call) &&
	       sizes.seccomp_notif_resp <= sizeof(union keeper_answer);
}

/* Under a filter that refuses it, who sends the listener would wait for its own answer. */
static bool can_be_sent(const struct filter *f)
{
	const uint64_t arguments[6] = { 0, 1, MSG_NOSIGNAL };

	return filter_allows(f, SYS_sendmsg, arguments);
}

/* Notes why something is not told, where the plan has it. */
static void notify_note(const struct keeper *k, const char *what, const char *why)
{
	const struct plan_op *op = plan_find(k->q->plan, PLAN_TELL, what);

	if (op)
		record_note(k->record, (uint32_t)(op - plan_ops(k->q->plan)), why);
}

static int notify_watch(struct keeper *k)
{
	int r;

	if (!plan_find(k->q->plan, PLAN_TELL, PLAN_TELL_WRITES))
		return 0;
	r = filter_watch_writes(&k->notify.telling);
	if (r == -E2BIG)
		notify_note(k, PLAN_TELL_WRITES,
			"writes to what is protected are not told: the profile is too long for it");
	k->notify.is_watching = r == 0;
	return r == -E2BIG ? 0 : r;
}

/* Makes the filter that tells, if the plan wants one; that there can be none is in the record. */
static int keeper_notify_make(struct keeper *k, struct err *e)
{
	const char *why = NULL;

	if (!plan_find(k->q->plan, PLAN_TELL, PLAN_TELL_DENIED))
		return 0;
	if (!notify_fit())
		why = "cannot report what the system-call filter denies: the kernel has no listeners";
	else if (!can_be_sent(&k->q->filter))
		why = "cannot report what the system-call filter denies: the profile does not allow sendmsg";
	if (why) {
		notify_note(k, PLAN_TELL_DENIED, why);
		notify_note(k, PLAN_TELL_WRITES, why);
		return 0;
	}
	if (filter_make_telling(&k->q->filter, &k->notify.telling) < 0 || notify_watch(k) < 0)
		return err_set(
			e, ERR_SYS, ENOMEM, "cannot make the system-call filter: out of memory");
	k->start.telling = k->notify.telling.code;
	k->start.telling_count = k->notify.telling.count;
	return 0;
}

/* --- who it was --- */

static struct keeper_dialer *dialer_of(struct keeper_notify *n, uint32_t pid)
{
	return &n->dialers[pid % COUNT_OF(n->dialers)];
}

/* Before it is answered, while it waits: a number that is another's by now is not valid. */
static void notify_look_at(struct keeper_notify *n, const struct seccomp_notif *call)
{
	struct keeper_dialer *c = dialer_of(n, call->pid);
	uint64_t now = clock_ns(), id = call->id;
	char path[32];
	ssize_t size;

	if (c->pid == call->pid && now - c->seen_ns < NAMED_NS)
		return;
	*c = (struct keeper_dialer){ .pid = call->pid, .seen_ns = now };
	snprintf(path, sizeof(path), "/proc/%u/comm", call->pid);
	size = file_read_small(path, c->program, sizeof(c->program));
	if (size <= 0 || ioctl(n->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
		c->program[0] = '\0';
	c->program[strcspn(c->program, "\n")] = '\0';
}

/* --- what is said of it --- */

static void notify_tell(const struct keeper *k, const struct record_denial *row)
{
	struct log *log = k->q->log;

	keeper_say_denied(k->q, k->record, row);
	if (!log)
		return;
	record_print_denial(row, log_begin(log, record_denial_type(row)));
	log_end(log);
}

/* With an error, or with the path of a write. */
static void notify_count(
	struct keeper *k, const struct seccomp_notif *call, int error, const char *path)
{
	const struct keeper_dialer *c = dialer_of(&k->notify, call->pid);
	struct record_denial d = {
		.number = (uint32_t)call->data.nr, .error = error, .pid = (int)call->pid
	};
	const struct record_denial *row;
	bool is_new;

	_Static_assert(sizeof(d.arguments) == sizeof(call->data.args), "the same");
	memcpy(d.arguments, call->data.args, sizeof(d.arguments));
	snprintf(d.program, sizeof(d.program), "%s", c->program);
	snprintf(d.path, sizeof(d.path), "%s", path);
	row = record_count_denial(k->record, &d, &is_new);
	if (row && is_new)
		notify_tell(k, row);
}

/* --- answers --- */

/*
 * Is there a call that waits? Nobody else takes it, so that to receive it does not wait. What the
 * cage says comes first: that the command has started, before what it is denied.
 */
static bool is_asked(const struct keeper *k)
{
	struct pollfd fds[] = { { .fd = k->notify.listener, .events = POLLIN },
		{ .fd = k->process.channel, .events = POLLIN } };

	return poll(fds, 2, 0) > 0 && fds[0].revents & POLLIN && !fds[1].revents;
}

/*
 * Nobody is answered any more. From here on the kernel refuses what is told, and says ENOSYS; but
 * not where that would be every write: who waits then does so until the run is ended.
 */
static void notify_give_up(struct keeper *k, int num)
{
	struct keeper_notify *n = &k->notify;
	char why[160];

	n->failure = num;
	if (n->is_watching)
		return;
	close(n->listener);
	n->listener = -1;
	snprintf(why, sizeof(why), "cannot report any more what the system-call filter denies: %s",
		strerror(num));
	notify_note(k, PLAN_TELL_DENIED, why);
}

/* True: it has its answer. Who was killed or interrupted meanwhile has none, or comes again. */
static bool notify_send_answer(struct keeper *k, const struct seccomp_notif *call, int error)
{
	union keeper_answer answer = { .answer = { .id = call->id, .error = -error } };
	int r;

	if (!error)
		answer.answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	do
		r = ioctl(k->notify.listener, SECCOMP_IOCTL_NOTIF_SEND, &answer.answer);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno != ENOENT)
		notify_give_up(k, errno); /* or it would wait for ever */
	return r == 0;
}

/* A call that is refused: with what the plain program says. */
static void notify_refuse(struct keeper *k, const struct seccomp_notif *call, uint32_t action)
{
	int error = filter_is_notifying(action) ? (int)(action & SECCOMP_RET_DATA) : EPERM;

	notify_look_at(&k->notify, call);
	if (notify_send_answer(k, call, error))
		notify_count(k, call, error, "");
	k->notify.turn.done++;
}

/* A write that is allowed. What was read of another process, with the same number, is nothing. */
static void notify_let_go(struct keeper *k, const struct seccomp_notif *call)
{
	char path[RECORD_PATH_SIZE];
	uint64_t id = call->id;
	bool is_told = keeper_writes_see(k, call, path) &&
		       ioctl(k->notify.listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;

	if (is_told)
		notify_look_at(&k->notify, call);
	if (notify_send_answer(k, call, 0) && is_told)
		notify_count(k, call, 0, path);
	k->notify.turn.done += is_told;
}

/* One call, if there is one. */
static bool notify_answer_one(struct keeper *k)
{
	struct keeper_notify *n = &k->notify;
	union keeper_call room = { 0 };
	uint32_t action;
	int r;

	if (!is_asked(k))
		return false;
	r = ioctl(n->listener, SECCOMP_IOCTL_NOTIF_RECV, &room.call) < 0 ? errno : 0;
	if (keeper_has_started(k) && cage_is_broken("listener"))
		r = EIO;
	if (r) {
		/* It was killed meanwhile, or we were interrupted. */
		if (r != ENOENT && r != EINTR)
			notify_give_up(k, r);
		return false;
	}
	action = filter_answer(&k->q->filter, &room.call.data);
	if (n->is_watching && action == SECCOMP_RET_ALLOW)
		notify_let_go(k, &room.call);
	else
		notify_refuse(k, &room.call, action);
	return !n->failure;
}

/* How long nothing is answered, because too much was, or -1. */
static int keeper_notify_wait(const struct keeper *k)
{
	const struct keeper_notify *n = &k->notify;

	return n->listener < 0 ? -1 : keeper_turn_wait(&n->turn, AT_ONCE, TURN_NS);
}

static void keeper_notify_want(const struct keeper *k, struct pollfd *ret)
{
	const struct keeper_notify *n = &k->notify;
	bool is_full = keeper_turn_is_full(&n->turn, AT_ONCE, TURN_NS);

	ret->fd = is_full ? -1 : n->listener;
}

/*
 * Answers those that wait, but not too many. An error: nobody can be answered any more, and what
 * is allowed waits for answers too.
 */
static int keeper_notify_hear(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	struct keeper_notify *n = &k->notify;

	keeper_turn_renew(&n->turn, TURN_NS);
	for (int i = 0; i < PASSED && n->turn.done < AT_ONCE && notify_answer_one(k); i++)
		continue;
	if (n->failure && n->is_watching)
		return err_sys(
			e, n->failure, "cannot watch writes in the cage (audit.watch_protected)");
	/* Nobody is left under the filter, and nobody will be. */
	if (n->listener >= 0 && seen->revents & (POLLHUP | POLLERR) && !(seen->revents & POLLIN)) {
		close(n->listener);
		n->listener = -1;
	}
	return 0;
}

/* The cage has ended: says how often each call was denied. */
static void keeper_notify_end(struct keeper *k)
{
	struct log *log = k->q->log;

	for (size_t i = 0; i < k->record->denial_count; i++)
		if (k->record->denials[i].times > 1)
			notify_tell(k, &k->record->denials[i]);
	if (!log || !k->record->denials_untold)
		return;
	record_print_denials_untold(k->record, log_begin(log, RECORD_UNTOLD));
	log_end(log);
}

const struct keeper_part keeper_notify_part = {
	.init = keeper_notify_init,
	.take = { [KEEPER_PREPARE] = keeper_notify_make },
	.want = keeper_notify_want,
	.wait = keeper_notify_wait,
	.hear = keeper_notify_hear,
	.is_after_cage = true,
	.end = keeper_notify_end,
	.done = keeper_notify_done,
};
