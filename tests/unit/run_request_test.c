/* What a run is asked with: whatever goes in comes out, and nothing else goes in. */
#include "run/run_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/own.h"
#include "check.h"

/* --- there and back --- */

static void test_round(void)
{
	static const char *const command[] = { "sh", "", "a b", "\"\\\n\x1b[2J", "\xff\xfe", "é" };
	own(buf) struct buf text = { .max = RUN_REQUEST_SIZE };
	own(run_request) struct run_request q, got;
	struct err e = { 0 };

	run_request_init(&q);
	q.command = command;
	q.command_count = COUNT_OF(command);
	q.is_synced = true;
	CHECK(run_request_set(&q, SPEC_LIMITS_MEMORY, "--memory", "1G", &e) == 0);
	CHECK(run_request_set(&q, SPEC_KEY_COUNT, "--env-file", "vars", &e) == 0);
	CHECK(run_request_set(&q, SPEC_LIMITS_MEMORY, "BAWN_X", "2G", &e) == 0);
	CHECK(run_request_add(&q, &q.subjects, "dist/app", &e) == 0);
	CHECK(run_request_print(&q, &text, &e) == 0);
	CHECK(run_request_read(buf_text(&text), text.len, &got, &e) == 0);
	CHECK(got.command_count == COUNT_OF(command) && got.setting_count == 3);
	for (size_t i = 0; i < COUNT_OF(command) && i < got.command_count; i++)
		CHECK_STR(got.command[i], command[i]);
	for (size_t i = 0; i < 3 && i < got.setting_count; i++) {
		CHECK(got.settings[i].key == q.settings[i].key);
		CHECK_STR(got.settings[i].from, q.settings[i].from);
		CHECK_STR(got.settings[i].value, q.settings[i].value);
	}
	CHECK_STR(run_request_find(&got, SPEC_LIMITS_MEMORY)->value, "2G");
	CHECK(!run_request_find(&got, SPEC_LIMITS_CPU));
	CHECK(got.subjects.count == 1 && got.is_synced && got.purpose == RUN_TO_RUN);
	CHECK_STR(got.subjects.items[0], "dist/app");
}

static void test_least(void)
{
	static const char text[] =
		"{\"version\":1,\"settings\":[{\"key\":\"name\",\"value\":\"x\"}]}";
	own(run_request) struct run_request got;
	struct err e = { 0 };

	CHECK(run_request_read(text, strlen(text), &got, &e) == 0);
	CHECK(got.command_count == 0 && got.subjects.count == 0 && !got.is_synced);
	CHECK(got.setting_count == 1 && got.settings[0].key == SPEC_NAME);
	/* Messages call it by its key. */
	CHECK_STR(got.settings[0].from, "name");
}

/* --- what is refused --- */

static void test_bad(void)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
		{ "", "expected" },
		{ "null", "expected" },
		{ "[]", "expected" },
		{ "{}", "expected a version" },
		{ "{\"version\":\"1\"}", "expected" },
		{ "{\"version\":1.0}", "expected" },
		{ "{\"version\":2}", "its version is 2, and this bawn reads 1" },
		{ "{\"version\":1,\"version\":1}", "each key once" },
		{ "{\"version\":1} x", "expected" },
		{ "{\"version\":1", "expected" },
		{ "{\"version\":1,\"record\":\"/x\"}", "a request has no key 'record'" },
		{ "{\"version\":1,\"here\":{}}", "a request has no key 'here'" },
		{ "{\"arguments\":[\"--\",\"true\"]}", "an earlier bawn wrote it" },
		{ "{\"version\":1,\"command\":null}", "expected" },
		{ "{\"version\":1,\"command\":\"true\"}", "expected" },
		{ "{\"version\":1,\"command\":[1]}", "expected" },
		{ "{\"version\":1,\"command\":[[]]}", "expected" },
		{ "{\"version\":1,\"command\":[\"a\\u0000b\"]}", "expected" },
		{ "{\"version\":1,\"sync\":1}", "expected" },
		{ "{\"version\":1,\"subjects\":[null]}", "expected" },
		{ "{\"version\":1,\"settings\":{}}", "expected" },
		{ "{\"version\":1,\"settings\":[{}]}", "key and value" },
		{ "{\"version\":1,\"settings\":[{\"key\":\"name\"}]}", "key and value" },
		{ "{\"version\":1,\"settings\":[{\"key\":\"name\",\"value\":1}]}", "expected" },
		{ "{\"version\":1,\"settings\":[{\"key\":\"name\",\"value\":\"a\",\"x\":1}]}",
			"a setting has no key 'x'" },
		{ "{\"version\":1,\"settings\":[{\"key\":\"nme\",\"value\":\"a\"}]}",
			"a spec has no key 'nme'" },
		{ "{\"version\":1,\"settings\":[{\"key\":\"command\",\"value\":\"a\"}]}",
			"a spec has no key 'command'" },
		/* Only a policy has it. */
		{ "{\"version\":1,\"settings\":[{\"key\":\"trusted_projects\",\"value\":\"/\"}]}",
			"a spec has no key 'trusted_projects'" },
	};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		own(run_request) struct run_request got;
		struct err e = { 0 };

		CHECK(run_request_read(bad[i].text, strlen(bad[i].text), &got, &e) == -EBADMSG);
		CHECK(e.kind == ERR_USE && strstr(e.text, "cannot read the request: ") == e.text);
		if (!strstr(e.text, bad[i].part))
			CHECK_STR(e.text, bad[i].part);
	}
}

