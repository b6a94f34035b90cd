/* What plans have of bawn's own in the cage, and how they describe it to who is there. */
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

/* The description has this text. */
static bool says(const struct plan *p, const char *text)
{
	const struct plan_op *op = p ? plan_find(p, PLAN_DESCRIBE, NULL) : NULL;

	return op && strstr(plan_str(p, op->a), text);
}

#define SCRATCH "\"/home/agent\",\"/mnt\",\"/opt\",\"/proc\",\"/run\",\"/srv\",\"/tmp\""
#define DEVICES                                                                                    \
	"\"/dev/full\",\"/dev/null\",\"/dev/pts\",\"/dev/random\",\"/dev/tty\","                   \
	"\"/dev/urandom\",\"/dev/zero\""

static void test_descriptions(void)
{
	static const struct {
		const char *keys, *said;
	} rows[] = {
		{ "", "{\"version\":1,\"project\":\"/work\",\"home\":\"/home/agent\",\"read\":[" },
		{ "", "\"write\":[" DEVICES "," SCRATCH ",\"/var\",\"/work\"]" },
		{ "", "\"protect\":[\"/run/bawn\"],\"network\":\"none\",\"allow\":[]}\n" },
		{ "project: {mode: read_only}", "\"write\":[" DEVICES "," SCRATCH
						",\"/var\"],\"protect\":[\"/run/bawn\"]" },
		{ "project: {write_allowlist: [$PROJECT/a/**]}",
			SCRATCH ",\"/var\",\"/work/a\"],\"protect\":[\"/run/bawn\"]" },
		{ "project: {read_allowlist: [$PROJECT/a/**], write_allowlist: []}",
			"\"/var\",\"/work/a\"],\"write\"" },
		{ "project: {mode: writable}", "\"/work/.envrc\"" },
		{ "project: {mode: writable, cage: project}", "\"project\":\"$PROJECT\"" },
		{ "project: {mode: writable, cage: project}", "\"$PROJECT/.envrc\"" },
		/* A place that cannot be written, in one that can; and one in that again. */
		{ "binds: [/a:/opt/a, /b:/opt/a/b:rw, /c:/opt/c:rw]",
			"\"/opt\",\"/opt/a/b\",\"/proc\"" },
		/* One beside it, whose name begins alike, is protected by itself. */
		{ "binds: [/a:/opt/a, /b:/opt/ab]",
			"\"protect\":[\"/opt/a\",\"/opt/ab\",\"/run/bawn\"]" },
		{ "binds: [/a:/opt/a, /b:/opt/a/b:rw, /c:/opt/c:rw]",
			"\"protect\":[\"/opt/a\",\"/run/bawn\"]" },
		{ "network: {mode: allowlist, allow: [b.org:443, a.org:80]}",
			"\"network\":\"allowlist\",\"allow\":[\"a.org:80/http\",\"b.org:443/tls\"]" },
		{ "network: {mode: host, allow: [b.org:443]}",
			"\"network\":\"host\",\"allow\":[]" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char file[512];
		own_free struct plan *p = NULL;

		snprintf(file, sizeof(file), "version: 1\ntools: true\n%s\n", rows[i].keys);
		p = build(file);
		check_that(says(p, rows[i].said), rows[i].said, __FILE__, __LINE__);
	}
}

/* Nothing without the key; nobody to tell in a session. */
static void test_presence(void)
{
	own_free struct plan *none = build("version: 1\n"), *tools = NULL, *session = NULL;

	CHECK(!plan_find_from(none, PLAN_BIND, PLAN_ROOT_BAWN) &&
		!plan_find_from(none, PLAN_BIND, PLAN_ROOT_TOLD));
	CHECK(!plan_find(none, PLAN_DESCRIBE, NULL));
	tools = build("version: 1\ntools: true\n");
	CHECK(plan_find_from(tools, PLAN_BIND, PLAN_ROOT_BAWN)->flags ==
		(PLAN_READ_ONLY | PLAN_NO_DEV));
	CHECK(plan_find_from(tools, PLAN_BIND, PLAN_ROOT_TOLD) && tools->is_hardened);
	host.in_session = true;
	session = build("version: 1\ntools: true\n");
	CHECK(plan_find_from(session, PLAN_BIND, PLAN_ROOT_BAWN) &&
		!plan_find_from(session, PLAN_BIND, PLAN_ROOT_TOLD));
	/* Its project comes later, and is described all the same. */
	CHECK(plan_find(session, PLAN_AWAIT, NULL) && says(session, "\"/var\",\"/work\"],\"prot"));
	host.in_session = false;
}

int main(void)
{
	fake_host_init(&host);
	test_descriptions();
	test_presence();
	return check_report();
}
