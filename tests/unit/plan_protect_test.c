/* What plans hold of a writable project, on a machine made by hand. */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "fake_host.h"
#include "make_spec.h"
#include "plan/plan.h"
#include "plan_sound.h"

static struct spec spec;
static struct host host;

/* The plan of an operator's file on `host`. The caller frees it. */
static struct plan *build(const char *file)
{
	struct plan *p = NULL;
	struct err e = { 0 };

	CHECK(make_spec(&spec, file) && plan_build(&spec, &host, &p, NULL, &e) == 0);
	CHECK(p && plan_is_sound(p));
	spec_done(&spec);
	return p;
}

/* The operation of this kind at this place; NULL: at any. */
static const struct plan_op *find(const struct plan *p, enum plan_op_kind kind, const char *b)
{
	for (uint32_t i = 0; p && i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == kind && plan_says(p, op, NULL, b))
			return op;
	}
	return NULL;
}

/* What is protected is held where it could be written, in mode writable and in no other. */
static void test_held(void)
{
	static const struct {
		const char *project;
		bool is_protected, is_held;
		const char *part; /* that has a mount of its own; NULL: none has */
		int flags;
	} rows[] = {
		{ "mode: captured", false, false, NULL, 0 },
		{ "mode: read_only, protect: [x]", false, false, NULL, 0 },
		{ "mode: writable", true, true, NULL, 0 },
		{ "mode: writable, write_allowlist: [$PROJECT/.git/**]", true, true, ".git", 0 },
		{ "mode: writable, write_allowlist: [$PROJECT/src/**]", true, false, "src", 0 },
		{ "mode: writable, write_allowlist: [$PROJECT/src/**], protect: [src/a/b]", true,
			true, "src", 0 },
		/* A part in one that can be written has the same rights, and needs no mount. */
		{ "mode: writable, write_allowlist: [$PROJECT/**, $PROJECT/src/**]", true, true,
			NULL, 0 },
		{ "mode: writable, write_allowlist: [$PROJECT/src/**, $PROJECT/src/a/**]", true,
			false, "src", 0 },
		{ "mode: writable, read_allowlist: [$PROJECT/.vscode/x]", true, true, ".vscode/x",
			PLAN_READ_ONLY },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char file[200];
		own_free struct plan *p = NULL;
		const struct plan_op *part;

		snprintf(file, sizeof(file), "version: 1\nproject: {%s}\n", rows[i].project);
		p = build(file);
		part = find(p, PLAN_PART, NULL);
		check_that(!find(p, PLAN_PROTECT, ".git/hooks") != rows[i].is_protected,
			rows[i].project, __FILE__, __LINE__);
		check_that(!(find(p, PLAN_PROJECT, NULL)->flags & PLAN_PROTECTS) != rows[i].is_held,
			rows[i].project, __FILE__, __LINE__);
		check_that(!part == !rows[i].part, rows[i].project, __FILE__, __LINE__);
		check_that(!part || str_eq(plan_str(p, part->b), rows[i].part), rows[i].project,
			__FILE__, __LINE__);
		check_that(
			!part || part->flags == rows[i].flags, rows[i].project, __FILE__, __LINE__);
		check_that(!part || part[1].kind != PLAN_PART, rows[i].project, __FILE__, __LINE__);
	}
}

/* Where it cannot be held, nothing says that it is. */
static void test_not_held(void)
{
	static const char file[] = "version: 1\nproject: {mode: writable}\n"
				   "allow_degraded: [fs.protect]\n";

	for (int i = 0; i < 2; i++) {
		own_free struct plan *p = NULL;

		/* Another engine would give it. */
		if (i == 0) {
			fake_host_lose(&host, HOST_OVERLAY);
			fake_host_lose(&host, HOST_KVM);
		}
		host.no_protect = i == 1;
		p = build(file);
		CHECK(!find(p, PLAN_PROTECT, NULL));
		CHECK(!(find(p, PLAN_PROJECT, NULL)->flags & PLAN_PROTECTS));
		CHECK(!plan_promises(p)[PLAN_FS_PROTECT].is_given);
		fake_host_init(&host);
	}
}

/* Where git takes hooks from is known of the host, not of the spec. */
static void test_hooks(void)
{
	static const char *const hooks[] = { ".husky/_" };
	own_free struct plan *whole = NULL, *part = NULL, *inside = NULL;

	host.hooks = hooks;
	host.hook_count = 1;
	whole = build("version: 1\nproject: {mode: writable}\n");
	part = build(
		"version: 1\nproject: {mode: writable, write_allowlist: [$PROJECT/.husky/**]}\n");
	inside = build("version: 1\nproject: {mode: writable, write_allowlist: "
		       "[$PROJECT/.husky/_/a/**]}\n");
	CHECK(find(whole, PLAN_PROTECT, ".husky/_") && find(part, PLAN_PROTECT, ".husky/_"));
	CHECK(find(part, PLAN_PROJECT, NULL)->flags & PLAN_PROTECTS);
	CHECK(find(part, PLAN_PART, ".husky")->flags == 0);
	CHECK(find(inside, PLAN_PART, ".husky/_/a")->flags == PLAN_READ_ONLY);
	fake_host_init(&host);
}

/* The group of the cage is the project's where an overlay has to know that. */
static void test_team(void)
{
	own_free struct plan *captured = NULL, *written = NULL;

	host.has_team = true;
	captured = build("version: 1\n");
	written = build("version: 1\nproject: {mode: writable}\n");
	CHECK(str_eq(plan_str(captured, find(captured, PLAN_IDS, NULL)->a), "team"));
	CHECK(str_eq(plan_str(written, find(written, PLAN_IDS, NULL)->a), "operator"));
	fake_host_init(&host);
}

int main(void)
{
	fake_host_init(&host);
	test_held();
	test_not_held();
	test_hooks();
	test_team();
	return check_report();
}
