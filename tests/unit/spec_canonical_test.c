/* The canonical form: equal for equal meanings, different for different ones. */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "is_json.h"
#include "make_spec.h"

static struct spec spec, other, again;

static bool is_reread(const char *form)
{
	struct err e = { 0 };
	bool is_so;

	spec_init(&again);
	is_so = spec_read_canonical(&again, form, strlen(form), &e) == 0;
	CHECK(is_so == (e.kind == ERR_NONE));
	if (is_so)
		CHECK_STR(canonical_of(&again), form);
	spec_done(&again);
	return is_so;
}

static void check_same(const char *a, const char *b)
{
	CHECK(make_spec(&spec, a) && make_spec(&other, b));
	CHECK_STR(first_said(&spec), "");
	CHECK_STR(first_said(&other), "");
	CHECK_STR(canonical_of(&spec), canonical_of(&other));
	CHECK(is_json(canonical_of(&spec)));
	CHECK(is_reread(canonical_of(&spec)));
	spec_done(&spec);
	spec_done(&other);
}

/* Without keys that came later it means what it meant; without any other it is none. */
static void test_earlier(void)
{
	static const char *const keys[] = { "\"toolchains\":[],", ",\"record.output\":\"digest\"",
		"\"relaxed\":false,", ",\"audit.watch_protected\":false" };
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		own(buf) struct buf form = { .max = 10000 };
		const char *whole, *at;

		CHECK(make_spec(&spec, "version: 1\nname: a\n"));
		whole = canonical_of(&spec);
		at = strstr(whole, keys[i]);
		CHECK(at != NULL);
		if (!at)
			continue;
		buf_add(&form, whole, (size_t)(at - whole));
		buf_puts(&form, at + strlen(keys[i]));
		spec_init(&again);
		e = (struct err){ 0 };
		CHECK((spec_read_canonical(&again, buf_text(&form), form.len, &e) == 0) == (i < 2));
		if (i < 2)
			CHECK_STR(canonical_of(&again), whole);
		spec_done(&again);
		spec_done(&spec);
	}
}

