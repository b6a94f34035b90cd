/*
 * keeper_report - hears what bawn's own program tells from inside of the cage.
 *
 * Runs as:  the keeper.
 * Leaves:   events, and their number in the record. The socket is removed when the cage has ended.
 * Must not: wait; believe anything of it. Whoever is in the cage can send what it likes: so each
 *           message is looked at before it is an event, an event says that it was told from inside,
 *           there are no more of them than a run may have, and a flood is heard as slowly as we
 * like: the kernel has room for a few, and who sends more waits or is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/own.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

#define TURN_NS ((uint64_t)20000000)
#define AT_ONCE 32 /* in one turn */

static void keeper_report_init(struct keeper *k)
{
	k->reports = (struct keeper_report){ .socket = -1, .folder = -1 };
}

/* Root's cages run as another id; the folder is closed to everybody else. */
static int listen_in(int folder)
{
	own_fd int fd = wire_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (fd < 0)
		return fd;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" KEEPER_TOLD,
		folder);
	/* Another attempt at the same run may have left one. */
	unlinkat(folder, KEEPER_TOLD, 0);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		fchmodat(folder, KEEPER_TOLD, 0666, 0) < 0)
		return -errno;
	return take_fd(&fd);
}

/* Makes the socket, if the plan shows one. */
static int keeper_report_make(struct keeper *k, struct err *e)
{
	struct keeper_report *t = &k->reports;

	if (!plan_find_from(k->q->plan, PLAN_BIND, PLAN_ROOT_TOLD))
		return 0;
	t->folder = k->q->folder;
	t->socket = listen_in(t->folder);
	if (t->socket < 0)
		return err_sys(e, -t->socket, "cannot make a socket in the run's folder");
	return 0;
}

/* --- while it runs --- */

static void keeper_report_want(const struct keeper *k, struct pollfd *ret)
{
	const struct keeper_report *t = &k->reports;
	bool is_full = keeper_turn_is_full(&t->turn, AT_ONCE, TURN_NS);

	ret->fd = is_full ? -1 : t->socket;
}

/* How long nobody is heard, because too many came, or -1. */
static int keeper_report_wait(const struct keeper *k)
{
	const struct keeper_report *t = &k->reports;

	return t->socket < 0 ? -1 : keeper_turn_wait(&t->turn, AT_ONCE, TURN_NS);
}

static void report_note(struct keeper *k, const struct wire_report *told)
{
	struct record_report *counts = &k->record->told;
	struct log *log = k->q->log;

	counts->times[told->kind]++;
	if (k->reports.events == RECORD_MAX_TOLD) {
		counts->untold++;
		return;
	}
	k->reports.events++;
	if (!log)
		return;
	record_print_told(told, log_begin(log, wire_report_names[told->kind]));
	log_end(log);
}

/* One message, if there is one. What comes with it, such as descriptors, is not taken. */
static bool report_hear_one(struct keeper *k)
{
	struct wire_report told = { 0 };
	int r = wire_receive_message(k->reports.socket, &told, sizeof(told), NULL);

	if (r == 0 && wire_is_report(&told))
		report_note(k, &told);
	/* Of no size at all, which elsewhere is the end. */
	return r == 0 || r == -EBADMSG || r == -EPIPE;
}

/* Hears those that wait, but not too many. */
static int keeper_report_hear(struct keeper *k, const struct pollfd *seen, struct err *e)
{
	struct keeper_report *t = &k->reports;

	(void)seen, (void)e;
	keeper_turn_renew(&t->turn, TURN_NS);
	while (t->turn.done < AT_ONCE && report_hear_one(k))
		t->turn.done++;
	return 0;
}

/* The cage has ended, or there will be none: nobody is heard any more. */
static void keeper_report_end(struct keeper *k)
{
	struct keeper_report *t = &k->reports;

	if (t->socket < 0)
		return;
	/* What was told last: nobody is left who could tell more. */
	for (int i = 0; i < AT_ONCE && report_hear_one(k); i++)
		continue;
	if (k->record->told.untold && k->q->log) {
		record_print_blocked_untold(k->record, log_begin(k->q->log, RECORD_BLOCKED_UNTOLD));
		log_end(k->q->log);
	}
	unlinkat(t->folder, KEEPER_TOLD, 0);
	close(t->socket);
	keeper_report_init(k);
}

const struct keeper_part keeper_report_part = {
	.init = keeper_report_init,
	.take = { [KEEPER_OPEN] = keeper_report_make },
	.want = keeper_report_want,
	.wait = keeper_report_wait,
	.hear = keeper_report_hear,
	.is_after_cage = true,
	.end = keeper_report_end,
};
