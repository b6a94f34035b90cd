/* Judging without files of a run: images, demands, two records, and more properties than there is
 * room. */
#include "proof/verify/verify.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "check.h"
#include "proof/verify/verify_policy.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct arena arena;

static struct verify_record make_record(void)
{
	static const struct record_read_guarantee guarantees[] = {
		{ .name = "fs.root", .is_must = true, .holds = true, .vantage = RECORD_OUTSIDE },
		{ .name = "landlock", .is_must = true, .holds = true, .vantage = RECORD_INSIDE },
		{ .name = "groups", .holds = false, .vantage = RECORD_UNSEEN },
	};

	return (struct verify_record){
		.folder = -1,
		.is_signed = true,
		.key.id = A,
		.record = {
			.run = "20261116-112233-0a1b2c3d",
			.bawn = "0.1.0",
			.engine = "kernel",
			.level = "hardened",
			.is_hardened = true,
			.in_chain = true,
			.spec_sha256 = A,
			.plan_sha256 = B,
			.filter_sha256 = A,
			.image = { .name = "host" },
			.outcome = RECORD_EXITED,
			.signal = -1,
			.began = "2026-11-16T11:22:33.000000Z",
			.ended = "2026-11-16T11:22:34.000000Z",
			.effects.sha256 = A,
			.log.last = A,
			.guarantees = { guarantees, COUNT_OF(guarantees) },
		},
	};
}

static const struct verify_property *find(const struct verify_report *r, const char *name)
{
	static const struct verify_property none = {
		.name = "", .result = VERIFY_UNASKED, .text = ""
	};

	for (size_t i = 0; i < r->count; i++)
		if (str_eq(r->items[i].name, name))
			return &r->items[i];
	return &none;
}

/* --- images --- */

static unsigned told;

static void tell(void *of, const char *what, uint64_t done, uint64_t total)
{
	(void)of;
	(void)done;
	(void)total;
	told += what != NULL;
}

static enum verify_result judge_image(struct verify_record *v, bool is_quick)
{
	struct verify_report report = { .arena = &arena };
	struct verify_options o = { .is_quick = is_quick, .progress.tell = tell };

	verify_judge(v, &o, &report);
	return find(&report, "image")->result;
}

