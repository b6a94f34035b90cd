/* Records as anybody may have written them. */
#include "proof/record/record_read.h"

#include <errno.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define STATEMENT(type, predicate)                                                                 \
	"{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"effects\","       \
	"\"digest\":{\"sha256\":\"" A "\"}}],\"predicateType\":\"" type                            \
	"\",\"predicate\":" predicate "}"

#define RECORD(predicate) STATEMENT("urn:bawn:record:v1", predicate)

/* All that must be there. */
#define SMALL                                                                                      \
	"\"version\":1,\"run\":\"20261116-112233-0a1b2c3d\",\"bawn\":\"0.1.0\","                   \
	"\"engine\":\"kernel\",\"level\":\"custom\",\"in_chain\":false,\"spec_sha256\":\"" A       \
	"\",\"plan_sha256\":\"" B "\",\"outcome\":\"refused\",\"began\":\"2026-11-16T11:22:33Z\"," \
	"\"log\":{\"events\":0,\"last\":\"" A "\"},\"guarantees\":{},\"degraded\":[]"

static const char large[] = RECORD(
	"{\"version\":1,\"run\":\"20261116-112233-0a1b2c3d\",\"session\":null,\"worker\":null,\"lease\":0,\"cage\":null,\"bawn\":\"0.1.0\","
	"\"kernel\":\"6.1.0\",\"landlock_abi\":2,\"engine\":\"kernel\",\"name\":\"one\","
	"\"level\":\"hardened\",\"level_reasons\":\"\",\"self_governance\":\"~/own\",\"in_chain\":true,\"spec_sha256\":\"" A
	"\",\"plan_sha256\":\"" B "\",\"filter_sha256\":\"" A "\",\"preflight_sha256\":\"" B
	"\",\"preflight_passed\":true,\"preflight_by\":\"bawn\",\"warm\":true,\"image\":{\"name\":\"dir:/r\","
	"\"sha256\":\"" A "\"},\"project\":{\"sha256\":\"" B "\",\"files\":3,\"bytes\":99},"
	"\"capture\":\"disk\",\"terminal\":true,\"escapes_dropped\":4,\"outcome\":\"exited\","
	"\"status\":7,\"began\":\"2026-11-16T11:22:33.000001Z\",\"ended\":\"2026-11-16T11:22:34Z\","
	"\"start_us\":5,\"run_us\":6,\"used\":{\"memory_peak\":1,\"cpu_us\":2,\"processes_peak\":3,"
	"\"written\":4,\"printed\":5,\"later\":[{}]},\"log\":{\"events\":12,\"last\":\"" B "\"},"
	"\"events\":[{\"type\":\"limit_hit\",\"times\":3,\"text\":\"\\udcff\"}, {\"type\":\"x\"}],"
	"\"effects\":{\"sha256\":\"" A "\",\"added\":1,\"changed\":2,\"deleted\":3,\"renamed\":4,"
	"\"runs_on_host\":5},\"overlay\":{\"path\":\"/o\",\"size\":9,\"sha256_before\":null,"
	"\"sha256_after\":\"" B "\",\"saved\":true,\"full\":false,\"skipped\":1},"
	"\"guarantees\":{\"fs.root\":{\"need\":\"must\",\"declared\":\"yes\",\"holds\":true,"
	"\"vantage\":\"outside\",\"seen\":\"s\"},\"groups\":{\"need\":\"may\",\"declared\":\"yes\","
	"\"holds\":false,\"vantage\":\"none\",\"seen\":\"\"},\"later\":{\"need\":\"may\","
	"\"holds\":true,\"vantage\":\"inside\"}},\"degraded\":[\"groups\"],"
	"\"skipped\":[{\"op\":\"bind\",\"a\":\"/a\",\"b\":null,\"why\":\"no\"}],"
	"\"skipped_count\":1,\"later\":{\"a\":[1,2]}}");

static struct arena arena;

static int read_text(const char *text, struct record_read *ret, struct err *e)
{
	struct record_statement statement;

	*e = (struct err){ 0 };
	return record_read(text, strlen(text), &arena, &statement, ret, e);
}

