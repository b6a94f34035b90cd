/* What no host could plan: said of the spec before any engine is asked. */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "make_spec.h"
#include "plan/plan.h"

static struct spec spec;

struct row {
	const char *file; /* below its version */
	const char *said; /* NULL: nothing */
};

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char file[300];

		snprintf(file, sizeof(file), "version: 1\n%s\n", rows[i].file);
		check_that(make_spec(&spec, file), file, __FILE__, __LINE__);
		plan_check_spec(&spec);
		check_that((spec.diags.errors == 0) == (rows[i].said == NULL), rows[i].file,
			__FILE__, __LINE__);
		CHECK_STR(first_said(&spec), rows[i].said ? rows[i].said : "");
		spec_done(&spec);
	}
}

#define CHECK_ROWS(rows) check_rows((rows), COUNT_OF(rows))

static void test_leaks(void)
{
	static const struct row rows[] = {
		{ "binds: [~/src:/data]", NULL },
		{ "binds: [~/.sshx:/data]", NULL },
		{ "binds: [/srv/data:/data]", NULL },
		{ "binds: [~/.ssh:/data]", "f.yaml:2:9: error: binds: ~/.ssh holds credentials" },
		{ "binds: [~/.ssh/id_rsa:/data]",
			"f.yaml:2:9: error: binds: ~/.ssh/id_rsa holds credentials" },
		{ "binds: [~/.config:/data]",
			"f.yaml:2:9: error: binds: ~/.config would show the credentials in "
			"~/.config/anthropic" },
		{ "binds: [\"~:/data\"]",
			"f.yaml:2:10: error: binds: ~ would show the host itself" },
		{ "binds: [/:/data]", "f.yaml:2:9: error: binds: / would show the host itself" },
		{ "binds: [/etc:/data]",
			"f.yaml:2:9: error: binds: /etc would show the host itself" },
		{ "binds: [/etc/hosts:/data]", NULL },
		{ "binds: [/etc/shadow:/data]",
			"f.yaml:2:9: error: binds: /etc/shadow holds credentials" },
		{ "binds: [/proc/1:/data]",
			"f.yaml:2:9: error: binds: /proc/1 would show the host itself" },
		{ "binds: [/sys:/data]",
			"f.yaml:2:9: error: binds: /sys would show the host itself" },
		{ "binds: [/run/docker.sock:/data]",
			"f.yaml:2:9: error: binds: /run/docker.sock holds credentials" },
		{ "binds: [~/.ssh:/data]\npreflight_allow: [~/.ssh]", NULL },
		{ "binds: [~/.ssh/id_rsa:/data]\npreflight_allow: [~/.ssh]",
			"f.yaml:2:9: error: binds: ~/.ssh/id_rsa holds credentials" },
		{ "binds: [~/.aws:/data]\npreflight_allow: [~/.ssh]",
			"f.yaml:2:9: error: binds: ~/.aws holds credentials" },
	};

	CHECK_ROWS(rows);
}

#define COVERS(target)                                                                             \
	"f.yaml:2:9: error: binds: target " target " would cover what the cage makes itself"
#define LIES(target)                                                                               \
	"f.yaml:2:9: error: binds: target " target " lies in what the cage makes itself"

static void test_targets(void)
{
	static const struct row rows[] = {
		{ "binds: [/srv:/srv, /opt:/home/agent/opt, /a:/run/a, /b:/work/b]", NULL },
		{ "binds: [/srv:/proc]", COVERS("/proc") },
		{ "binds: [/srv:/proc/x]", LIES("/proc/x") },
		{ "binds: [/srv:/process]", NULL },
		{ "binds: [/srv:/usr/lib/x]", LIES("/usr/lib/x") },
		{ "binds: [/srv:/bin]", COVERS("/bin") },
		{ "binds: [/srv:/dev/null]", LIES("/dev/null") },
		{ "binds: [/srv:/etc/passwd]", LIES("/etc/passwd") },
		{ "binds: [/srv:/etc]", COVERS("/etc") },
		{ "binds: [/srv:/home/agent]", COVERS("/home/agent") },
		{ "binds: [/srv:/tmp]", COVERS("/tmp") },
		{ "binds: [/srv:/tmp/x]", NULL },
		{ "binds: [/srv:/work]",
			"f.yaml:2:9: error: binds: target /work would cover the project at /work" },
		{ "binds: [/srv:/a]\nproject: {at: /a/b}",
			"f.yaml:2:9: error: binds: target /a would cover the project at /a/b" },
		{ "binds: [/srv:/a/b/c]\nproject: {at: /a/b}", NULL },
		{ "binds: [/a:/x, /b:/x]",
			"f.yaml:2:16: error: binds: target /x is already taken at f.yaml:2:9" },
		{ "binds: [/a:/x, /b:/x/y]", NULL },
		/* What the system's own files are read from belongs to the system too. */
		{ "binds: [lib:/etc/ld.so.cache]", LIES("/etc/ld.so.cache") },
		{ "binds: [lib:/etc/ssl]", LIES("/etc/ssl") },
	};

	CHECK_ROWS(rows);
}

