/*
 * keeper_messages - what the cage says, and when it may say it.
 *
 * Runs as:  the keeper.
 * Must not: believe the cage out of turn. What the table does not allow ends the run.
 *
 * Until the command is let go, everything that speaks is bawn's own code; from then on the same
 * channel is one that a command might have got hold of. So the state of the run decides which
 * messages there can be, and what the cage hands over is taken once.
 */
#include <errno.h>
#include <sys/statfs.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/own.h"
#include "keeper/keeper_inside.h"
#include "wire/wire.h"

/* --- while the cage is being made --- */

/* Nothing is to be done: it waits for what a session brings, which is sent in any case. */
static int take_awaits(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)k, (void)m, (void)e;
	return 0;
}

static int take_skipped(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	if (m->said.n >= 0 && (uint32_t)m->said.n < k->start.plan->op_count)
		record_note(k->record, (uint32_t)m->said.n, m->said.err.text);
	return 0;
}

static int messages_take_terminal(struct keeper *k, struct keeper_message *m, struct err *e)
{
	int r = keeper_terminal_take(&k->terminal, take_fd(&m->fd), e);

	if (r == 0)
		keeper_take_size(k);
	return r == 0 ? keeper_stdio_attach(&k->stdio, &k->terminal, false, e) : r;
}

static int take_disk(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->disk = take_fd(&m->fd);
	return 0;
}

static int take_kept(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->overlay.loaded = take_fd(&m->fd);
	return 0;
}

static int take_view(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	keeper_protect_take_view(k, take_fd(&m->fd));
	return 0;
}

static int take_listener(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	keeper_notify_take(k, take_fd(&m->fd));
	return 0;
}

static int take_names(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->names.socket = take_fd(&m->fd);
	return 0;
}

static int take_look(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)m;
	return keeper_join_look(k, e);
}

static int take_ready(struct keeper *k, struct keeper_message *m, struct err *e)
{
	k->state = KEEPER_BUILT;
	k->is_landlocked = m->said.n != 0;
	if (k->start.terminal_streams && k->terminal.near < 0)
		return err_set(e, ERR_SYS, EPROTO,
			"cannot use the cage's terminal: the cage did not pass it");
	return 0;
}

/* What the cage says went wrong; it always is something. */
static int take_failed(struct keeper *k, struct keeper_message *m, struct err *e)
{
	bool is_known = m->said.err.kind == ERR_SYS || m->said.err.kind == ERR_REFUSED ||
			m->said.err.kind == ERR_NOT_FOUND || m->said.err.kind == ERR_NOT_EXEC;

	k->end.has_failed = true;
	if (!is_known || !m->said.err.text[0] || m->said.err.num < 0)
		return err_set(e, ERR_SYS, EPROTO, "cannot make the cage: it gave no reason");
	*e = m->said.err;
	k->record->failed_op = m->said.n < (int32_t)k->start.plan->op_count ? m->said.n : -1;
	return -EPROTO;
}

/* --- when it stands --- */

static int take_checked(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->record->is_preflight_passed = true;
	k->record->is_preflight_ours = m->said.n != 0;
	keeper_log_preflight(k);
	return 0;
}

static void note_start(struct keeper *k)
{
	k->clock.started_ns = clock_ns();
	keeper_say_started(k->q, k->record, k->process.pid);
}

static int take_started(struct keeper *k, struct keeper_message *m, struct err *e)
{
	int r;

	(void)m;
	k->state = KEEPER_RUNNING;
	note_start(k);
	r = k->terminal.near >= 0 ? keeper_stdio_attach(&k->stdio, &k->terminal, true, e) : 0;
	return r == 0 ? keeper_terminal_pass_keys(&k->terminal, e) : r;
}

/* --- from the init --- */

static int take_stopped(struct keeper *k, struct keeper_message *m, struct err *e)
{
	return keeper_take_stop(k, m->said.n, e);
}

static int take_exited(struct keeper *k, struct keeper_message *m, struct err *e)
{
	struct statfs disk;

	(void)e;
	k->state = KEEPER_EXITED;
	k->end.wait_status = m->said.n;
	if (k->disk >= 0 && fstatfs(k->disk, &disk) == 0)
		k->end.is_disk_full = disk.f_bavail == 0 || (disk.f_files && disk.f_ffree == 0);
	keeper_set_timer(&k->clock, KEEPER_REAP_MS);
	return 0;
}

static int take_empty(struct keeper *k, struct keeper_message *m, struct err *e)
{
	(void)e;
	k->state = KEEPER_ENDED;
	k->end.others = m->said.n;
	return 0;
}

