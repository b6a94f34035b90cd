#include "agent/profile/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "make_spec.h"

static struct spec spec;
static struct agent_profile profile;
static const struct agent_found nothing;

#define HEAD "version: 1\nname: x\ntitle: X\n"

static bool read_text(const char *text)
{
	spec_init(&spec);
	return agent_read(&spec, "x.yaml", text, strlen(text), &profile);
}

/* --- reading --- */

static void test_builtins(void)
{
	for (const struct agent_builtin *b = agent_builtins; b->name; b++) {
		check_that(read_text(b->text), b->name, __FILE__, __LINE__);
		CHECK_STR(first_said(&spec), "");
		CHECK_STR(profile.name, b->name);
		CHECK(profile.program || profile.takes_any || str_eq(b->name, "shell"));
		CHECK(agent_builtin_text(b->name) == b->text);
		spec_done(&spec);
	}
	CHECK(!agent_builtin_text("nobody"));
}

static void test_wrong(void)
{
	static const struct {
		const char *text, *said;
	} rows[] = {
		{ HEAD "spec: {command: [x]}", "" },
		{ "name: x\ntitle: X\n",
			"x.yaml:1:1: error: the profile does not say its version" },
		{ "version: 2\nname: x\ntitle: X\n",
			"x.yaml:1:10: error: this bawn understands version 1" },
		{ "version: 1\ntitle: X\n",
			"x.yaml:1:1: error: the profile does not say its 'name'" },
		{ HEAD "other: 1\n", "x.yaml:4:1: error: unknown key 'other' in a profile" },
		{ HEAD "program: {name: a/b}\n",
			"x.yaml:4:17: error: name: name 'a/b' may have letters, digits and . _ - "
			"only" },
		{ HEAD "program: {nam: a}\n", "x.yaml:4:11: error: unknown key 'nam' in program" },
		{ HEAD "program: [a]\n",
			"x.yaml:4:10: error: program: expected a map, not a list" },
		{ HEAD "prompts: 1\n", "x.yaml:4:10: error: prompts: expected text, not a number" },
		{ HEAD "keys: [{variable: A}]\n",
			"x.yaml:4:8: error: a key does not say its 'name'" },
		{ HEAD "keys: [{name: a, variable: A, host: h.org, header: x}]\n",
			"x.yaml:4:8: error: keys: " },
		{ HEAD "spec: {comand: [x]}\n", "x.yaml:4:8: error: unknown key 'spec.comand'" },
		{ HEAD "spec: {relaxed: true}\n",
			"x.yaml:4:17: error: spec.relaxed: a profile cannot say this" },
		{ HEAD "spec: {engine: logical}\n",
			"x.yaml:4:16: error: spec.engine: a profile cannot say this" },
		{ HEAD "spec: [1]\n", "x.yaml:4:7: error: spec: expected a map of spec keys" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		check_that(read_text(rows[i].text) == !*rows[i].said, rows[i].text, __FILE__,
			__LINE__);
		if (*rows[i].said)
			check_that(str_starts(first_said(&spec), rows[i].said), first_said(&spec),
				__FILE__, __LINE__);
		spec_done(&spec);
	}
}

/* --- adding it to a spec --- */

static const char whole[] =
	HEAD "program: {name: x}\nprompts: /etc/x/P.md\n"
	     "keys:\n"
	     "  - {name: m, variable: M_KEY, host: \"m.org:443\", header: x-key, base_url: M_URL, "
	     "path: /v1}\n"
	     "spec:\n"
	     "  command: [x, --auto]\n"
	     "  env: {set: {A: a, B: b}}\n"
	     "  network: {mode: allowlist, allow: [\"m.org:443\"]}\n"
	     "  files: {/etc/x/s.json: \"{@PROJECT@ @BASE_URL@}\"}\n"
	     "  state: [/home/agent/.x]\n";

/* The profile above, added to a file, whosever it is, and some options. */
static bool settle_with(bool is_operators, const char *file, const char *const *words, size_t count)
{
	spec_init(&spec);
	spec_add_file(&spec, "f.yaml", file, strlen(file), is_operators);
	spec_add_option(&spec, SPEC_AGENT, "--agent", "x");
	if (count)
		spec_add_option_list(&spec, SPEC_COMMAND, "the command", words, count);
	if (!agent_read(&spec, "x.yaml", whole, strlen(whole), &profile))
		return false;
	if (!spec_settle(&spec))
		return false;
	agent_apply(&spec, &profile, &nothing);
	agent_finish(&spec, &profile, "/w\"ork");
	return !spec.diags.errors;
}

static bool settle(const char *file, const char *const *words, size_t count)
{
	return settle_with(true, file, words, count);
}

static const char *value_of(enum spec_key key)
{
	struct buf out = { .max = 4096 };
	const char *text;

	spec_print_value(key, spec_list(&spec, key), &out);
	text = arena_copy(&spec.arena, buf_text(&out), out.len);
	buf_done(&out);
	return text;
}

static void test_added(void)
{
	CHECK(settle("version: 1\n", NULL, 0));
	CHECK_STR(value_of(SPEC_COMMAND), "[x, --auto]");
	CHECK_STR(value_of(SPEC_ENV_SET), "[A=a, B=b]");
	CHECK_STR(value_of(SPEC_NETWORK_MODE), "allowlist");
	CHECK_STR(value_of(SPEC_NETWORK_ALLOW), "[m.org:443/tls]");
	CHECK_STR(value_of(SPEC_STATE), "[/home/agent/.x]");
	CHECK_STR(value_of(SPEC_FILES), "[/etc/x/s.json={/w\\\"ork https://m.org/v1}]");
	spec_done(&spec);
}

static void test_overridden(void)
{
	CHECK(settle("version: 1\n"
		     "command: [x, -p, hi]\n"
		     "env: {set: {B: c, M_URL: \"http://here\"}}\n"
		     "network: {mode: allowlist, allow: [\"other.org:443\"]}\n"
		     "startup_prompts: [one, two]\n",
		NULL, 0));
	CHECK_STR(value_of(SPEC_COMMAND), "[x, -p, hi]");
	CHECK_STR(value_of(SPEC_ENV_SET), "[A=a, B=c, M_URL=http://here]");
	CHECK_STR(value_of(SPEC_NETWORK_ALLOW), "[m.org:443/tls, other.org:443/tls]");
	CHECK_STR(value_of(SPEC_FILES),
		"[/etc/x/P.md=one\n\ntwo\n, /etc/x/s.json={/w\\\"ork http://here}]");
	spec_done(&spec);
	/* Who declared that there is no network has none. */
	CHECK(settle("version: 1\nnetwork: {mode: none}\n", NULL, 0));
	CHECK_STR(value_of(SPEC_NETWORK_MODE), "none");
	CHECK_STR(value_of(SPEC_NETWORK_ALLOW), "[]");
	spec_done(&spec);
}

/* What is the agent's own is not for a project to say; the operator may. */
static void test_project_says(void)
{
	static const struct {
		const char *text, *said;
	} rows[] = {
		{ "files: {/etc/x/s.json: y}", "files: '/etc/x/s.json'" },
		{ "files: {/etc/x/more.d/y: y}", "files: '/etc/x/more.d/y'" },
		{ "initial_files: {/etc/x/P.md: y}", "initial_files: '/etc/x/P.md'" },
		{ "files: {/home/agent/.x/settings: y}", "files: '/home/agent/.x/settings'" },
		{ "files: {/opt/agent/bin/x: y}", "files: '/opt/agent/bin/x'" },
		{ "env: {set: {A: evil}}", "env.set: 'A'" },
		{ "env: {set: {M_URL: \"http://evil\"}}", "env.set: 'M_URL'" },
		{ "env: {set: {M_KEY: evil}}", "env.set: 'M_KEY'" },
		{ "env: {set: {PATH: /work}}", "env.set: 'PATH'" },
		{ "files: {/etc/xy/s.json: y, /etc/x.json: y, /home/agent/.xy: y}", "" },
		{ "env: {set: {C: c}}", "" },
		{ "command: [evil]", "" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char file[256];

		snprintf(file, sizeof(file), "version: 1\n%s\n", rows[i].text);
		CHECK(settle(file, NULL, 0));
		spec_done(&spec);
		check_that(settle_with(false, file, NULL, 0) == !*rows[i].said, rows[i].text,
			__FILE__, __LINE__);
		check_that(strstr(first_said(&spec), rows[i].said) != NULL, first_said(&spec),
			__FILE__, __LINE__);
		CHECK_STR(value_of(SPEC_COMMAND), "[x, --auto]");
		spec_done(&spec);
	}
	/* Nor which of the operator's programs is shown to it. */
	CHECK(settle_with(false, "version: 1\ncommand: [secret]\n", NULL, 0));
	profile.takes_any = true;
	spec.set_by[SPEC_COMMAND] = SPEC_LAYER_FILE;
	CHECK(!agent_program(&spec, &profile));
	spec.is_file_trusted = true;
	CHECK(agent_program(&spec, &profile) != NULL);
	spec_done(&spec);
}

static void test_words(void)
{
	static const struct {
		const char *words[3], *command;
	} rows[] = {
		{ { "--version" }, "[x, --auto, --version]" },
		{ { "run", "it" }, "[x, --auto, run, it]" },
		{ { "x", "it" }, "[x, it]" },
		{ { "/bin/sh", "-c" }, "[/bin/sh, -c]" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		CHECK(settle("version: 1\n", rows[i].words, rows[i].words[1] ? 2 : 1));
		CHECK_STR(value_of(SPEC_COMMAND), rows[i].command);
		spec_done(&spec);
	}
}

/* A key that stays outside: the agent gets a word for it, and bawn's address. */
static void test_secret(void)
{
	spec_init(&spec);
	CHECK(agent_read(&spec, "x.yaml", whole, strlen(whole), &profile));
	CHECK(spec_settle(&spec));
	agent_apply(&spec, &profile, &nothing);
	CHECK(agent_add_secret(&spec, &profile, "M_KEY"));
	CHECK(!agent_add_secret(&spec, &profile, "OTHER"));
	agent_finish(&spec, &profile, "/work");
	CHECK_STR(value_of(SPEC_ENV_SET), "[A=a, B=b, M_KEY=bawn, M_URL=http://bawn-host/m/v1]");
	CHECK_STR(value_of(SPEC_FILES), "[/etc/x/s.json={/work http://bawn-host/m/v1}]");
	CHECK(spec_list(&spec, SPEC_SECRETS)->count == 1);
	spec_done(&spec);
}

/* --- finding the program --- */

static char top[] = "/tmp/bawn-agent-XXXXXX";

static void make_file(const char *path, const char *text, mode_t mode)
{
	char whole_path[512];
	FILE *f;

	snprintf(whole_path, sizeof(whole_path), "%s/%s", top, path);
	for (char *p = whole_path + strlen(top) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(whole_path, 0755);
		*p = '/';
	}
	f = fopen(whole_path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(whole_path, mode) == 0);
}

static void make_link(const char *to, const char *path)
{
	char whole_path[512];

	snprintf(whole_path, sizeof(whole_path), "%s/%s", top, path);
	CHECK(symlink(to, whole_path) == 0);
}

static int find_beside(const char *project, const char *program, struct agent_found *ret)
{
	char path[512];
	struct agent_search where = { path, top, true, project };
	struct err e = { 0 };

	snprintf(path, sizeof(path), "relative:%s/p/.venv/bin:%s/way:%s/bin:%s/empty", top, top,
		top, top);
	return agent_find(&spec.arena, &profile, program, &where, ret, &e);
}

static int find(const char *program, struct agent_found *ret)
{
	return find_beside(NULL, program, ret);
}

static void test_find(void)
{
	struct agent_found found;

	CHECK(mkdtemp(top) != NULL);
	spec_init(&spec);
	profile = (struct agent_profile){ .program = "native" };
	make_file("bin/native", "\177ELF", 0755);
	make_file("bin/plain", "\177ELF", 0644);
	make_file("lib/node_modules/@a/pkg/cli.js", "#!/usr/bin/env -S node --x\n", 0755);
	make_link("../lib/node_modules/@a/pkg/cli.js", "bin/script");
	make_file("bin/node", "\177ELF", 0755);
	make_file("bin/lost", "#!/usr/bin/env nobody-has-this\n", 0755);
	make_file(".local/bin/usual", "\177ELF", 0755);
	CHECK(find("missing", &found) == -ENOENT);
	CHECK(find("plain", &found) == -ENOENT);
	CHECK(find("../bin/native", &found) == -ENOENT);
	CHECK(find("native", &found) == 0 && found.bind_count == 1 && !found.launcher);
	CHECK_STR(found.binds[0].from, "~/bin/native");
	CHECK_STR(found.binds[0].to, "/opt/agent/bin/native");
	CHECK(find("usual", &found) == 0);
	CHECK_STR(found.binds[0].from, "~/.local/bin/usual");
	CHECK(find("script", &found) == 0 && found.bind_count == 2);
	CHECK_STR(found.binds[0].from, "~/lib/node_modules");
	CHECK_STR(found.binds[0].to, "/opt/agent/node_modules");
	CHECK_STR(found.binds[1].from, "~/bin/node");
	CHECK_STR(found.launcher, "#!/bin/sh\nexec '/opt/agent/bin/node' "
				  "'/opt/agent/node_modules/@a/pkg/cli.js' \"$@\"\n");
	CHECK(find("lost", &found) == -ENOENT);
	spec_done(&spec);
}

/* What npm's script would start is started itself, beside it or below it. */
static void test_native(void)
{
	struct agent_found found;

	spec_init(&spec);
	profile = (struct agent_profile){ .program = "script",
		.package = "@a/pkg",
		.native = "@a/pkg-linux/vendor",
		.native_run = "bin/it" };
	CHECK(find("script", &found) == 0 && found.bind_count == 2);
	CHECK_STR(found.binds[0].from, "~/lib/node_modules/@a/pkg");
	CHECK_STR(found.binds[0].to, "/opt/agent/node_modules/@a/pkg");
	make_file(
		"lib/node_modules/@a/pkg/node_modules/@a/pkg-linux/vendor/bin/it", "\177ELF", 0755);
	CHECK(find("script", &found) == 0 && found.bind_count == 1);
	CHECK_STR(
		found.binds[0].from, "~/lib/node_modules/@a/pkg/node_modules/@a/pkg-linux/vendor");
	CHECK_STR(found.binds[0].to, "/opt/agent/lib/script");
	CHECK_STR(found.launcher, "#!/bin/sh\nexec '/opt/agent/lib/script/bin/it' \"$@\"\n");
	make_file("lib/node_modules/@a/pkg-linux/vendor/bin/it", "\177ELF", 0755);
	CHECK(find("script", &found) == 0);
	CHECK_STR(found.binds[0].from, "~/lib/node_modules/@a/pkg-linux/vendor");
	spec_done(&spec);
}

/* What a project has in $PATH is not what the operator means, however it is spelt. */
static void test_project(void)
{
	struct agent_found found;
	char project[512];

	spec_init(&spec);
	profile = (struct agent_profile){ .program = "both" };
	snprintf(project, sizeof(project), "%s/p", top);
	make_file("p/.venv/bin/both", "\177ELF", 0755);
	make_file("p/.venv/bin/node", "\177ELF", 0755);
	make_file("p/.venv/bin/only", "\177ELF", 0755);
	make_file("private/node_modules/it", "#!/usr/bin/env node\n", 0755);
	make_link("../../../private/node_modules/it", "p/.venv/bin/link");
	make_link("p/.venv/bin", "way");
	make_file("bin/both", "\177ELF", 0755);
	CHECK(find("both", &found) == 0);
	CHECK_STR(found.binds[0].from, "~/p/.venv/bin/both");
	CHECK(find_beside(project, "both", &found) == 0);
	CHECK_STR(found.binds[0].from, "~/bin/both");
	CHECK(find_beside(project, "script", &found) == 0 && found.bind_count == 2);
	CHECK_STR(found.binds[1].from, "~/bin/node");
	CHECK(find("link", &found) == 0);
	CHECK_STR(found.binds[0].from, "~/private/node_modules");
	CHECK(find_beside(project, "link", &found) == -ENOENT);
	CHECK(find_beside(project, "only", &found) == -ENOENT);
	/* In a home that is the project they are the operator's. */
	CHECK(find_beside(top, "only", &found) == 0);
	spec_done(&spec);
}

static void remove_all(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", top);
	CHECK(system(command) == 0);
}

int main(void)
{
	test_builtins();
	test_wrong();
	test_added();
	test_overridden();
	test_project_says();
	test_words();
	test_secret();
	test_find();
	test_native();
	test_project();
	remove_all();
	return check_report();
}
