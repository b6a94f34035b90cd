/* Which cage a command of a session joins: the one that its plan makes, and no other. */
#include <errno.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "fake_host.h"
#include "keeper/keeper_inside.h"
#include "make_spec.h"
#include "plan/plan.h"

#define ID 70001

static struct plan *build(const char *more)
{
	static struct spec spec;
	struct plan *p = NULL;
	struct err e = { 0 };
	struct host host;
	char file[512];

	fake_host_init(&host);
	snprintf(file, sizeof(file), "version: 1\n%s", more);
	check_that(make_spec(&spec, file), more, __FILE__, __LINE__);
	CHECK(plan_build(&spec, &host, &p, NULL, &e) == 0);
	CHECK_STR(e.text, "");
	spec_done(&spec);
	return p;
}

/* --- the head --- */

static struct keeper_cage_head make_head(const struct plan *p)
{
	struct keeper_cage_head h = { .run = "20260101-000000-00000001", .uid = ID, .gid = ID };

	keeper_join_digest_plan(p, h.plan);
	return h;
}

static int check(const struct plan *p, const struct keeper_cage_head *h)
{
	struct cage_start start = { .plan = p, .ids = { .uid = ID, .gid = ID } };
	struct err e = { 0 };
	int r = keeper_join_check(&start, h, &e);

	CHECK((r == 0) == !e.text[0]);
	CHECK(r != -EXDEV || strstr(e.text, "another plan or another version of bawn"));
	return r;
}

static void test_head(const struct plan *p)
{
	struct keeper_cage_head h = make_head(p);

	CHECK(check(p, &h) == 0);
	h.group_count = CGROUP_COUNT;
	CHECK(check(p, &h) == 0);
	h.group_count = CGROUP_COUNT + 1;
	CHECK(check(p, &h) == -EPROTO);
	h.group_count = -1;
	CHECK(check(p, &h) == -EPROTO);
	h = make_head(p);
	h.uid++;
	CHECK(check(p, &h) == -EXDEV);
	h = make_head(p);
	h.gid++;
	CHECK(check(p, &h) == -EXDEV);
	h = make_head(p);
	h.run[0] = '\0';
	CHECK(check(p, &h) == -EPROTO);
	memset(h.run, '1', sizeof(h.run));
	CHECK(check(p, &h) == -EPROTO);
	/* Each digit of the digest, and one that does not end. */
	for (size_t i = 0; i < SHA256_HEX_SIZE; i++) {
		h = make_head(p);
		h.plan[i] = h.plan[i] == '0' ? '1' : '0';
		CHECK(check(p, &h) == -EXDEV);
	}
	h = make_head(p);
	h.plan[0] = '\0';
	CHECK(check(p, &h) == -EXDEV);
}

/* --- what makes a cage --- */

static void test_plans(const struct plan *p)
{
	static const struct {
		const char *more;
		bool is_same;
	} rows[] = {
		{ "command: [echo, hi]\n", true },
		{ "env: {set: {NAME: value}, pass: [OTHER]}\n", true },
		{ "workdir: /work/src\n", true },
		{ "startup_commands: [make]\n", true },
		{ "limits: {time: 5s, output: 1M, files: 77}\n", true },
		{ "limits: {memory: 1G}\n", false },
		{ "limits: {pids: 77}\n", false },
		{ "syscalls: strict\n", false },
		{ "fakeroot: true\n", false },
		{ "network: {mode: host}\n", false },
		{ "binds: ['/srv:/srv']\n", false },
		{ "binds: ['/srv:/srv:rw']\n", false },
		{ "project: {at: /other}\n", false },
		{ "network: {mode: allowlist, allow: ['a.org:443']}\n", false },
		{ "network: {mode: allowlist, allow: ['b.org:443']}\n", false },
		{ "network: {mode: allowlist, allow: ['a.org:444/tls']}\n", false },
		{ "network: {mode: allowlist, allow: ['a.org:443/tcp']}\n", false },
		{ "network: {mode: allowlist, allow: ['10.0.0.0/8:443']}\n", false },
		{ "network: {mode: allowlist, allow: ['10.0.0.0/9:443']}\n", false },
	};
	struct keeper_cage_head heads[COUNT_OF(rows)];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own_free struct plan *other = build(rows[i].more);

		if (!other)
			return;
		heads[i] = make_head(other);
		check_that(check(p, &heads[i]) == (rows[i].is_same ? 0 : -EXDEV), rows[i].more,
			__FILE__, __LINE__);
		for (size_t j = 0; j < i; j++)
			check_that(str_eq(heads[i].plan, heads[j].plan) ==
					   (rows[i].is_same && rows[j].is_same),
				rows[i].more, __FILE__, __LINE__);
	}
}

/* Of an operation that makes the cage each operand counts; of a command's own, none. */
static void test_operands(struct plan *p)
{
	struct plan_op *ops = (struct plan_op *)(p + 1);

	for (uint32_t i = 0; i < p->op_count; i++) {
		struct keeper_cage_head h = make_head(p);
		struct plan_op before = ops[i];
		bool is_commands = before.kind == PLAN_ENV || before.kind == PLAN_ENV_PASS ||
				   before.kind == PLAN_WORKDIR || before.kind == PLAN_STARTUP ||
				   before.kind == PLAN_ARGUMENT;

		if (before.kind == PLAN_LIMIT || before.kind == PLAN_TELL)
			continue;
		for (int operand = 0; operand < 8; operand++) {
			ops[i].n += operand == 0;
			ops[i].flags ^= operand == 1;
			ops[i].mode ^= operand == 2;
			ops[i].need ^= operand == 3;
			ops[i].a += operand == 4;
			ops[i].b += operand == 5;
			ops[i].a_root ^= operand == 6;
			ops[i].b_root ^= operand == 7;
			check_that(check(p, &h) == (is_commands ? 0 : -EXDEV),
				plan_op_defs[before.kind].name, __FILE__, __LINE__);
			ops[i] = before;
		}
	}
}

int main(void)
{
	own_free struct plan *p = build("");

	if (!p)
		return check_report();
	test_head(p);
	test_plans(p);
	test_operands(p);
	return check_report();
}