static void test_large(void)
{
	struct record_statement s;
	struct record_read r;
	struct err e = { 0 };

	CHECK(record_read(large, strlen(large), &arena, &s, &r, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(s.subjects.count == 1);
	CHECK_STR(s.subjects.items[0].name, "effects");
	CHECK_STR(s.subjects.items[0].sha256, A);
	CHECK_STR(r.run, "20261116-112233-0a1b2c3d");
	CHECK(!r.session && r.in_chain && r.is_hardened && r.preflight_passed && r.has_terminal);
	CHECK(r.is_warm);
	CHECK_STR(r.self_governance, "~/own");
	CHECK_STR(r.plan_sha256, B);
	CHECK_STR(r.image.sha256, A);
	CHECK(r.project.files == 3 && r.project.bytes == 99 && r.escapes_dropped == 4);
	CHECK(r.outcome == RECORD_EXITED && r.status == 7 && r.signal == -1);
	CHECK(r.used.memory_peak == 1 && r.used.printed == 5 && r.log.events == 12);
	CHECK(r.events.count == 2 && r.events.items[0].times == 3 && r.events.items[1].times == -1);
	CHECK_STR(r.events.items[0].text, "\xff");
	CHECK(r.events.items[1].size >= 12 && strstr(r.events.items[1].bytes, "{\"type\":\"x\"}"));
	CHECK(r.effects.renamed == 4 && r.overlay.is_saved && !r.overlay.sha256_before);
	CHECK(r.guarantees.count == 3 && r.guarantees.items[0].is_must);
	CHECK(record_read_find(&r, "groups") && !record_read_find(&r, "groups")->holds);
	CHECK(!record_read_find(&r, "net.none"));
	CHECK(r.degraded.count == 1 && r.skipped.count == 1 && r.skipped_count == 1);
	CHECK(!r.skipped.items[0].b);
}

static void test_small(void)
{
	struct record_read r;
	struct err e;

	CHECK(read_text(RECORD("{" SMALL "}"), &r, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(!r.in_chain && r.outcome == RECORD_REFUSED && r.status == -1);
	CHECK(!r.image.name && !r.effects.sha256 && !r.overlay.path && !r.events.count);
	CHECK(r.landlock_abi == -1 && r.used.cpu_us == -1 && r.skipped_count == -1);
	CHECK(read_text(RECORD("{" SMALL ",\"image\":null,\"overlay\":null,\"effects\":null}"), &r,
		      &e) == 0);
}

static void test_bad(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "a map" },
		{ "{}", "expected _type" },
		{ "[]", "a map" },
		{ "{\"_type\":\"https://in-toto.io/Statement/v0.1\"}", "an in-toto statement" },
		{ STATEMENT("urn:bawn:record:v3", "{" SMALL "}"), "no record of a run" },
		{ RECORD("{" SMALL "}") "x", "the end" },
		{ RECORD("{" SMALL ",\"run\":\"20261116-112233-0a1b2c3d\"}"), "each key once" },
		{ RECORD("{" SMALL ",\"filter_sha256\":\"abc\"}"), "a SHA-256" },
		{ RECORD("{" SMALL ",\"status\":-1}"), "not negative" },
		{ RECORD("{" SMALL ",\"status\":1.5}"), "an integer" },
		{ RECORD("{" SMALL ",\"terminal\":1}"), "true or false" },
		{ RECORD("{" SMALL ",\"overlay\":{\"size\":1}}"), "path" },
		{ RECORD("{" SMALL ",\"effects\":{\"sha256\":\"" A "\",\"error\":\"e\"}}"),
			"effects or an error" },
		{ RECORD("{" SMALL ",\"events\":[{\"times\":1}]}"), "type" },
		{ RECORD("{" SMALL ",\"skipped\":[{}]}"), "op" },
		{ RECORD("{\"version\":2}"), "version 1" },
		{ STATEMENT("urn:bawn:record:v2", "{\"version\":1}"), "version 2" },
		{ RECORD("{}"), "expected version" },
		{ RECORD("null"), "expected predicate" },
		{ "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[],"
		  "\"predicateType\":\"a\",\"predicate\":{}}",
			"a subject" },
		{ "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"a\"}],"
		  "\"predicateType\":\"a\",\"predicate\":{}}",
			"a subject's name and SHA-256" },
		{ "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"name\":\"a\","
		  "\"digest\":{\"sha256\":\"" A "\"}},{\"name\":\"a\",\"digest\":{\"sha256\":\"" B
		  "\"}}],\"predicateType\":\"a\",\"predicate\":{}}",
			"each subject once" },
	};
	struct record_read r;
	struct err e;

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		CHECK(read_text(bad[i].text, &r, &e) == -EBADMSG);
		CHECK(strstr(e.text, bad[i].says) != NULL);
		if (!strstr(e.text, bad[i].says))
			printf("%zu: %s\n", i, e.text);
	}
}

/* A member that must be there, given another value or name. */
static void test_changed(void)
{
	static const struct {
		const char *from, *to, *says;
	} changes[] = {
		{ "\"run\"", "\"ran\"", "run" },
		{ "20261116-112233-0a1b2c3d", "20261116-112233-0a1b2c3", "a run's id" },
		{ "20261116-112233-0a1b2c3d", "../../../../etc/passwd00", "a run's id" },
		{ "\"in_chain\":true", "\"in_chain\":null", "in_chain" },
		{ "\"level\":\"hardened\"", "\"level\":\"hard\"", "a known word" },
		{ "\"exited\"", "\"left\"", "a known word" },
		{ "\"status\":7,", "", "a status" },
		{ "\"degraded\":[\"groups\"]", "\"degraded\":[null]", "a text" },
		{ "\"degraded\":[\"groups\"]", "\"degraded\":\"groups\"", "a list" },
		{ "\"vantage\":\"outside\"", "\"vantage\":\"none\"", "a vantage" },
		{ "\"vantage\":\"outside\"", "\"vantage\":\"far\"", "a known word" },
		{ "\"need\":\"must\"", "\"need\":\"none\"", "a known word" },
		{ "\"groups\":{", "\"fs.root\":{", "each guarantee once" },
		{ "\"events\":12", "\"events\":null", "events" },
	};
	struct record_read r;
	struct err e;

	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		own(buf) struct buf text = { .max = 65536 };
		const char *at = strstr(large, changes[i].from);

		CHECK(at != NULL);
		if (!at)
			continue;
		buf_add(&text, large, (size_t)(at - large));
		buf_puts(&text, changes[i].to);
		buf_puts(&text, at + strlen(changes[i].from));
		CHECK(read_text(buf_text(&text), &r, &e) == -EBADMSG);
		CHECK(strstr(e.text, changes[i].says) != NULL);
		if (!strstr(e.text, changes[i].says))
			printf("%zu: %s\n", i, e.text);
	}
}

