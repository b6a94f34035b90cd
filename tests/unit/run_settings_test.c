/* What a request asks of a spec, and what a path of one leads to. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/own.h"
#include "check.h"
#include "run/run_spec.h"

static char place[] = "/tmp/bawn-run-XXXXXX";

/* --- settings --- */

/* Adds them, in a spec that begins with nothing, and settles it. */
static bool settle(struct spec *s, struct run_request *q)
{
	spec_init(s);
	run_add_settings(q, s, place);
	return spec_settle(s);
}

static void set(struct run_request *q, enum spec_key key, const char *from, const char *value)
{
	struct err e = { 0 };

	CHECK(run_request_set(q, key, from, value, &e) == 0);
}

static void test_values(void)
{
	static const char *const command[] = { "sh", "-c", "true" };
	own(run_request) struct run_request q;
	struct spec s;

	run_request_init(&q);
	q.command = command;
	q.command_count = COUNT_OF(command);
	set(&q, SPEC_LIMITS_MEMORY, "BAWN_X", "1G");
	set(&q, SPEC_LIMITS_MEMORY, "--memory", "2G");
	set(&q, SPEC_ENV_SET, "--env", "A=b");
	set(&q, SPEC_ENV_SET, "--env", "PATH");
	CHECK(settle(&s, &q));
	/* What comes later counts. */
	CHECK(spec_number(&s, SPEC_LIMITS_MEMORY) == (uint64_t)2 << 30);
	CHECK(spec_list(&s, SPEC_COMMAND)->count == 3);
	/* A name alone is passed. */
	CHECK(spec_list(&s, SPEC_ENV_SET)->count == 1 && spec_list(&s, SPEC_ENV_PASS)->count == 1);
	CHECK_STR(spec_list(&s, SPEC_ENV_PASS)->items[0].text, "PATH");
	CHECK(s.set_by[SPEC_LIMITS_MEMORY] == SPEC_LAYER_OPTIONS);
	spec_done(&s);
}

/* What opens a way means the network that has ways. */
static void test_network(void)
{
	static const struct {
		const char *from, *mode; /* or none */
		bool is_good;
		unsigned choice;
	} rows[] = {
		{ NULL, NULL, true, SPEC_NET_ALLOWLIST },
		{ "--network", "none", false, 0 },
		{ "--net", "none", false, 0 },
		{ "BAWN_SANDBOX_NETWORK", "none", true, SPEC_NET_ALLOWLIST },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(run_request) struct run_request q;
		struct spec s;

		run_request_init(&q);
		if (rows[i].mode)
			set(&q, SPEC_NETWORK_MODE, rows[i].from, rows[i].mode);
		set(&q, SPEC_NETWORK_ALLOW, "--allow", "example.org:443");
		CHECK(settle(&s, &q) == rows[i].is_good);
		if (rows[i].is_good)
			CHECK(spec_choice(&s, SPEC_NETWORK_MODE) == rows[i].choice);
		else
			CHECK(strstr(s.diags.items[0].text, "contradict"));
		spec_done(&s);
	}
}

/* "./x" is x of where one stands, also where the project is elsewhere. */
static void test_binds(void)
{
	own(run_request) struct run_request q;
	char wanted[PATH_MAX];
	struct spec s;

	run_request_init(&q);
	set(&q, SPEC_BINDS, "--volume", "./folder:/y");
	CHECK(settle(&s, &q) && spec_list(&s, SPEC_BINDS)->count == 1);
	CHECK_STR(spec_list(&s, SPEC_BINDS)->items[0].bind.from, "$PROJECT/folder");
	spec_done(&s);
	set(&q, SPEC_PROJECT_PATH, "--project", "/usr");
	snprintf(wanted, sizeof(wanted), "%s/folder", place);
	CHECK(settle(&s, &q) && spec_list(&s, SPEC_BINDS)->count == 1);
	CHECK_STR(spec_list(&s, SPEC_BINDS)->items[0].bind.from, wanted);
	spec_done(&s);
}