static void test_image(void)
{
	char top[] = "/tmp/bawn-verify-XXXXXX", name[64], digest[SHA256_HEX_SIZE];
	struct verify_record v = make_record();
	own_fd int fd = -1, file = -1;

	CHECK(mkdtemp(top) != NULL);
	fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	file = openat(fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(write(file, "text", 4) == 4 && tree_digest(fd, NULL, digest, NULL) == 0);
	CHECK(judge_image(&v, false) == VERIFY_ABSENT);
	snprintf(name, sizeof(name), "dir:%s", top);
	v.record.image = (struct record_artifact){ name, digest };
	told = 0;
	CHECK(judge_image(&v, false) == VERIFY_YES && told > 0);
	CHECK(judge_image(&v, true) == VERIFY_UNASKED);
	CHECK(pwrite(file, "T", 1, 0) == 1);
	CHECK(judge_image(&v, false) == VERIFY_NO);
	CHECK(unlinkat(fd, "file", 0) == 0 && rmdir(top) == 0);
	CHECK(judge_image(&v, false) == VERIFY_ABSENT);
	v.record.image.name = "oci:/image";
	CHECK(judge_image(&v, false) == VERIFY_ABSENT);
	v.record.image.name = "dir:relative";
	CHECK(judge_image(&v, false) == VERIFY_ABSENT);
}

/* --- demands --- */

/* What comes of a policy's one demand; -EINVAL where it is none. */
static int demand(const struct verify_record *v, const char *text, const char *name)
{
	struct verify_report report = { .arena = &arena };
	struct verify_policy policy;
	struct verify_options o = { .policy = &policy };
	own(buf) struct buf yaml = { .max = 4096 };
	struct diags diags;
	int r;

	buf_printf(&yaml, "version: 1\n%s\n", text);
	diags_init(&diags, &arena);
	r = verify_read_policy(&policy, "p.yaml", buf_text(&yaml), yaml.len, &arena, &diags);
	if (r < 0)
		return r;
	CHECK(clock_parse("2026-11-17T11:22:34Z", &o.now) == 0);
	verify_judge(v, &o, &report);
	return (int)find(&report, name)->result;
}

static void test_demands(void)
{
	struct verify_record v = make_record();

	CHECK(demand(&v, "level: hardened", "policy.level") == VERIFY_YES);
	CHECK(demand(&v, "level: custom", "policy.level") == VERIFY_NO);
	/* Neither guarantee of the network holds: then it was the host's. */
	CHECK(demand(&v, "network: host", "policy.network") == VERIFY_YES);
	CHECK(demand(&v, "network: [none, allowlist]", "policy.network") == VERIFY_NO);
	CHECK(demand(&v, "guarantees: [landlock]", "policy.guarantees") == VERIFY_YES);
	CHECK(demand(&v, "guarantees: [landlock, groups]", "policy.guarantees") == VERIFY_NO);
	CHECK(demand(&v, "guarantees: [ids]", "policy.guarantees") == VERIFY_NO);
	CHECK(demand(&v, "outside: [fs.root]", "policy.outside") == VERIFY_YES);
	CHECK(demand(&v, "outside: [landlock]", "policy.outside") == VERIFY_NO);
	/* What nobody saw is missing for a verifier, whoever let it go. */
	CHECK(demand(&v, "degraded: none", "policy.degraded") == VERIFY_NO);
	CHECK(demand(&v, "degraded: [groups]", "policy.degraded") == VERIFY_YES);
	CHECK(demand(&v, "preflight: true", "policy.preflight") == VERIFY_NO);
	v.record.preflight_passed = true;
	CHECK(demand(&v, "preflight: true", "policy.preflight") == VERIFY_YES);
	CHECK(demand(&v, "status: 0", "policy.status") == VERIFY_YES);
	v.record.status = -1;
	CHECK(demand(&v, "status: 0", "policy.status") == VERIFY_NO);
	CHECK(demand(&v, "image: host", "policy.image") == VERIFY_YES);
	CHECK(demand(&v, "image: " A, "policy.image") == VERIFY_NO);
	v.record.image = (struct record_artifact){ "dir:/x", A };
	CHECK(demand(&v, "image: " A, "policy.image") == VERIFY_YES);
	CHECK(demand(&v, "checked: [events]", "policy.checked") == VERIFY_NO);
	CHECK(demand(&v, "level: hard", "") < 0 && demand(&v, "lvl: custom", "") < 0);
}

static void test_age(void)
{
	struct verify_record v = make_record();

	CHECK(demand(&v, "max_age: 1d", "policy.max_age") == VERIFY_YES);
	CHECK(demand(&v, "max_age: 23h", "policy.max_age") == VERIFY_NO);
	v.record.ended = NULL;
	CHECK(demand(&v, "max_age: 1d", "policy.max_age") == VERIFY_NO);
	v.record.ended = "2026-11-17T11:27:33Z";
	CHECK(demand(&v, "max_age: 1d", "policy.max_age") == VERIFY_YES);
	v.record.ended = "2026-11-17T11:27:35Z";
	CHECK(demand(&v, "max_age: 1d", "policy.max_age") == VERIFY_NO);
	v.record.ended = "yesterday";
	CHECK(demand(&v, "max_age: 1d", "policy.max_age") == VERIFY_NO);
}

static void test_relaxed(void)
{
	struct verify_record v = make_record();

	CHECK(demand(&v, "in_chain: true", "in_chain") == VERIFY_YES);
	v.record.in_chain = false;
	CHECK(demand(&v, "in_chain: true", "in_chain") == VERIFY_NO);
	CHECK(demand(&v, "level: hardened", "in_chain") == VERIFY_NO);
	CHECK(demand(&v, "in_chain: false", "in_chain") == VERIFY_UNASKED);
}

/* --- two records --- */

static void test_same(void)
{
	struct verify_record one = make_record(), other = make_record();
	struct verify_report report = { .arena = &arena, .is_comparison = true };
	own(buf) struct buf printed = { .max = 100000 };

	CHECK(verify_compare(&one, &other, &report));
	CHECK(find(&report, "image")->result == VERIFY_YES);
	/* Of two runs, what is not there is unknown. */
	CHECK(find(&report, "project")->result == VERIFY_ABSENT);
	verify_print(&report, false, &printed);
	CHECK(strstr(buf_text(&printed), "unknown") && !strstr(buf_text(&printed), "not there"));
#define DIFFERS(change)                                                                            \
	do {                                                                                       \
		other = make_record();                                                             \
		other.record.change;                                                               \
		report.count = 0;                                                                  \
		CHECK(!verify_compare(&one, &other, &report));                                     \
	} while (0)
	DIFFERS(spec_sha256 = B);
	DIFFERS(plan_sha256 = A);
	DIFFERS(effects.sha256 = B);
	DIFFERS(effects.sha256 = NULL);
	DIFFERS(image.name = "dir:/x");
	DIFFERS(image.sha256 = A);
#undef DIFFERS
	/* How it ended, and the filter, decide nothing. */
	other = make_record();
	other.record.status = 1;
	other.record.filter_sha256 = B;
	report.count = 0;
	CHECK(verify_compare(&one, &other, &report));
	CHECK(find(&report, "outcome")->result == VERIFY_NO);
}

/* --- the report --- */

static void test_report(void)
{
	struct verify_report report = { .arena = &arena };
	own(buf) struct buf out = { .max = 65536 };

	verify_say(&report, "name\x1b[2J", VERIFY_YES, "%s", "a\r\xff\xe2\x80\xae");
	verify_print(&report, false, &out);
	CHECK_STR(buf_text(&out), "name\\x1b[2J  yes        a\\x0d\\xff\\u{202e}\n");
	CHECK(!report.has_failed);
	/* What has no room is no success. */
	while (report.count < VERIFY_MAX_PROPERTIES)
		verify_say(&report, "more", VERIFY_YES, "so");
	CHECK(!report.has_failed);
	verify_say(&report, "one too many", VERIFY_YES, "so");
	CHECK(report.has_failed && report.count == VERIFY_MAX_PROPERTIES);
}

int main(void)
{
	arena_init(&arena, (size_t)64 << 20);
	test_image();
	test_demands();
	test_age();
	test_relaxed();
	test_same();
	test_report();
	arena_done(&arena);
	return check_report();
}
