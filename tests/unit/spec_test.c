/* The table of keys, values from files and options, the canonical form and the schema. */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "is_json.h"
#include "make_spec.h"
#include "spec/spec_grammar.h"

static struct spec spec, other;

/* --- the table --- */

static size_t count_choices(enum spec_key key)
{
	size_t n = 0;

	while (spec_keys[key].choices[n])
		n++;
	return n;
}

static void test_rows(void)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		const struct spec_key_def *def = &spec_keys[k];
		bool has_grammar = spec_is_list(def->type) || def->type == SPEC_TYPE_TEXT;

		if (!def->path) {
			CHECK(def->path);
			continue;
		}
		check_that(def->doc && str_ends(def->doc, "."), def->path, __FILE__, __LINE__);
		check_that(def->example && *def->example, def->path, __FILE__, __LINE__);
		check_that(spec_key_find(def->path) == k, def->path, __FILE__, __LINE__);
		check_that((def->grammar != SPEC_GRAMMAR_NONE) == has_grammar, def->path, __FILE__,
			__LINE__);
		check_that((def->choices != NULL) == (def->type == SPEC_TYPE_CHOICE), def->path,
			__FILE__, __LINE__);
		check_that(def->type != SPEC_TYPE_CHOICE || (def->def && count_choices(k) > 1),
			def->path, __FILE__, __LINE__);
		check_that(def->tighten != SPEC_SAME || def->def || k == SPEC_AGENT, def->path,
			__FILE__, __LINE__);
		check_that(
			def->type != SPEC_TYPE_SIZE || def->pattern, def->path, __FILE__, __LINE__);
	}
	CHECK(spec_key_find("nothing") == SPEC_KEY_COUNT && spec_key_find("") == SPEC_KEY_COUNT);
	CHECK(spec_key_find("project") == SPEC_KEY_COUNT &&
		spec_key_find("mode") == SPEC_KEY_COUNT);
}

static void test_sections(void)
{
	char section[32], last[32] = "", seen[SPEC_KEY_COUNT][32];
	size_t n = 0;

	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		char path[80];
		bool is_nested = spec_key_section(k, section, sizeof(section));

		snprintf(path, sizeof(path), "%s%s%s", is_nested ? section : "",
			is_nested ? "." : "", spec_key_leaf(k));
		CHECK_STR(path, spec_keys[k].path);
		if (!is_nested)
			section[0] = '\0';
		/* The schema is printed in one pass: the keys of a section stand together. */
		if (is_nested && !str_eq(section, last)) {
			for (size_t i = 0; i < n; i++)
				CHECK(!str_eq(seen[i], section));
			memcpy(seen[n++], section, sizeof(section));
		}
		memcpy(last, section, sizeof(section));
	}
	CHECK(n > 5);
	CHECK(!spec_key_section(SPEC_PROJECT_MODE, section, 7));
	CHECK(spec_key_section(SPEC_PROJECT_MODE, section, 8) && str_eq(section, "project"));
}

static void test_choices(void)
{
	CHECK(count_choices(SPEC_ENGINE) == SPEC_ENGINE_LOGICAL + 1);
	CHECK_STR(spec_keys[SPEC_ENGINE].choices[SPEC_ENGINE_NATIVE], "native");
	CHECK_STR(spec_keys[SPEC_ENGINE].choices[SPEC_ENGINE_CONTAINER], "container");
	CHECK_STR(spec_keys[SPEC_ENGINE].choices[SPEC_ENGINE_LANDLOCK], "landlock");
	CHECK_STR(spec_keys[SPEC_ENGINE].choices[SPEC_ENGINE_LOGICAL], "logical");
	CHECK(count_choices(SPEC_PROJECT_MODE) == SPEC_MODE_WRITABLE + 1);
	CHECK_STR(spec_keys[SPEC_PROJECT_MODE].choices[SPEC_MODE_CAPTURED], "captured");
	CHECK(count_choices(SPEC_PROJECT_CAGE) == SPEC_CAGE_PROJECT + 1);
	CHECK_STR(spec_keys[SPEC_PROJECT_CAGE].choices[SPEC_CAGE_PROJECT], "project");
	CHECK(count_choices(SPEC_PROJECT_GIT) == SPEC_GIT_AUTO + 1);
	CHECK_STR(spec_keys[SPEC_PROJECT_GIT].choices[SPEC_GIT_AUTO], "auto");
	CHECK(count_choices(SPEC_NETWORK_MODE) == SPEC_NET_HOST + 1);
	CHECK_STR(spec_keys[SPEC_NETWORK_MODE].choices[SPEC_NET_ALLOWLIST], "allowlist");
	CHECK(count_choices(SPEC_ENVIRONMENT) == SPEC_PROD + 1);
	CHECK_STR(spec_keys[SPEC_ENVIRONMENT].choices[SPEC_PROD], "prod");
}