/* The project is a mount like any other: it must not cover what the cage makes itself either. */
static void test_project_place(void)
{
	static const char *const good[] = { "/work", "/srv/x", "/home/agent/x", "/tmp/x" };
	static const char *const bad[] = { "/proc", "/usr", "/usr/bin", "/dev", "/bin", "/etc" };

	for (size_t i = 0; i < COUNT_OF(good) + COUNT_OF(bad); i++) {
		bool is_good = i < COUNT_OF(good);
		const char *at = is_good ? good[i] : bad[i - COUNT_OF(good)];
		char file[100];

		snprintf(file, sizeof(file), "version: 1\nproject: {at: %s}\n", at);
		CHECK(make_spec(&spec, file));
		plan_check_spec(&spec);
		check_that((spec.diags.errors == 0) == is_good, file, __FILE__, __LINE__);
		spec_done(&spec);
	}
}

static void test_patterns(void)
{
	static const struct row rows[] = {
		{ "project: {read_allowlist: [$PROJECT/a/**], write_allowlist: [$PROJECT/a]}",
			NULL },
		{ "project: {read_allowlist: [/opt/**]}",
			"f.yaml:2:28: error: project.read_allowlist: '/opt/**' is outside the "
			"project" },
		{ "project: {write_allowlist: [/opt/**]}",
			"f.yaml:2:29: error: project.write_allowlist: '/opt/**' is outside the "
			"project" },
		{ "project: {cage: project, read_allowlist: [/opt/**]}", NULL },
		{ "project: {cage: project, write_allowlist: [/opt/**]}",
			"f.yaml:2:44: error: project.write_allowlist: '/opt/**' is outside the "
			"project" },
		{ "project: {cage: project, read_allowlist: [/**]}",
			"f.yaml:2:43: error: project.read_allowlist: '/**' would show the whole "
			"host" },
		{ "project: {cage: project, read_allowlist: [/]}",
			"f.yaml:2:43: error: project.read_allowlist: '/' would show the whole "
			"host" },
	};

	CHECK_ROWS(rows);
}

/* A pattern outside the project becomes a bind: it must leak no more than a bind may. */
static void test_patterns_leak(void)
{
	static const char *const bad[] = { "/root/**", "/etc/shadow", "/etc/**", "/proc/**",
		"/dev/**", "/home/**" };

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		char file[120];

		snprintf(file, sizeof(file),
			"version: 1\nproject: {cage: project, read_allowlist: [%s]}\n", bad[i]);
		CHECK(make_spec(&spec, file));
		plan_check_spec(&spec);
		check_that(spec.diags.errors > 0, file, __FILE__, __LINE__);
		spec_done(&spec);
	}
}

static void test_degraded_names(void)
{
	static const struct row rows[] = {
		{ "allow_degraded: [limits.memory, home]", NULL },
		{ "allow_degraded: [limits.memry]", "f.yaml:2:18: error: allow_degraded: there is "
						    "no guarantee 'limits.memry'" },
	};

	CHECK_ROWS(rows);
	CHECK(make_spec(&spec, "version: 1\nallow_degraded: [limits.memry, zzz]\n"));
	plan_check_spec(&spec);
	CHECK(spec.diags.errors == 2);
	CHECK_STR(spec.diags.items[0].hint, "did you mean 'limits.memory'?");
	CHECK_STR(spec.diags.items[1].hint, "bawn doctor lists them");
	spec_done(&spec);
}