static void test_equal(void)
{
	static const char *const rows[][2] = {
		{ "version: 1\nname: a\nagent: b\n",
			"# note\nagent: b\nname: \"a\"\nversion: 1\n" },
		{ "version: 1\nlimits: {memory: 2G}\n", "version: 1\nlimits:\n  memory: 2048MB\n" },
		{ "version: 1\nlimits: {memory: 4096}\n",
			"version: 1\nlimits: {memory: \"4K\"}\n" },
		{ "version: 1\nlimits: {time: 90m}\n", "version: 1\nlimits: {time: 1h30m}\n" },
		{ "version: 1\nlimits: {cpu: 1.50}\n", "version: 1\nlimits: {cpu: 1.5}\n" },
		{ "version: 1\nnetwork: {allow: [b.org:443, a.org:80]}\n",
			"version: 1\nnetwork: {allow: [\"A.ORG.:80/http\", b.org:443/tls, "
			"a.org:80]}\n" },
		{ "version: 1\nnetwork: {allow: [\"[2001:db8:0::1]:22\"]}\n",
			"version: 1\nnetwork: {allow: [\"[2001:DB8::1/128]:22/tcp\"]}\n" },
		{ "version: 1\nnetwork: {publish: [\"80:80\"]}\n",
			"version: 1\nnetwork: {publish: [\"127.0.0.1:80:80\"]}\n" },
		{ "version: 1\nnetwork: {host_ports: [2, 1, 2]}\n",
			"version: 1\nnetwork: {host_ports: [1, 2]}\n" },
		{ "version: 1\nbinds: [~/a//b/:/x, /c:/d:ro]\n",
			"version: 1\nbinds: [{to: /d, from: /c}, {from: ~/a/b, to: /x/, mode: "
			"ro}]\n" },
		{ "version: 1\nbinds: [./lib:/x]\n", "version: 1\nbinds: [lib/:/x:ro]\n" },
		{ "version: 1\nenv: {set: {A: x, B: y}, pass: [P, Q]}\n",
			"version: 1\nenv: {pass: [Q, P], set: {B: y, A: x}}\n" },
		{ "version: 1\nproject: {read_allowlist: [$PROJECT/b, $PROJECT/a/**]}\n",
			"version: 1\nproject: {read_allowlist: [$PROJECT/a//**, $PROJECT/./b]}\n" },
		{ "version: 1\nproject: {protect: [./x/, y]}\n",
			"version: 1\nproject: {protect: [y, $PROJECT/x]}\n" },
		{ "version: 1\n",
			"version: 1\nengine: auto\nrelaxed: false\nproject: {path: ./, at: /work}\n"
			"session: {ttl: 60m}\nsyscalls: default\nbinds: []\n" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_same(rows[i][0], rows[i][1]);
}

/* It does not matter who says it. */
static void test_any_layer(void)
{
	static const char policy[] = "version: 1\ndefaults: {limits: {memory: 3G}, name: n}\n";
	static const char file[] = "version: 1\nlimits: {memory: 3G}\nname: n\n";
	const char *from_file;

	CHECK(make_spec(&spec, file));
	from_file = canonical_of(&spec);
	CHECK(make_layers(&other, policy, NULL, NULL, false));
	CHECK_STR(canonical_of(&other), from_file);
	spec_done(&other);
	CHECK(make_layers(&other, NULL, policy, NULL, false));
	CHECK_STR(canonical_of(&other), from_file);
	spec_done(&other);
	spec_init(&other);
	spec_add_option(&other, SPEC_LIMITS_MEMORY, "--memory", "3072M");
	spec_add_option(&other, SPEC_NAME, "--name", "n");
	CHECK(spec_settle(&other));
	CHECK_STR(canonical_of(&other), from_file);
	spec_done(&other);
	spec_done(&spec);
}

/* --- every key counts --- */

static const char *const other_values[SPEC_KEY_COUNT] = {
	[SPEC_NAME] = "other",
	[SPEC_AGENT] = "other",
	[SPEC_COMMAND] = "word",
	[SPEC_STARTUP_COMMANDS] = "word",
	[SPEC_STARTUP_PROMPTS] = "word",
	[SPEC_WORKDIR] = "/other",
	[SPEC_FILES] = "/etc/other=1",
	[SPEC_INITIAL_FILES] = "/etc/other=1",
	[SPEC_STATE] = "/home/agent/.other",
	[SPEC_ENGINE] = "native",
	[SPEC_ENGINE_ARGS] = "word",
	[SPEC_RELAXED] = "true",
	[SPEC_FAKEROOT] = "true",
	[SPEC_ROOT_IMAGE] = "dir:/srv/image",
	[SPEC_ROOT_OVERLAY] = "/srv/overlay",
	[SPEC_ROOT_OVERLAY_SIZE] = "3M",
	[SPEC_ROOT_OVERLAY_CREATE] = "false",
	[SPEC_PROJECT_PATH] = "sub",
	[SPEC_PROJECT_AT] = "/other",
	[SPEC_PROJECT_MODE] = "writable",
	[SPEC_PROJECT_CAGE] = "project",
	[SPEC_PROJECT_GIT] = "none",
	[SPEC_PROJECT_READ] = "$PROJECT/other/**",
	[SPEC_PROJECT_WRITE] = "$PROJECT/other/**",
	[SPEC_PROJECT_PROTECT] = "other",
	[SPEC_BINDS] = "/a:/b",
	[SPEC_ENV_PASS] = "OTHER",
	[SPEC_ENV_SET] = "OTHER=1",
	[SPEC_NETWORK_MODE] = "host",
	[SPEC_NETWORK_ALLOW] = "other.example:1",
	[SPEC_NETWORK_HOST_PORTS] = "3",
	[SPEC_NETWORK_PUBLISH] = "3:3",
	[SPEC_SECRETS] = "name=a host=a.example:443 header=x-key from=env:KEY",
	[SPEC_LIMITS_MEMORY] = "3M",
	[SPEC_LIMITS_CPU] = "3",
	[SPEC_LIMITS_PIDS] = "3",
	[SPEC_LIMITS_DISK] = "3M",
	[SPEC_LIMITS_TIME] = "3s",
	[SPEC_LIMITS_OUTPUT] = "3M",
	[SPEC_LIMITS_OUTPUT_THEN] = "end",
	[SPEC_LIMITS_FILES] = "3",
	[SPEC_SYSCALLS] = "strict",
	[SPEC_PREFLIGHT_ALLOW] = "/other",
	[SPEC_ALLOW_DEGRADED] = "home",
	[SPEC_SESSION_TTL] = "3s",
	[SPEC_TOOLS] = "true",
	[SPEC_TOOLCHAINS] = "cargo",
	[SPEC_SESSION_BACKGROUND] = "true",
	[SPEC_AUDIT_STRICT_BINDS] = "true",
	[SPEC_AUDIT_DIGEST_PROJECT] = "true",
	[SPEC_AUDIT_WATCH_PROTECTED] = "true",
	[SPEC_RECORD_OUTPUT] = "keep",
};

static void test_every_key_counts(void)
{
	static char *forms[SPEC_KEY_COUNT + 1];
	size_t n = 0;

	CHECK(make_layers(&spec, NULL, NULL, NULL, false));
	forms[n++] = strdup(canonical_of(&spec));
	spec_done(&spec);
	for (enum spec_key k = SPEC_VERSION + 1; k < SPEC_KEY_COUNT; k++) {
		char member[80];

		if (spec_keys[k].tighten == SPEC_OPERATOR_ONLY)
			continue;
		check_that(other_values[k] != NULL, spec_keys[k].path, __FILE__, __LINE__);
		spec_init(&spec);
		spec_add_option(&spec, k, "--x", other_values[k] ? other_values[k] : "");
		check_that(spec_settle(&spec), spec_keys[k].path, __FILE__, __LINE__);
		snprintf(member, sizeof(member), ",\"%s\":", spec_keys[k].path);
		check_that(strstr(canonical_of(&spec), member) != NULL, spec_keys[k].path, __FILE__,
			__LINE__);
		forms[n++] = strdup(canonical_of(&spec));
		spec_done(&spec);
	}
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			check_that(!str_eq(forms[i], forms[j]), forms[i], __FILE__, __LINE__);
	for (size_t i = 0; i < n; i++)
		free(forms[i]);
}

/* --- different meanings --- */

static void check_differ(const char *a, const char *b)
{
	bool is_good = make_spec(&spec, a), is_other_good = make_spec(&other, b);

	check_that(!is_good || !is_other_good || !str_eq(canonical_of(&spec), canonical_of(&other)),
		b, __FILE__, __LINE__);
	spec_done(&spec);
	spec_done(&other);
}

static void test_different(void)
{
	/* The order of a list, as against that of a set, means something. */
	check_differ("version: 1\ncommand: [a, b]\n", "version: 1\ncommand: [b, a]\n");
	check_differ("version: 1\ncommand: [\"a, b\"]\n", "version: 1\ncommand: [a, b]\n");
	check_differ("version: 1\nproject: {write_allowlist: []}\n", "version: 1\n");
	check_differ("version: 1\nbinds: [/a:/b]\n", "version: 1\nbinds: [/a:/b:rw]\n");
	check_differ("version: 1\nnetwork: {allow: [a.org:443]}\n",
		"version: 1\nnetwork: {allow: [a.org:443/tcp]}\n");
	/* A limit that is declared must hold; the same number as a default need not. */
	check_differ("version: 1\n", "version: 1\nlimits: {memory: 8G}\n");
	/* Two other binds, whose parts are joined by the same colons. */
	check_differ("version: 1\nbinds: [{from: /a, to: \"/b:/c\"}]\n",
		"version: 1\nbinds: [{from: \"/a:/b\", to: /c}]\n");
}

/* Bytes that are not UTF-8 come from the command line only, and are told apart too. */
static void test_odd_bytes(void)
{
	bool is_good, is_other_good;

	spec_init(&spec);
	spec_init(&other);
	spec_add_option(&spec, SPEC_ENV_SET, "-e", "A=\xff");
	spec_add_option(&other, SPEC_ENV_SET, "-e", "A=\xfe");
	is_good = spec_settle(&spec);
	is_other_good = spec_settle(&other);
	CHECK(!is_good || !is_other_good || !str_eq(canonical_of(&spec), canonical_of(&other)));
	CHECK(is_json(canonical_of(&spec)));
	spec_done(&spec);
	spec_done(&other);
}

/* What reads back is what was written, and nothing that only resembles it. */
static void test_reread(void)
{
	static const struct {
		const char *from, *to;
	} changes[] = {
		{ "\"version\":1", "\"version\":2" },
		{ "\"fakeroot\":false", "\"fakeroot\":0" },
		{ "\"fakeroot\":false", "\"fakeroot\":null" },
		{ "\"fakeroot\"", "\"fakeroots\"" },
		{ "\"engine\":\"auto\"", "\"engine\":\"none\"" },
		{ "\"engine\":\"auto\"", "\"engine\": \"auto\"" },
		{ "[\"/a:/b:ro\",\"/c:/d:rw\"]", "[\"/c:/d:rw\",\"/a:/b:ro\"]" },
		{ "[\"/a:/b:ro\",\"/c:/d:rw\"]", "\"/a:/b:ro\"" },
		{ "\"limits.memory\":2147483648", "\"limits.memory\":\"2G\"" },
		{ "}\n", "}" },
		{ "}\n", "}\n\n" },
	};
	const char *form;

	CHECK(make_spec(&spec, "version: 1\nbinds: [/a:/b, /c:/d:rw]\nlimits: {memory: 2G}\n"));
	form = canonical_of(&spec);
	CHECK(is_reread(form));
	CHECK(!is_reread("") && !is_reread("{}") && !is_reread("[]"));
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		const char *at = strstr(form, changes[i].from);
		own(buf) struct buf changed = { .max = 8192 };

		CHECK(at);
		if (!at)
			continue;
		buf_add(&changed, form, (size_t)(at - form));
		buf_puts(&changed, changes[i].to);
		buf_puts(&changed, at + strlen(changes[i].from));
		CHECK(!is_reread(buf_text(&changed)));
	}
	spec_done(&spec);
	/* Paths that the grammar of options has no words for. */
	CHECK(make_spec(&spec,
		"version: 1\nbinds: [{from: './a:b', to: '/c:d', mode: rw}, {from: '/e\\', to: /f},"
		" {from: '/g\\h:i', to: /j}, {from: ., to: /k}, {from: './~', to: /l}]\n"
		"preflight_allow: ['./~', ., ~/.x]\nsyscalls: p.json\n"
		"root: {image: 'dir:./a:b', overlay: ./o}\n"));
	CHECK(is_reread(canonical_of(&spec)));
	spec_done(&spec);
}

int main(void)
{
	test_equal();
	test_earlier();
	test_any_layer();
	test_every_key_counts();
	test_different();
	test_odd_bytes();
	test_reread();
	return check_report();
}