/* Whatever its beginning, it is no record; and after a failure there is nothing to stumble over. */
static void test_cut(void)
{
	struct record_statement s;
	struct record_read r;
	struct err e;

	for (size_t n = 0; n < strlen(large); n++) {
		own_free char *part = malloc(n ? n : 1);

		CHECK(part != NULL);
		if (!part)
			continue;
		memcpy(part, large, n);
		e = (struct err){ 0 };
		CHECK(record_read(part, n, &arena, &s, &r, &e) < 0 && e.text[0]);
		CHECK(!s.subjects.count || !r.guarantees.count);
	}
}

/* Many are read, more than a list may have are not, and neither takes more than the arena has. */
static void test_many(void)
{
	static const size_t counts[] = { 1, 3, 4, 5, 8, 1000, 100000 };
	struct record_read r;
	struct err e;

	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		own(buf) struct buf text = { .max = RECORD_MAX_SIZE };
		own(arena) struct arena own_arena;
		struct record_statement s;
		int ret;

		arena_init(&own_arena, RECORD_READ_MEMORY);
		buf_puts(&text, "{" SMALL ",\"events\":[");
		for (size_t k = 0; k < counts[i]; k++)
			buf_printf(&text, "%s{\"type\":\"t%zu\"}", k ? "," : "", k);
		buf_puts(&text, "]}");
		CHECK(!text.failed);
		s = (struct record_statement){ .type = RECORD_PREDICATE_V1,
			.predicate = buf_text(&text),
			.predicate_size = text.len };
		ret = record_read_predicate(&s, &own_arena, &r, &e);
		CHECK(counts[i] > 65536 ? ret == -EBADMSG : ret == 0);
		for (size_t k = 0; ret == 0 && k < r.events.count; k++)
			CHECK(strtoul(r.events.items[k].type + 1, NULL, 10) == k);
	}
}