/* The line of a file that sets a key to a YAML value. */
static void key_line(enum spec_key key, const char *value, char *ret, size_t size)
{
	char section[32];

	if (spec_key_section(key, section, sizeof(section)))
		snprintf(ret, size, "%s: { %s: %s }\n", section, spec_key_leaf(key), value);
	else
		snprintf(ret, size, "%s: %s\n", spec_keys[key].path, value);
}

static void test_examples(void)
{
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		bool is_policy = spec_keys[k].tighten == SPEC_OPERATOR_ONLY;
		char line[300], text[400];

		key_line(k, spec_keys[k].example, line, sizeof(line));
		snprintf(text, sizeof(text), "%s%s", k == SPEC_VERSION ? "" : "version: 1\n", line);
		check_that(make_layers(&spec, NULL, is_policy ? text : NULL,
				   is_policy ? NULL : text, true),
			text, __FILE__, __LINE__);
		CHECK_STR(first_said(&spec), "");
		CHECK(spec.set_by[k] == (is_policy ? SPEC_LAYER_USER : SPEC_LAYER_FILE));
		CHECK(spec_is_declared(&spec, k) && spec_where(&spec, k).line > 0);
		spec_done(&spec);
	}
}

static void test_defaults(void)
{
	CHECK(make_layers(&other, NULL, NULL, NULL, false));
	CHECK_STR(first_said(&other), "");
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		CHECK(other.set_by[k] == SPEC_LAYER_BUILTIN && !spec_is_declared(&other, k));
		check_that(other.settled.v[k].is_set == (spec_keys[k].def != NULL),
			spec_keys[k].path, __FILE__, __LINE__);
		if (!spec_keys[k].def)
			continue;
		spec_init(&spec);
		spec_add_option(&spec, k, "--x", spec_keys[k].def);
		CHECK(spec_settle(&spec));
		/* A limit that is declared must hold, so it is another spec than the default. */
		check_that(str_eq(canonical_of(&spec), canonical_of(&other)) ==
				   !str_starts(spec_keys[k].path, "limits."),
			spec_keys[k].path, __FILE__, __LINE__);
		spec_done(&spec);
	}
	CHECK(spec_choice(&other, SPEC_NETWORK_MODE) == SPEC_NET_NONE);
	CHECK(spec_choice(&other, SPEC_PROJECT_MODE) == SPEC_MODE_CAPTURED);
	CHECK(!spec_bool(&other, SPEC_RELAXED) && spec_list(&other, SPEC_BINDS)->count == 0);
	CHECK(spec_number(&other, SPEC_LIMITS_TIME) == 0 && !spec_text(&other, SPEC_NAME));
	CHECK_STR(spec_text(&other, SPEC_PROJECT_AT), "/work");
	spec_done(&other);
}

/* --- values --- */