static void test_env_file(void)
{
	own(run_request) struct run_request q;
	FILE *f = fopen("vars", "we");
	struct spec s;

	CHECK(f && fputs("# a file\nA=1\n\n  B=2\r\nPATH\nA=3\n", f) >= 0 && fclose(f) == 0);
	run_request_init(&q);
	set(&q, SPEC_KEY_COUNT, "--env-file", "vars");
	set(&q, SPEC_ENV_SET, "--env", "B=4");
	CHECK(settle(&s, &q));
	CHECK(spec_list(&s, SPEC_ENV_SET)->count == 2 && spec_list(&s, SPEC_ENV_PASS)->count == 1);
	CHECK_STR(spec_list(&s, SPEC_ENV_SET)->items[0].var.value, "3");
	CHECK_STR(spec_list(&s, SPEC_ENV_SET)->items[1].var.value, "4");
	spec_done(&s);
	set(&q, SPEC_KEY_COUNT, "--env-file", "TOKEN=hunter2");
	CHECK(!settle(&s, &q));
	CHECK(!strstr(s.diags.items[0].text, "hunter2"));
	spec_done(&s);
}

/* --- places --- */

static void test_home(void)
{
	char folder[PATH_MAX];

	setenv("HOME", "/home/x", 1);
	unsetenv("XDG_CONFIG_HOME");
	CHECK_STR(run_home(), "/home/x");
	CHECK(run_config_folder(run_home(), folder) == 0);
	CHECK_STR(folder, "/home/x/.config/bawn");
	setenv("HOME", "x", 1);
	CHECK(!run_home() && run_config_folder(run_home(), folder) == -ENOENT);
	setenv("XDG_CONFIG_HOME", "/etc/x", 1);
	CHECK(run_config_folder(NULL, folder) == 0);
	CHECK_STR(folder, "/etc/x/bawn");
	unsetenv("HOME");
	CHECK(!run_home());
}

static void test_resolve(void)
{
	char got[PATH_MAX], wanted[PATH_MAX];
	struct run_place at = { .home = place };

	snprintf(at.project, sizeof(at.project), "%s/folder", place);
	snprintf(wanted, sizeof(wanted), "%s/folder", place);
	CHECK(run_resolve("folder", NULL, place, got) == 0);
	CHECK_STR(got, wanted);
	CHECK(run_resolve("~/folder", place, "/", got) == 0);
	CHECK_STR(got, wanted);
	CHECK(run_resolve("~", NULL, "/", got) == -ENOENT);
	CHECK(run_resolve("nothing", NULL, place, got) == -ENOENT);
	/* A link of the project's that leads out of it. */
	CHECK(symlink("/etc", "folder/out") == 0);
	CHECK(run_resolve_source("$PROJECT/out", &at, got) == -EXDEV);
	CHECK(run_resolve_source("$PROJECT", &at, got) == 0);
	CHECK(run_resolve_source("/etc", &at, got) == 0);
}

/* --- names of a folder --- */

static bool may_have(const char *folder, enum run_name name)
{
	return run_list_names(folder) >> name & 1;
}

static void test_names(void)
{
	char many[32];

	CHECK(mkdir("names", 0700) == 0 && mkdir("names/.git", 0700) == 0);
	CHECK(run_list_names("names") == 0);
	CHECK(mkdir("names/build", 0700) == 0 && symlink("nowhere", "names/bawn.yml") == 0);
	CHECK(may_have("names", RUN_NAME_BUILD) && may_have("names", RUN_NAME_YML));
	CHECK(!may_have("names", RUN_NAME_BUILDDIR) && !may_have("names", RUN_NAME_SPEC));
	/* Either spelling may be one file. */
	CHECK(rename("names/build", "names/Build") == 0 && may_have("names", RUN_NAME_BUILD));
	/* A worktree's is a file. */
	CHECK(rmdir("names/.git") == 0 && symlink("x", "names/.git") == 0);
	CHECK(may_have("names", RUN_NAME_GIT_FILE));
	/* Nobody knows: then each is asked for. */
	CHECK(run_list_names("nowhere") == RUN_NAMES_UNKNOWN);
	for (int i = 0; i < 600; i++) {
		snprintf(many, sizeof(many), "names/%d", i);
		CHECK(mkdir(many, 0700) == 0);
	}
	CHECK(run_list_names("names") == RUN_NAMES_UNKNOWN);
	CHECK(system("rm -r names") == 0);
}

int main(void)
{
	CHECK(mkdtemp(place) && chdir(place) == 0 && mkdir("folder", 0700) == 0);
	test_values();
	test_network();
	test_binds();
	test_env_file();
	test_home();
	test_resolve();
	test_names();
	CHECK(unlink("folder/out") == 0 && rmdir("folder") == 0 && unlink("vars") == 0);
	CHECK(chdir("/") == 0 && rmdir(place) == 0);
	return check_report();
}