/* --- bounds --- */

static void test_too_many(void)
{
	own_free const char **many = calloc(RUN_REQUEST_WORDS + 1, sizeof(*many));
	own(buf) struct buf text = { .max = RUN_REQUEST_SIZE };
	own(run_request) struct run_request q, got;
	struct err e = { 0 };

	run_request_init(&q);
	if (!many)
		return;
	for (size_t i = 0; i <= RUN_REQUEST_WORDS; i++)
		many[i] = "x";
	q.command = many;
	q.command_count = RUN_REQUEST_WORDS;
	CHECK(run_request_print(&q, &text, &e) == 0);
	CHECK(run_request_read(buf_text(&text), text.len, &got, &e) == 0);
	CHECK(got.command_count == RUN_REQUEST_WORDS);
	q.command_count++;
	CHECK(run_request_print(&q, &text, &e) == -E2BIG && e.text[0]);
	for (size_t i = 0; i < RUN_REQUEST_SETTINGS; i++)
		CHECK(run_request_set(&q, SPEC_NAME, "--name", "x", &e) == 0);
	CHECK(run_request_set(&q, SPEC_NAME, "--name", "x", &e) == -E2BIG && e.text[0]);
}

static void test_too_long(void)
{
	own_free char *word = calloc(1, RUN_REQUEST_TEXT + 2);
	const char *words[20];
	own(buf) struct buf text = { .max = RUN_REQUEST_SIZE };
	own(run_request) struct run_request q, got;
	struct err e = { 0 };

	run_request_init(&q);
	run_request_init(&got);
	if (!word)
		return;
	memset(word, 'x', RUN_REQUEST_TEXT);
	for (size_t i = 0; i < COUNT_OF(words); i++)
		words[i] = word;
	q.command = words;
	q.command_count = COUNT_OF(words);
	CHECK(run_request_print(&q, &text, &e) == -E2BIG && strstr(e.text, "as JSON"));
	q.command_count = 1;
	word[RUN_REQUEST_TEXT] = 'x';
	CHECK(run_request_print(&q, &text, &e) == -E2BIG && strstr(e.text, "one of its arguments"));
	CHECK(run_request_read(word, RUN_REQUEST_SIZE + 1, &got, &e) == -EBADMSG);
}

/* --- what is not for everybody --- */

static void test_places(void)
{
	own(run_request) struct run_request q;
	struct err e = { 0 };

	run_request_init(&q);
	CHECK(!run_request_find_local(&q) && !run_request_find_fixed(&q));
	q.here.tty = RUN_TTY_NEVER;
	CHECK(!run_request_find_local(&q));
	q.here.cast = "x";
	CHECK_STR(run_request_find_local(&q), "cast");
	CHECK(run_request_set(&q, SPEC_LIMITS_CPU, "--cpus", "1", &e) == 0);
	CHECK(!run_request_find_fixed(&q));
	CHECK(run_request_set(&q, SPEC_ENGINE, "engine", "x", &e) == 0);
	CHECK_STR(run_request_find_fixed(&q), "engine");
	q.here.is_trusted = true;
	CHECK_STR(run_request_find_fixed(&q), "trust");
}

int main(void)
{
	test_round();
	test_least();
	test_bad();
	test_too_many();
	test_too_long();
	test_places();
	return check_report();
}
