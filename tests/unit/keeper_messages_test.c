/* What a cage may say when: every kind of message in every state and mode is handled or refused. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/own.h"
#include "check.h"
#include "fake_host.h"
#include "keeper/keeper_inside.h"
#include "make_spec.h"
#include "plan/plan.h"

#define KIND_COUNT (WIRE_EMPTY + 1)
#define BIT(n)     (1U << (n))

/* The states in which a kind is allowed, a letter for each: M making, B built, L let go, R running,
 * X exited, E ended. Kinds that are not here are never the cage's to send. */
static const struct {
	enum wire_kind kind;
	const char *states;
	bool is_once;
} allowed[] = {
	{ WIRE_AWAITS, "M", false },
	{ WIRE_SKIPPED, "M", false },
	{ WIRE_TERMINAL, "M", false },
	{ WIRE_DISK, "M", true },
	{ WIRE_KEPT, "M", true },
	{ WIRE_VIEW, "M", false },
	{ WIRE_LISTENER, "M", true },
	{ WIRE_NAMES, "M", true },
	{ WIRE_LOOK, "M", false },
	{ WIRE_READY, "M", true },
	{ WIRE_CHECKED, "L", true },
	{ WIRE_STARTED, "L", true },
	{ WIRE_STOPPED, "R", false },
	{ WIRE_EXITED, "LR", true },
	{ WIRE_EMPTY, "X", true },
	{ WIRE_FAILED, "MBLRXE", false },
};

static const char letters[] = "MBLRXE";

/* What the table should say, from what is written above and two exceptions. */
static bool is_allowed(
	uint32_t kind, enum keeper_state state, enum keeper_mode mode, uint32_t heard)
{
	if (kind == WIRE_LOOK && mode != KEEPER_JOINING)
		return false;
	if (kind == WIRE_STARTED && !(heard & BIT(WIRE_CHECKED)))
		return false;
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (allowed[i].kind == kind)
			return strchr(allowed[i].states, letters[state]) &&
			       !(allowed[i].is_once && heard & BIT(kind));
	return false;
}

/* --- the table, and what is refused --- */

static void check_one(uint32_t kind, enum keeper_state state, enum keeper_mode mode, uint32_t heard)
{
	const struct keeper_message_rule *rule = keeper_find_rule(kind, state, mode, heard);
	struct keeper k = { .state = state, .mode = mode, .heard = heard, .disk = -1 };
	struct keeper_message m = { .said.kind = kind, .fd = 77 };
	struct err e = { 0 };
	char wanted[80];

	CHECK(is_allowed(kind, state, mode, heard) == (rule != NULL));
	if (rule) {
		CHECK(rule->kind == kind && rule->take);
		return;
	}
	CHECK(keeper_take_message(&k, &m, &e) == -EBADMSG);
	snprintf(wanted, sizeof(wanted), "cannot make the cage: unexpected message %u from it",
		kind);
	CHECK_STR(e.text, wanted);
	/* Nothing of it was taken. */
	CHECK(k.state == state && k.heard == heard && m.fd == 77 && k.disk == -1);
}

static void test_all(void)
{
	for (uint32_t kind = 0; kind < KIND_COUNT + 8; kind++)
		for (enum keeper_state state = 0; state < KEEPER_STATE_COUNT; state++)
			for (enum keeper_mode mode = 0; mode < KEEPER_MODE_COUNT; mode++) {
				check_one(kind, state, mode, 0);
				check_one(kind, state, mode, BIT(WIRE_CHECKED));
				check_one(kind, state, mode, BIT(kind % KIND_COUNT));
				check_one(kind, state, mode, BIT(KIND_COUNT) - 1);
			}
	check_one(UINT32_MAX, KEEPER_MAKING, KEEPER_FRESH, 0);
}

/* --- what is handled: a cage that says all it has to, in turn --- */

static int say(struct keeper *k, enum wire_kind kind, int n, int fd, struct err *e)
{
	struct keeper_message m = { .said = { .kind = kind, .n = n }, .fd = fd };
	int r;

	*e = (struct err){ 0 };
	r = keeper_take_message(k, &m, e);
	if (m.fd >= 0)
		close(m.fd);
	return r;
}

static struct plan *build(void)
{
	static struct spec spec;
	struct plan *p = NULL;
	struct err e = { 0 };
	struct host host;

	fake_host_init(&host);
	CHECK(make_spec(&spec, "version: 1\n"));
	CHECK(plan_build(&spec, &host, &p, NULL, &e) == 0);
	spec_done(&spec);
	return p;
}