/* --- the table --- */

#define BIT(n) (1U << (n))

enum {
	MAKING = BIT(KEEPER_MAKING),
	BUILT = BIT(KEEPER_BUILT),
	LET_GO = BIT(KEEPER_LET_GO),
	RUNNING = BIT(KEEPER_RUNNING),
	EXITED = BIT(KEEPER_EXITED),
	ENDED = BIT(KEEPER_ENDED),
	ALWAYS = MAKING | BUILT | LET_GO | RUNNING | EXITED | ENDED,
};

enum {
	ANY_MODE = BIT(KEEPER_MODE_COUNT) - 1,
	WARM = BIT(KEEPER_WARM),
	JOINING = BIT(KEEPER_JOINING),
};

enum how_often {
	OFTEN,
	ONCE,
};

/* A message that no row allows is refused; no two rows allow the same. */
static const struct keeper_message_rule rules[] = {
	{ WIRE_AWAITS, MAKING, ANY_MODE, OFTEN, 0, take_awaits },
	{ WIRE_SKIPPED, MAKING, ANY_MODE, OFTEN, 0, take_skipped },
	{ WIRE_TERMINAL, MAKING, ANY_MODE, OFTEN, 0, messages_take_terminal },
	{ WIRE_DISK, MAKING, ANY_MODE, ONCE, 0, take_disk },
	{ WIRE_KEPT, MAKING, ANY_MODE, ONCE, 0, take_kept },
	{ WIRE_VIEW, MAKING, ANY_MODE, OFTEN, 0, take_view },
	{ WIRE_LISTENER, MAKING, ANY_MODE, ONCE, 0, take_listener },
	{ WIRE_NAMES, MAKING, ANY_MODE, ONCE, 0, take_names },
	{ WIRE_LOOK, MAKING, JOINING, OFTEN, 0, take_look },
	{ WIRE_READY, MAKING, ANY_MODE, ONCE, 0, take_ready },
	/* A warm cage ran its preflight while nobody needed it. */
	{ WIRE_CHECKED, MAKING, WARM, ONCE, 0, take_checked },
	{ WIRE_CHECKED, BUILT | LET_GO, ANY_MODE, ONCE, 0, take_checked },
	{ WIRE_STARTED, LET_GO, ANY_MODE, ONCE, BIT(WIRE_CHECKED), take_started },
	{ WIRE_STOPPED, RUNNING, ANY_MODE, OFTEN, 0, take_stopped },
	{ WIRE_EXITED, LET_GO | RUNNING, ANY_MODE, ONCE, 0, take_exited },
	{ WIRE_EMPTY, EXITED, ANY_MODE, ONCE, 0, take_empty },
	{ WIRE_FAILED, ALWAYS, ANY_MODE, OFTEN, 0, take_failed },
};

const struct keeper_message_rule *keeper_find_rule(
	uint32_t kind, enum keeper_state state, enum keeper_mode mode, uint32_t heard)
{
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		const struct keeper_message_rule *rule = &rules[i];

		if (rule->kind == kind && rule->states & BIT(state) && rule->modes & BIT(mode) &&
			!(rule->is_once && heard & BIT(kind)) &&
			(heard & rule->needs) == rule->needs)
			return rule;
	}
	return NULL;
}

int keeper_take_message(struct keeper *k, struct keeper_message *m, struct err *e)
{
	const struct keeper_message_rule *rule =
		keeper_find_rule(m->said.kind, k->state, k->mode, k->heard);

	if (!rule)
		return err_set(e, ERR_SYS, EBADMSG,
			"cannot make the cage: unexpected message %u from it", m->said.kind);
	k->heard |= BIT(m->said.kind);
	return rule->take(k, m, e);
}

bool keeper_hear_last(struct keeper *k, struct err *e)
{
	struct keeper_message m = { .fd = -1 };
	struct err other;
	int r;

	/* What the keeper was told stands; what it saw may be a cage on its way out. */
	while ((r = wire_receive(k->process.channel, &m.said, NULL)) == 0) {
		if (m.said.kind == WIRE_FAILED)
			take_failed(k, &m, e->kind == ERR_SYS || k->end.has_fault ? e : &other);
		if (m.said.kind == WIRE_CHECKED && !k->record->is_preflight_passed)
			take_checked(k, &m, e);
		if (m.said.kind == WIRE_STARTED && !keeper_has_started(k))
			note_start(k);
	}
	return r == -EPIPE;
}