/* What version 2 does not say goes without saying. */
static void test_second(void)
{
	static const char text[] = STATEMENT("urn:bawn:record:v2",
		"{\"version\":2,\"run\":\"20261116-112233-0a1b2c3d\",\"bawn\":\"0.1.0\","
		"\"engine\":\"native\",\"level\":\"hardened\",\"spec_sha256\":\"" A
		"\",\"plan_sha256\":\"" B
		"\",\"began\":\"2026-11-16T11:22:33Z\",\"outcome\":\"exited\","
		"\"status\":0,\"output\":{\"stdout\":{\"bytes\":0}},\"effects\":{\"added\":2},"
		"\"guarantees\":{\"seen\":{\"groups\":\"s\"},\"must\":{\"outside\":[\"fs.root\",\"ids\"],"
		"\"inside\":[\"landlock\"]},\"may\":{\"missing\":{\"groups\":\"none\"}},"
		"\"declared\":{\"ids\":\"1\"}},\"log\":{\"events\":3,\"last\":\"" A "\"}}");
	const struct record_read_guarantee *g;
	struct record_read r;
	struct err e;

	CHECK(read_text(text, &r, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(r.version == 2 && r.in_chain && r.is_hardened && !r.session && r.lease == 0);
	CHECK_STR(r.effects.sha256, A);
	CHECK(r.effects.added == 2 && r.effects.deleted == 0);
	CHECK(r.output.streams[0].sha256 && r.output.streams[1].bytes < 0);
	CHECK_STR(r.image.name, "host");
	CHECK(r.guarantees.count == 4 && r.degraded.count == 1);
	CHECK_STR(r.degraded.items[0], "groups");
	g = record_read_find(&r, "ids");
	CHECK(g && g->is_must && g->holds && g->vantage == RECORD_OUTSIDE);
	CHECK_STR(g->declared, "1");
	CHECK_STR(record_read_find(&r, "fs.root")->declared, "yes");
	g = record_read_find(&r, "groups");
	CHECK(g && !g->is_must && !g->holds && g->vantage == RECORD_UNSEEN);
	CHECK_STR(g->seen, "s");
}

static void test_second_bad(void)
{
	static const struct {
		const char *guarantees, *says;
	} bad[] = {
		{ "{\"must\":{\"outside\":[\"a\",\"a\"]}}", "each guarantee once" },
		{ "{\"must\":{\"outside\":[\"a\"]},\"may\":{\"missing\":{\"a\":\"none\"}}}",
			"each guarantee once" },
		{ "{\"must\":{\"beside\":[\"a\"]}}", "a vantage" },
		{ "{\"must\":{\"none\":[\"a\"]}}", "a vantage" },
		{ "{\"must\":{\"missing\":{\"a\":\"far\"}}}", "a known word" },
		{ "{\"must\":[\"a\"]}", "" },
		{ "{\"must\":{\"outside\":[1]}}", "" },
		{ "{\"seen\":{\"a\":\"b\"}}", "guarantees that are named" },
		{ "{\"declared\":{\"a\":null}}", "a text" },
	};
	struct record_read r;
	struct err e;

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		own(buf) struct buf text = { .max = 4096 };

		buf_printf(&text,
			STATEMENT("urn:bawn:record:v2",
				"{\"version\":2,\"run\":\"20261116-112233-0a1b2c3d\",\"bawn\":\"0\","
				"\"engine\":\"native\",\"level\":\"hardened\",\"spec_sha256\":\"" A
				"\",\"plan_sha256\":\"" B
				"\",\"began\":\"2026\",\"outcome\":\"refused\","
				"\"guarantees\":%s,\"log\":{\"events\":3,\"last\":\"" A "\"}}"),
			bad[i].guarantees);
		CHECK(read_text(buf_text(&text), &r, &e) == -EBADMSG);
		CHECK(strstr(e.text, bad[i].says) != NULL);
		if (!strstr(e.text, bad[i].says))
			printf("%zu: %s\n", i, e.text);
	}
}

static void test_provenance(void)
{
	static const char text[] = STATEMENT("https://slsa.dev/provenance/v1",
		"{\"buildDefinition\":{\"buildType\":\"urn:bawn:run:v1\",\"externalParameters\":{"
		"\"name\":\"one\",\"spec\":{\"sha256\":\"" A "\"},\"level\":\"hardened\"},"
		"\"internalParameters\":{\"plan\":{\"sha256\":\"" B "\"},\"filter\":null,"
		"\"engine\":\"kernel\"},\"resolvedDependencies\":[{\"name\":\"image\","
		"\"digest\":{\"sha256\":\"" A "\"}},{\"name\":\"host\"}]},\"runDetails\":{"
		"\"builder\":{\"id\":\"urn:bawn:keeper:v1\",\"version\":{\"bawn\":\"0.1.0\"}},"
		"\"metadata\":{\"invocationId\":\"20261116-112233-0a1b2c3d\",\"startedOn\":\"s\"},"
		"\"byproducts\":[]}}");
	struct record_provenance p;
	struct record_statement s;
	struct record_read r;
	struct err e = { 0 };

	CHECK(record_read_statement(text, strlen(text), &arena, &s, &e) == 0);
	CHECK(record_read_provenance(&s, &arena, &p, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK_STR(p.spec_sha256, A);
	CHECK_STR(p.plan_sha256, B);
	CHECK_STR(p.run, "20261116-112233-0a1b2c3d");
	CHECK(!p.filter_sha256 && !p.ended && !p.byproducts.count);
	CHECK(p.dependencies.count == 2 && !p.dependencies.items[1].sha256);
	/* One is not the other. */
	CHECK(record_read_predicate(&s, &arena, &r, &e) == -EBADMSG);
	CHECK(record_read_statement(large, strlen(large), &arena, &s, &e) == 0);
	CHECK(record_read_provenance(&s, &arena, &p, &e) == -EBADMSG && !p.build_type);
}

int main(void)
{
	arena_init(&arena, (size_t)64 << 20);
	test_large();
	test_small();
	test_bad();
	test_changed();
	test_cut();
	test_many();
	test_second();
	test_second_bad();
	test_provenance();
	arena_done(&arena);
	return check_report();
}