/* What begins like a place that is taken, secret or the host's, and is another one. */
static void test_near_misses(void)
{
	static const struct {
		const char *good, *bad; /* the second is what the first nearly is */
	} rows[] = {
		{ "binds: [~/.ssh2:/data]", "binds: [~/.ssh:/data]" },
		{ "binds: [~/.ss:/data]", "binds: [~/.ssh/x:/data]" },
		{ "binds: [~/a/.ssh:/data]", "binds: [~/.aws/config:/data]" },
		{ "binds: [~/.config/ghost:/data]", "binds: [~/.config/gh:/data]" },
		{ "binds: [~/.claude.jsonx:/data]", "binds: [~/.claude.json:/data]" },
		{ "binds: [/home/bob/.sshx:/data]", "binds: [/home/bob/.ssh:/data]" },
		{ "binds: [/homes/bob/.ssh:/data]", "binds: [/home/bob:/data]" },
		{ "binds: [/rooted/.ssh:/data]", "binds: [/root/.ssh:/data]" },
		{ "binds: [/etc/bawn2:/data]", "binds: [/etc/bawn:/data]" },
		{ "binds: [/run/userdata:/data]", "binds: [/run/user/1:/data]" },
		{ "binds: [/process:/data]", "binds: [/proc:/data]" },
		{ "binds: [/system:/data]", "binds: [/sys/x:/data]" },
		{ "binds: [/a:/bootx]", "binds: [/a:/boot/x]" },
		{ "binds: [/a:/devices]", "binds: [/a:/dev/x]" },
		{ "binds: [/a:/etcetera/x]", "binds: [/a:/etc/x]" },
		{ "binds: [/a:/run/bawnx]", "binds: [/a:/run/bawn/x]" },
		{ "binds: [/a:/sysx]", "binds: [/a:/sys]" },
		{ "binds: [/a:/usrx]", "binds: [/a:/usr]" },
		{ "binds: [/a:/binx]", "binds: [/a:/bin]" },
		{ "binds: [/a:/home/agentx]", "binds: [/a:/home/agent]" },
		{ "binds: [/a:/wor]", "binds: [/a:/work]" },
		{ "binds: [/a:/a]\nproject: {at: /ab/c}", "binds: [/a:/a]\nproject: {at: /a/c}" },
		{ "files: {/etc/hostsx: \"\"}", "files: {/etc/hosts: \"\"}" },
		{ "files: {/etc/bawnx/y: \"\"}", "files: {/etc/bawn/y: \"\"}" },
		{ "state: [/home/agent/.x, /home/agent/.xy]",
			"state: [/home/agent/.x, /home/agent/.x/y]" },
		{ "state: [/home/agent/.xy]\nbinds: [/a:/home/agent/.x]",
			"state: [/home/agent/.x/y]\nbinds: [/a:/home/agent/.x]" },
		{ "project: {mode: writable, write_allowlist: [$PROJECT/.envrcx]}",
			"project: {mode: writable, write_allowlist: [$PROJECT/.envrc]}" },
		{ "project: {mode: writable, write_allowlist: [$PROJECT/.git/hooksx/a]}",
			"project: {mode: writable, write_allowlist: [$PROJECT/.git/hooks/a]}" },
		{ "project: {mode: writable, protect: [a]}\nbinds: [ab:/x:rw]",
			"project: {mode: writable, protect: [a]}\nbinds: [a:/x:rw]" },
		{ "project: {mode: writable, protect: [a/b]}\nbinds: [a/bc:/x:rw]",
			"project: {mode: writable, protect: [a/b]}\nbinds: [a:/x:rw]" },
#define SECRET                                                                                     \
	"network: {mode: allowlist}\n"                                                             \
	"secrets: [{name: s, host: \"s.org:443\", header: k, from: \"file:~/keys/s\"}]\n"
		{ SECRET "binds: [~/key:/x]", SECRET "binds: [~/keys:/x]" },
		{ SECRET "binds: [~/keys/ss:/x]", SECRET "binds: [~/keys/s:/x]" },
#undef SECRET
		{ "project: {cage: project, read_allowlist: [/etcetera/**]}",
			"project: {cage: project, read_allowlist: [/etc/**]}" },
	};

	for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
		const char *text = i % 2 ? rows[i / 2].bad : rows[i / 2].good;
		char file[300];

		snprintf(file, sizeof(file), "version: 1\n%s\n", text);
		check_that(make_spec(&spec, file), file, __FILE__, __LINE__);
		plan_check_spec(&spec);
		if ((spec.diags.errors > 0) != (i % 2))
			printf("%s\n", first_said(&spec));
		check_that((spec.diags.errors > 0) == (i % 2), text, __FILE__, __LINE__);
		spec_done(&spec);
	}
}

int main(void)
{
	test_near_misses();
	test_leaks();
	test_targets();
	test_project_place();
	test_patterns();
	test_patterns_leak();
	test_degraded_names();
	return check_report();
}
