/*
 * Engines: those that run are those that plan_choose.c lets run, and the keeper reaches a cage's
 * processes only through the row: here one that has no process at all.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "check.h"
#include "fake_host.h"
#include "keeper/engine/keeper_engine.h"
#include "keeper/keeper_inside.h"
#include "make_spec.h"
#include "plan/plan.h"

static void test_rows(void)
{
	for (enum spec_engine e = SPEC_ENGINE_NATIVE; e < PLAN_ENGINE_COUNT; e++) {
		const struct keeper_engine *row = keeper_engine_of(e);

		CHECK((row != NULL) == plan_engine_runs(e));
		CHECK(!row || row->engine == e);
		CHECK(!row || (row->start && row->signal && row->kill && row->wait && row->cpu_us &&
				      row->inspect && row->versions));
	}
	CHECK(!keeper_engine_of(SPEC_ENGINE_AUTO));
}

static struct plan *build(void)
{
	static struct spec spec;
	struct plan *p = NULL;
	struct err e = { 0 };
	struct host host;

	fake_host_init(&host);
	CHECK(make_spec(&spec, "version: 1\ncommand: [\"true\"]\n"));
	CHECK(plan_build(&spec, &host, &p, NULL, &e) == 0);
	spec_done(&spec);
	return p;
}

static void test_check(void)
{
	own_free struct plan *p = build();
	struct record record = { .plan = p };
	struct err e = { 0 };

	CHECK(keeper_check_plan(p, true, &record, &e) == 0);
	CHECK(record.kernel[0] != '\0');
	for (enum spec_engine other = SPEC_ENGINE_NATIVE; other < PLAN_ENGINE_COUNT; other++) {
		p->engine = (uint16_t)other;
		CHECK((keeper_check_plan(p, true, &record, &e) == 0) == plan_engine_runs(other));
		CHECK(plan_engine_runs(other) || e.kind == ERR_REFUSED);
	}
}

/* --- an engine without processes --- */

static int signals[8];
static size_t signal_count, kills, waits;

static int fake_start(struct keeper *k, struct err *e)
{
	(void)k;
	return err_set(e, ERR_SYS, ENOSYS, "cannot start");
}

static void fake_signal(const struct keeper *k, int number)
{
	(void)k;
	if (signal_count < COUNT_OF(signals))
		signals[signal_count++] = number;
}

static void fake_kill(const struct keeper *k)
{
	(void)k;
	kills++;
}

static int fake_wait(struct keeper *k, int *ret_status, struct err *e)
{
	(void)ret_status, (void)e;
	waits++;
	k->process.cpu_us = 7;
	return 0;
}

static const struct keeper_engine fake = {
	.start = fake_start, .signal = fake_signal, .kill = fake_kill, .wait = fake_wait
};

static void test_row_is_used(void)
{
	own_free struct plan *p = build();
	struct keeper_request q = { .plan = p, .status_fd = -1, .workspace = -1, .folder = -1 };
	struct record record = { .plan = p, .run = "20260101-000000-00000001" };
	struct err e = { 0 };
	struct keeper k;

	keeper_init(&k, &q, &record);
	CHECK(k.engine == keeper_engine_of(SPEC_ENGINE_NATIVE));
	k.engine = &fake;
	keeper_end_for(&k, PLAN_LIMITS_TIME);
	CHECK(signal_count == 2 && signals[0] == SIGTERM && signals[1] == SIGCONT);
	CHECK(k.end.limit == PLAN_LIMITS_TIME && !kills);
	keeper_finish(&k, -EIO, &e);
	CHECK(kills == 1 && waits == 1 && k.process.cpu_us == 7 && !k.end.is_left);
	keeper_release(&k);
}

/* A limit of 0 stops files of core dumps, and no handler. */
static void test_crashes(void)
{
	struct err e = { 0 };

	CHECK(keeper_check_crashes(0, "core", &e) == 0 && keeper_check_crashes(0, "", &e) == 0);
	CHECK(keeper_check_crashes(1, "|/usr/bin/handler %p", &e) == 0);
	CHECK(keeper_check_crashes(UINT64_MAX, "|/usr/bin/handler", &e) == 0);
	CHECK(keeper_check_crashes(0, "|/usr/bin/handler %p", &e) == -EPERM);
	CHECK(e.kind == ERR_REFUSED && strstr(e.hint, "hard core 1"));
}

int main(void)
{
	test_crashes();
	test_rows();
	test_check();
	test_row_is_used();
	return check_report();
}
