/*
 * log - says what happened.
 *
 * Runs as:  the keeper, or a command of the operator's.
 * Leaves:   lines at the ends of the run's chain and of the state's, whole ones only.
 * Must not: write over what is there; go on after a failure, which would leave a hole that nobody
 *           sees.
 *
 * The text of an event is the same in both chains; its number and the digest are not.
 */
#include "proof/log/log.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "proof/log/log_inside.h"

/* What is said and not written takes no more: it is written then. */
#define MOST_WAITING ((size_t)256 << 10)

const char log_no_line[SHA256_HEX_SIZE] =
	"0000000000000000000000000000000000000000000000000000000000000000";

void log_init(struct log *l, int state, const char *run, const char *session)
{
	*l = (struct log){ .run = run,
		.session = session,
		.chain = -1,
		.state = state,
		.state_size = LOG_STATE_SIZE };
	buf_init(&l->event, LOG_LINE_SIZE - LOG_FRAME_SIZE);
	buf_init(&l->waiting, MOST_WAITING + LOG_LINE_SIZE);
	memcpy(l->tail.last, log_no_line, sizeof(l->tail.last));
}

void log_done(struct log *l)
{
	if (l->chain >= 0)
		close(l->chain);
	l->chain = -1;
	buf_done(&l->event);
	buf_done(&l->waiting);
}

int log_open_chain(struct log *l, int folder, struct err *e)
{
	int fd = log_open_file(folder, LOG_RUN_FILE, &l->tail);

	if (fd == -EBADMSG)
		return err_set(e, ERR_REFUSED, EBADMSG,
			"cannot append to the run's %s: it does not end with an event",
			LOG_RUN_FILE);
	if (fd < 0)
		return err_set(e, ERR_SYS, -fd, "cannot open the run's %s: %s", LOG_RUN_FILE,
			fd == -EPERM ? "it is not a plain file of yours that others cannot write to"
				     : strerror(-fd));
	if (l->chain >= 0)
		close(l->chain);
	l->chain = fd;
	return 0;
}

/* --- saying --- */

struct json *log_begin(struct log *l, const char *type)
{
	char text[CLOCK_TEXT_SIZE];
	struct timespec now;

	l->type = type;
	l->event.len = 0;
	l->event.failed = false;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_print(&now, text);
	json_init(&l->json, &l->event, 0);
	json_open_map(&l->json, NULL);
	json_text(&l->json, "time", text);
	json_text(&l->json, "type", type);
	json_text(&l->json, "run", l->run);
	json_text(&l->json, "session", l->session);
	return &l->json;
}

static bool log_is_over(const struct log *l)
{
	return (l->chain < 0 || l->is_chain_over) && (l->state < 0 || l->is_state_over);
}

void log_end(struct log *l)
{
	json_close_map(&l->json);
	if (l->event.failed) {
		json_bool(log_begin(l, l->type), "cut", true);
		json_close_map(&l->json);
	}
	if (log_is_over(l))
		return;
	if (!l->event.failed) {
		/* Without its brackets: what is around it depends on the chain. */
		buf_add(&l->waiting, l->event.data + 1, l->event.len - 2);
		buf_putc(&l->waiting, '\n');
	}
	l->waiting.failed |= l->event.failed;
	if (l->waiting.len >= MOST_WAITING)
		log_write(l);
}

/* --- writing --- */

static void note_failure(struct log *l, const struct err *e)
{
	if (l->failure.kind == ERR_NONE)
		l->failure = *e;
}

static void write_chain(struct log *l)
{
	int r = log_add(l->chain, &l->tail, &l->waiting, l->is_synced);
	struct err e;

	if (r == 0)
		return;
	l->is_chain_over = true;
	err_sys(&e, -r, "cannot write to the run's %s", LOG_RUN_FILE);
	note_failure(l, &e);
}

static void write_state(struct log *l)
{
	struct err e;

	if (log_add_to_state(l, &e) == 0)
		return;
	l->is_state_over = true;
	note_failure(l, &e);
}

int log_write(struct log *l)
{
	if (l->waiting.len || l->waiting.failed) {
		if (l->chain >= 0 && !l->is_chain_over)
			write_chain(l);
		if (l->state >= 0 && !l->is_state_over)
			write_state(l);
	}
	l->waiting.len = 0;
	l->waiting.failed = false;
	return l->failure.kind == ERR_NONE ? 0 : -l->failure.num;
}
