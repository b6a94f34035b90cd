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
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/file.h"
#include "cage/cage_break.h"
#include "keeper/keeper_inside.h"

#define TURN_NS  ((uint64_t)10000000)
#define AT_ONCE  256                   /* answers in one turn */
#define PASSED   1024                  /* writes that go on, before others are heard */
#define NAMED_NS ((uint64_t)100000000) /* how long a process is taken for what it was */

void keeper_notify_init(struct keeper_notify *n)
{
	*n = (struct keeper_notify){ .listener = -1 };
}

void keeper_notify_done(struct keeper_notify *n)
{
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

int keeper_notify_make(struct keeper *k, struct err *e)
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

void keeper_notify_take(struct keeper *k, int fd)
{
	k->notify.listener = fd;
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

int keeper_notify_wait(const struct keeper_notify *n)
{
	return n->listener < 0 ? -1 : keeper_turn_wait(&n->turn, AT_ONCE, TURN_NS);
}

void keeper_notify_want(const struct keeper_notify *n, struct pollfd *ret)
{
	bool is_full = keeper_turn_is_full(&n->turn, AT_ONCE, TURN_NS);

	*ret = (struct pollfd){ .fd = is_full ? -1 : n->listener, .events = POLLIN };
}

int keeper_notify_hear(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	struct keeper_notify *n = &k->notify;

	if (n->listener < 0 || !seen->revents)
		return 0;
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

void keeper_notify_end(struct keeper *k)
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