static void test_refused_values(void)
{
	static const char *const rows[][2] = {
		{ "{}", "f.yaml:1:1: error: the file does not say its version" },
		{ "name: x", "f.yaml:1:1: error: the file does not say its version" },
		{ "version: 2",
			"f.yaml:1:10: error: version: this bawn understands version 1, not 2" },
		{ "version: \"1\"",
			"f.yaml:1:11: error: version: expected the number 1, not text" },
		{ "version: 1.0",
			"f.yaml:1:10: error: version: expected the number 1, not a number with a "
			"point" },
		{ "version: 1\nnmae: x", "f.yaml:2:1: error: unknown key 'nmae'" },
		{ "version: 1\nlimits: {memroy: 2G}",
			"f.yaml:2:10: error: unknown key 'limits.memroy'" },
		{ "version: 1\nproject.mode: captured",
			"f.yaml:2:1: error: unknown key 'project.mode'" },
		{ "version: 1\nlimits: 2G", "f.yaml:2:9: error: limits: expected a map, not text" },
		{ "version: 1\nenvironment: dev", "f.yaml:2:1: error: unknown key 'environment'" },
		{ "version: 1\nrelaxed: no",
			"f.yaml:2:10: error: relaxed: 'no' is not true or false" },
		{ "version: 1\nrelaxed: \"true\"",
			"f.yaml:2:11: error: relaxed: expected true or false, not text" },
		{ "version: 1\nrelaxed: 1",
			"f.yaml:2:10: error: relaxed: expected true or false, not a number" },
		{ "version: 1\nengine: nativ",
			"f.yaml:2:9: error: engine: 'nativ' is not auto, native, bwrap, container, "
			"microvm, landlock or logical" },
		{ "version: 1\nengine: [native]",
			"f.yaml:2:9: error: engine: expected a word, not a list" },
		{ "version: 1\nname: 7", "f.yaml:2:7: error: name: expected text, not a number" },
		{ "version: 1\nname:", "f.yaml:2:1: error: name: expected text, not nothing" },
		{ "version: 1\nlimits: {pids: 0}", "f.yaml:2:16: error: limits.pids: 0 is out of "
						   "range: from 1 to 2147483647" },
		{ "version: 1\nlimits: {pids: 0777}",
			"f.yaml:2:16: error: limits.pids: expected a whole number, not text" },
		{ "version: 1\nlimits: {memory: 0}",
			"f.yaml:2:18: error: limits.memory: '0' would let nothing run" },
		{ "version: 1\nlimits: {memory: 1.5G}",
			"f.yaml:2:18: error: limits.memory: size '1.5G' has a fraction: use a "
			"smaller unit, such as 1536M for 1.5G" },
		{ "version: 1\nlimits: {time: 22:22}",
			"f.yaml:2:16: error: limits.time: duration '22:22' has an unknown unit "
			"':': use d, h, m, s or ms" },
		{ "version: 1\nlimits: {cpu: \"2\"}",
			"f.yaml:2:16: error: limits.cpu: expected a number such as 1.5, not text" },
		{ "version: 1\nroot: {overlay_size: 512K}",
			"f.yaml:2:22: error: root.overlay_size: '512K' must be in M, MB, G or GB, "
			"such as 5G" },
		{ "version: 1\ncommand: ls -l",
			"f.yaml:2:10: error: command: expected a list of texts, not text" },
		{ "version: 1\ncommand: [sleep, 5]",
			"f.yaml:2:18: error: command: expected text, not a number" },
		{ "version: 1\nnetwork: {host_ports: [\"80\"]}",
			"f.yaml:2:25: error: network.host_ports: expected a port number, not "
			"text" },
		{ "version: 1\nenv: {set: [A=1]}", "f.yaml:2:12: error: env.set: expected a map of "
						   "names to texts, not a list" },
		{ "version: 1\nenv: {set: {A: 1}}",
			"f.yaml:2:16: error: env.set: expected text, not a number" },
		{ "version: 1\nbinds: [{from: /a, too: /b}]",
			"f.yaml:2:20: error: binds: unknown key 'too' in a bind" },
		{ "version: 1\nbinds: [{from: /a}]",
			"f.yaml:2:9: error: binds: a bind needs both 'from' and 'to'" },
		{ "version: 1\nbinds: [{from: /a, to: /b, mode: x}]",
			"f.yaml:2:34: error: binds: the mode of a bind is ro or rw, not 'x'" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		CHECK(!make_spec(&spec, rows[i][0]));
		CHECK_STR(first_said(&spec), rows[i][1]);
		spec_done(&spec);
	}
}

static void test_all_errors_at_once(void)
{
	CHECK(!make_spec(&spec, "version: 1\nname: 7\nlimits: {memory: x, pids: -1}\nfoo: 1\n"
				"binds: [a, /b:/c, \"/d:e\"]\n"));
	CHECK(spec.diags.errors == 6);
	CHECK(spec.layers[SPEC_LAYER_FILE].v[SPEC_BINDS].count == 1);
	spec_done(&spec);
}

static void test_options(void)
{
	static const char file[] = "version: 1\ncommand: [ls]\nenv: {set: {A: x, B: y}}\n"
				   "binds: [/a:/one, /b:/two]\nlimits: {memory: 1G}\n";
	static const char *const words[] = { "echo", "a b" };

	spec_init(&spec);
	spec_add_file(&spec, "f.yaml", file, strlen(file), true);
	spec_add_option(&spec, SPEC_ENV_SET, "-e", "A=new");
	spec_add_option(&spec, SPEC_ENV_SET, "-e", "C=z");
	spec_add_option(&spec, SPEC_BINDS, "-v", "/c:/two:rw");
	spec_add_option(&spec, SPEC_LIMITS_MEMORY, "--memory", "3G");
	spec_add_option(&spec, SPEC_LIMITS_MEMORY, "--memory", "2G");
	spec_add_option_list(&spec, SPEC_COMMAND, "--", words, 2);
	CHECK(spec_settle(&spec));
	CHECK_STR(first_said(&spec), "");
	CHECK(strstr(canonical_of(&spec), "\"command\":[\"echo\",\"a b\"]"));
	CHECK(strstr(canonical_of(&spec), "\"env.set\":[\"A=new\",\"B=y\",\"C=z\"]"));
	CHECK(strstr(canonical_of(&spec), "\"binds\":[\"/a:/one:ro\",\"/c:/two:rw\"]"));
	CHECK(spec_number(&spec, SPEC_LIMITS_MEMORY) == (uint64_t)2 << 30);
	CHECK(spec.set_by[SPEC_LIMITS_MEMORY] == SPEC_LAYER_OPTIONS);
	CHECK(spec_where(&spec, SPEC_LIMITS_MEMORY).line == 0);
	spec_done(&spec);
	spec_init(&spec);
	spec_add_option(&spec, SPEC_LIMITS_MEMORY, "--memory", "lots");
	spec_add_option(&spec, SPEC_BINDS, "-v", "/x");
	CHECK(!spec_settle(&spec) && spec.diags.errors == 2);
	CHECK_STR(first_said(&spec),
		"--memory: error: limits.memory: 'lots' is not a size: write digits and a unit, "
		"such as 512M or 2G");
	spec_done(&spec);
}

static void test_option_lists(void)
{
	static const char file[] = "version: 1\ncommand: [ls]\n";
	static const char *const words[] = { "x" };

	for (int after_one = 0; after_one < 2; after_one++) {
		spec_init(&spec);
		spec_add_file(&spec, "f.yaml", file, strlen(file), true);
		if (after_one)
			spec_add_option(&spec, SPEC_COMMAND, "--word", "y");
		spec_add_option_list(&spec, SPEC_COMMAND, "--", words, 1);
		CHECK(spec_settle(&spec));
		CHECK(strstr(canonical_of(&spec), "\"command\":[\"x\"]"));
		spec_done(&spec);
	}
	spec_init(&spec);
	spec_add_file(&spec, "f.yaml", file, strlen(file), true);
	spec_add_option_list(&spec, SPEC_COMMAND, "--", NULL, 0);
	CHECK(spec_settle(&spec) && strstr(canonical_of(&spec), "\"command\":[]"));
	spec_done(&spec);
}

static void test_many_options(void)
{
	spec_init(&spec);
	for (int i = 0; i < 1000; i++) {
		char text[40];

		snprintf(text, sizeof(text), "V%d=%d", i, i);
		spec_add_option(&spec, SPEC_ENV_SET, "-e", text);
	}
	CHECK(spec_settle(&spec) && spec_list(&spec, SPEC_ENV_SET)->count == 1000);
	CHECK_STR(spec_list(&spec, SPEC_ENV_SET)->items[999].var.value, "999");
	spec_done(&spec);
	/* The name of an option in a message is its own, however many follow. */
	spec_init(&spec);
	for (int i = 0; i < 14; i++)
		spec_add_option(&spec, SPEC_ENV_PASS, "-e", "LANG");
	spec_add_option(&spec, SPEC_LIMITS_MEMORY, "--memory", "lots");
	spec_add_option(&spec, SPEC_LIMITS_CPU, "--cpus", "2");
	CHECK(!spec_settle(&spec));
	CHECK(str_starts(first_said(&spec), "--memory: error: limits.memory: 'lots' is not"));
	spec_done(&spec);
}

/* --- the schema --- */

static void test_schema(void)
{
	own(buf) struct buf out = { .max = 1 << 20 };

	spec_print_schema(&out);
	CHECK(!out.failed && is_json(buf_text(&out)));
	CHECK(strstr(buf_text(&out), "\"required\": [\n    \"version\"\n  ]"));
	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++) {
		bool is_policy = spec_keys[k].tighten == SPEC_OPERATOR_ONLY;
		char section[40] = "", line[80], start[40];
		const char *in = buf_text(&out), *at;
		bool is_nested = spec_key_section(k, section, sizeof(section));

		snprintf(start, sizeof(start), "\n    \"%s\": {\n", section);
		in = is_nested ? strstr(in, start) : in;
		snprintf(line, sizeof(line), "\n%*s\"%s\": {\n", is_nested ? 8 : 4, "",
			spec_key_leaf(k));
		at = in ? strstr(in, line) : NULL;
		check_that((at != NULL) == !is_policy, spec_keys[k].path, __FILE__, __LINE__);
		for (size_t i = 0; at && spec_keys[k].choices && spec_keys[k].choices[i]; i++)
			CHECK(strstr(at, spec_keys[k].choices[i]));
	}
}

int main(void)
{
	test_rows();
	test_sections();
	test_choices();
	test_examples();
	test_defaults();
	test_refused_values();
	test_all_errors_at_once();
	test_options();
	test_option_lists();
	test_many_options();
	test_schema();
	return check_report();
}