static void test_run(void)
{
	own_free struct plan *p = build();
	struct keeper_request q = { .plan = p, .status_fd = -1 };
	struct record record = { .plan = p, .run = "20260101-000000-00000001" };
	struct keeper k;
	struct err e;

	keeper_init(&k, &q, &record);
	k.start.plan = p;
	CHECK(say(&k, WIRE_AWAITS, 0, -1, &e) == 0);
	CHECK(say(&k, WIRE_SKIPPED, 0, -1, &e) == 0 && record.note_count == 1);
	CHECK(say(&k, WIRE_SKIPPED, 1 << 20, -1, &e) == 0 && record.note_count == 1);
	CHECK(say(&k, WIRE_DISK, 0, open("/", O_PATH | O_CLOEXEC), &e) == 0 && k.disk >= 0);
	CHECK(say(&k, WIRE_DISK, 0, -1, &e) == -EBADMSG && k.disk >= 0);
	CHECK(say(&k, WIRE_KEPT, 0, open("/", O_PATH | O_CLOEXEC), &e) == 0);
	CHECK(say(&k, WIRE_NAMES, 0, open("/", O_PATH | O_CLOEXEC), &e) == 0);
	CHECK(k.overlay.loaded >= 0 && k.names.socket >= 0 && k.state == KEEPER_MAKING);
	CHECK(say(&k, WIRE_CHECKED, 0, -1, &e) == -EBADMSG);
	CHECK(say(&k, WIRE_READY, 1, -1, &e) == 0 && k.state == KEEPER_BUILT && k.is_landlocked);
	CHECK(say(&k, WIRE_READY, 0, -1, &e) == -EBADMSG && k.is_landlocked);
	CHECK(say(&k, WIRE_EXITED, 0, -1, &e) == -EBADMSG);
	CHECK(say(&k, WIRE_CHECKED, 0, -1, &e) == -EBADMSG && !record.preflight_by);
	k.state = KEEPER_LET_GO;
	CHECK(say(&k, WIRE_STARTED, 0, -1, &e) == -EBADMSG && !keeper_has_started(&k));
	CHECK(say(&k, WIRE_CHECKED, 0, -1, &e) == 0 && record.is_preflight_passed);
	CHECK_STR(record.preflight_by, "init");
	CHECK(say(&k, WIRE_STARTED, 0, -1, &e) == 0 && keeper_has_started(&k));
	CHECK(k.state == KEEPER_RUNNING);
	CHECK(say(&k, WIRE_STOPPED, SIGSTOP, -1, &e) == 0 && k.job.is_stopped);
	CHECK(say(&k, WIRE_EMPTY, 0, -1, &e) == -EBADMSG);
	CHECK(say(&k, WIRE_EXITED, 256, -1, &e) == 0 && k.end.wait_status == 256);
	CHECK(say(&k, WIRE_EXITED, 0, -1, &e) == -EBADMSG && k.end.wait_status == 256);
	CHECK(say(&k, WIRE_EMPTY, 3, -1, &e) == 0 && k.end.others == 3 && k.state == KEEPER_ENDED);
	CHECK(say(&k, WIRE_FAILED, 0, -1, &e) == -EPROTO && k.end.has_failed);
	CHECK_STR(e.text, "cannot make the cage: it gave no reason");
	keeper_release(&k);
}

/* A code other than 0 ends the run, whatever it is. */
static void test_preflight(void)
{
	static const struct {
		int code;
		enum keeper_mode mode;
		const char *by, *text;
	} cases[] = {
		{ 11, KEEPER_FRESH, "init", "root in the cage would be root outside (status 11)" },
		{ 12, KEEPER_JOINING, "bawn", "the home is not the cage's own (status 12)" },
		{ 1, KEEPER_WARM, "init", "unexpected code 1 of the preflight" },
		{ -1, KEEPER_RESIDENT, "init", "unexpected code -1 of the preflight" },
	};
	own_free struct plan *p = build();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct keeper_request q = { .plan = p, .mode = cases[i].mode, .status_fd = -1 };
		struct record record = { .plan = p, .run = "20260101-000000-00000001" };
		struct keeper k;
		struct err e;

		keeper_init(&k, &q, &record);
		k.start.plan = p;
		k.state = KEEPER_LET_GO;
		CHECK(say(&k, WIRE_CHECKED, cases[i].code, -1, &e) < 0 && k.end.has_failed);
		CHECK(!record.is_preflight_passed && strstr(e.text, cases[i].text));
		CHECK_STR(record.preflight_by, cases[i].by);
		keeper_release(&k);
	}
}

int main(void)
{
	test_preflight();
	test_all();
	test_run();
	return check_report();
}
