/*
 * Who may say what: the order of the layers, and for each rule of the table the value a project's
 * own file may ask for beside the next one, which it may not.
 */
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "make_spec.h"

static struct spec spec;

struct row {
	const char *user; /* what the user's policy says below its version; or NULL */
	const char *file; /* the same of the project's file */
	const char *said; /* NULL: settles */
};

/* What is refused is refused for its looseness alone: from the operator it settles. */
static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char user[400], file[400], what[400];

		snprintf(user, sizeof(user), "version: 1\n%s\n", rows[i].user ? rows[i].user : "");
		snprintf(file, sizeof(file), "version: 1\n%s\n", rows[i].file);
		snprintf(what, sizeof(what), "with '%s': '%s'", rows[i].user ? rows[i].user : "",
			rows[i].file);
		check_that(make_layers(&spec, NULL, rows[i].user ? user : NULL, file, false) ==
				   (rows[i].said == NULL),
			what, __FILE__, __LINE__);
		CHECK_STR(first_said(&spec), rows[i].said ? rows[i].said : "");
		CHECK(spec.diags.errors == (rows[i].said ? 1 : 0));
		spec_done(&spec);
		check_that(make_layers(&spec, NULL, rows[i].user ? user : NULL, file, true), what,
			__FILE__, __LINE__);
		spec_done(&spec);
	}
}

#define CHECK_ROWS(rows) check_rows((rows), COUNT_OF(rows))

#define BUILT_IN " is more than the built-in policy lets a project's own file ask for"
#define USER(at) " is more than user.yaml:" at " lets a project's own file ask for"

/* Refused means for its looseness alone, and that it is the only one who asks for too much. */
static void check_one(const char *above, const char *below, bool is_good)
{
	char user[200], file[200], what[500];
	bool is_settled;

	snprintf(user, sizeof(user), "version: 1\n%s\n", above);
	snprintf(file, sizeof(file), "version: 1\n%s\n", below);
	is_settled = make_layers(&spec, NULL, user, file, false);
	snprintf(what, sizeof(what), "with '%s': '%s' is %s", above, below,
		is_good ? "allowed" : "refused");
	check_that(is_settled == is_good &&
			   (is_good || (spec.diags.errors == 1 &&
					       strstr(first_said(&spec), " is more than "))),
		what, __FILE__, __LINE__);
	spec_done(&spec);
	check_that(make_layers(&spec, NULL, user, file, true), what, __FILE__, __LINE__);
	spec_done(&spec);
}

static void test_booleans(void)
{
	static const struct row rows[] = {
		{ NULL, "relaxed: false", NULL },
		{ NULL, "relaxed: true", "f.yaml:2:10: error: relaxed: 'true'" BUILT_IN },
		{ "defaults: {relaxed: true}", "relaxed: true", NULL },
		{ "defaults: {relaxed: true}", "relaxed: false", NULL },
		{ "project_may: {relaxed: true}", "relaxed: true", NULL },
		{ "defaults: {relaxed: true}\nproject_may: {relaxed: false}", "relaxed: true",
			"f.yaml:2:10: error: relaxed: 'true'" USER("3:24") },
		{ NULL, "fakeroot: true", "f.yaml:2:11: error: fakeroot: 'true'" BUILT_IN },
		{ "project_may: {fakeroot: true}", "fakeroot: true", NULL },
		{ NULL, "audit: {strict_binds: true}", NULL },
		{ NULL, "audit: {strict_binds: false}", NULL },
		{ "defaults: {audit: {strict_binds: true}}", "audit: {strict_binds: true}", NULL },
		{ "defaults: {audit: {strict_binds: true}}", "audit: {strict_binds: false}",
			"f.yaml:2:23: error: audit.strict_binds: 'false'" USER("2:34") },
	};

	CHECK_ROWS(rows);
}

static void test_choices(void)
{
	static const struct row rows[] = {
		{ NULL, "project: {mode: read_only}", NULL },
		{ NULL, "project: {mode: captured}", NULL },
		{ NULL, "project: {mode: writable}",
			"f.yaml:2:17: error: project.mode: 'writable'" BUILT_IN },
		{ "defaults: {project: {mode: read_only}}", "project: {mode: captured}",
			"f.yaml:2:17: error: project.mode: 'captured'" USER("2:28") },
		{ "project_may: {project: {mode: writable}}", "project: {mode: writable}", NULL },
		{ NULL, "project: {cage: project}",
			"f.yaml:2:17: error: project.cage: 'project'" BUILT_IN },
		{ "project_may: {project: {cage: project}}", "project: {cage: project}", NULL },
		{ NULL, "project: {git: none}", NULL },
		{ NULL, "project: {git: auto}", NULL },
		{ "defaults: {project: {git: none}}", "project: {git: none}", NULL },
		{ "defaults: {project: {git: none}}", "project: {git: auto}",
			"f.yaml:2:16: error: project.git: 'auto'" USER("2:27") },
		{ NULL, "network: {mode: allowlist}",
			"f.yaml:2:17: error: network.mode: 'allowlist'" BUILT_IN },
		{ "project_may: {network: {mode: allowlist}}", "network: {mode: allowlist}", NULL },
		{ "project_may: {network: {mode: allowlist}}", "network: {mode: host}",
			"f.yaml:2:17: error: network.mode: 'host'" USER("2:31") },
		{ NULL, "engine: native", NULL },
		{ NULL, "engine: microvm", NULL },
		{ NULL, "engine: landlock", "f.yaml:2:9: error: engine: 'landlock'" BUILT_IN },
		{ NULL, "engine: logical", "f.yaml:2:9: error: engine: 'logical'" BUILT_IN },
		{ "defaults: {engine: native}", "engine: native", NULL },
		{ "defaults: {engine: native}", "engine: bwrap",
			"f.yaml:2:9: error: engine: 'bwrap'" USER("2:20") },
		{ "project_may: {engine: landlock}", "engine: landlock", NULL },
	};

	CHECK_ROWS(rows);
}

static void test_numbers(void)
{
	static const struct row rows[] = {
		{ NULL, "limits: {memory: 8G}", NULL },
		{ NULL, "limits: {memory: 8193M}",
			"f.yaml:2:18: error: limits.memory: '8193M'" BUILT_IN },
		{ "defaults: {limits: {memory: 2G}}", "limits: {memory: 2048M}", NULL },
		{ "defaults: {limits: {memory: 2G}}", "limits: {memory: 3G}",
			"f.yaml:2:18: error: limits.memory: '3G'" USER("2:29") },
		{ "project_may: {limits: {memory: 16G}}", "limits: {memory: 16G}", NULL },
		{ NULL, "limits: {pids: 4096, disk: 8G}", NULL },
		{ NULL, "limits: {pids: 4097}",
			"f.yaml:2:16: error: limits.pids: '4097'" BUILT_IN },
		{ NULL, "limits: {disk: 1T}", "f.yaml:2:16: error: limits.disk: '1T'" BUILT_IN },
		{ NULL, "limits: {cpu: 64, time: 100d, output: 1T, files: 100000}", NULL },
		{ "defaults: {limits: {cpu: 2}}", "limits: {cpu: 2.0}", NULL },
		{ "defaults: {limits: {cpu: 2}}", "limits: {cpu: 2.001}",
			"f.yaml:2:15: error: limits.cpu: '2.001'" USER("2:26") },
		{ NULL, "session: {ttl: 1h}", NULL },
		{ NULL, "session: {ttl: 1h1ms}",
			"f.yaml:2:16: error: session.ttl: '1h1ms'" BUILT_IN },
		{ "project_may: {limits: {time: 1h}}", "limits: {time: 1h}", NULL },
		{ "project_may: {limits: {time: 1h}}", "limits: {time: 61m}",
			"f.yaml:2:16: error: limits.time: '1h1m'" USER("2:30") },
	};

	CHECK_ROWS(rows);
}

static void test_subsets(void)
{
	static const struct row rows[] = {
		{ NULL, "binds: [lib:/x, {from: ./a, to: /y}]", NULL },
		{ NULL, "binds: [lib:/x:rw]",
			"f.yaml:2:9: error: binds: '$PROJECT/lib:/x:rw'" BUILT_IN },
		{ "project_may: {project: {mode: writable}}", "binds: [lib:/x:rw]",
			"f.yaml:2:9: error: binds: '$PROJECT/lib:/x:rw'" BUILT_IN },
		{ "project_may: {binds: [lib:/any:rw]}", "binds: [lib:/x:rw]", NULL },
		{ "defaults: {project: {read_allowlist: [$PROJECT/src/**]}}", "binds: [src/a:/x]",
			NULL },
		{ "defaults: {project: {read_allowlist: [$PROJECT/src/**]}}", "binds: [lib:/x]",
			"f.yaml:2:9: error: binds: '$PROJECT/lib:/x:ro'" BUILT_IN },
		{ NULL, "binds: [../lib:/x]",
			"f.yaml:2:9: error: binds: '$PROJECT/../lib:/x:ro'" BUILT_IN },
		{ NULL, "binds: [~/src:/x]", "f.yaml:2:9: error: binds: '~/src:/x:ro'" BUILT_IN },
		{ "project_may: {binds: [~/src:/any]}", "binds: [~/src/lib:/x]", NULL },
		{ "project_may: {binds: [~/src:/any]}", "binds: [~/src/lib:/x:rw]",
			"f.yaml:2:9: error: binds: '~/src/lib:/x:rw'" USER("2:22") },
		{ "project_may: {binds: [.:/any:rw]}", "binds: [../../etc:/x]",
			"f.yaml:2:9: error: binds: '$PROJECT/../../etc:/x:ro'" USER("2:22") },
		{ NULL, "env: {pass: [LANG, TERM, TZ, CI]}", NULL },
		{ NULL, "env: {pass: [AWS_SECRET_ACCESS_KEY]}",
			"f.yaml:2:14: error: env.pass: 'AWS_SECRET_ACCESS_KEY'" BUILT_IN },
		{ "project_may: {env: {pass: [EDITOR]}}", "env: {pass: [EDITOR, LANG]}", NULL },
		{ NULL, "env: {pass: [LD_PRELOAD]}",
			"f.yaml:2:14: error: env.pass: 'LD_PRELOAD'" BUILT_IN },
		{ NULL, "network: {allow: []}", NULL },
		{ NULL, "network: {allow: [a.org:443]}",
			"f.yaml:2:19: error: network.allow: 'a.org:443/tls'" BUILT_IN },
		{ "project_may: {network: {allow: [\"*.example.org:443\"]}}",
			"network: {allow: [a.example.org:443]}", NULL },
		{ "project_may: {network: {allow: [\"*.example.org:443\"]}}",
			"network: {allow: [example.org:443]}",
			"f.yaml:2:19: error: network.allow: 'example.org:443/tls'" USER("2:32") },
		{ "project_may: {network: {allow: [\"*.example.org:443\"]}}",
			"network: {allow: [evilexample.org:443]}",
			"f.yaml:2:19: error: network.allow: 'evilexample.org:443/tls'" USER(
				"2:32") },
		{ "project_may: {network: {allow: [example.org:443]}}",
			"network: {allow: [example.org:443/tcp]}",
			"f.yaml:2:19: error: network.allow: 'example.org:443/tcp'" USER("2:32") },
		{ "project_may: {network: {allow: [10.0.0.0/8:5432]}}",
			"network: {allow: [10.1.0.0/16:5432]}", NULL },
		{ "project_may: {network: {allow: [10.0.0.0/8:5432]}}",
			"network: {allow: [0.0.0.0/1:5432]}",
			"f.yaml:2:19: error: network.allow: '0.0.0.0/1:5432/tcp'" USER("2:32") },
		{ NULL, "network: {host_ports: [7878]}",
			"f.yaml:2:24: error: network.host_ports: '7878'" BUILT_IN },
		{ "project_may: {network: {host_ports: [7878]}}", "network: {host_ports: [7878]}",
			NULL },
		{ NULL, "network: {publish: [\"80:80\"]}",
			"f.yaml:2:22: error: network.publish: '127.0.0.1:80:80'" BUILT_IN },
		{ NULL, "engine_args: [--x]", "f.yaml:2:15: error: engine_args: '--x'" BUILT_IN },
		{ NULL, "preflight_allow: [~/.ssh]",
			"f.yaml:2:19: error: preflight_allow: '~/.ssh'" BUILT_IN },
		{ NULL, "allow_degraded: [home]",
			"f.yaml:2:18: error: allow_degraded: 'home'" BUILT_IN },
		{ "project_may: {allow_degraded: [home]}", "allow_degraded: [home]", NULL },
		{ NULL, "project: {read_allowlist: [$PROJECT/src/**], write_allowlist: []}", NULL },
		{ NULL, "project: {read_allowlist: [/etc/**]}",
			"f.yaml:2:28: error: project.read_allowlist: '/etc/**'" BUILT_IN },
		{ "defaults: {project: {write_allowlist: [$PROJECT/out/**]}}",
			"project: {write_allowlist: [$PROJECT/**]}",
			"f.yaml:2:29: error: project.write_allowlist: '$PROJECT/**'" USER("2:39") },
	};

	CHECK_ROWS(rows);
}

/* What begins or ends like something that is allowed, and is something else. */
static void test_near_misses(void)
{
#define MAY(what)  "project_may: {" what "}"
#define READ(path) "project: {read_allowlist: [" path "]}"
	/* One entry of the operator's, what a project may ask for below it, and what it may not. */
	static const struct {
		const char *may, *good[4], *bad[10];
	} rows[] = {
		{ MAY(READ("$PROJECT/src/**")),
			{ READ("$PROJECT/src"), READ("$PROJECT/src/**"),
				READ("$PROJECT/src/a/**") },
			{ READ("$PROJECT/src-secret"), READ("$PROJECT/src-secret/**"),
				READ("$PROJECT/srcs"), READ("$PROJECT/src.d/**"),
				READ("$PROJECT/sr"), READ("$PROJECT"), READ("$PROJECT/a/src"),
				READ("/src"), READ("/etc/src/**") } },
		{ MAY(READ("$PROJECT/a")), { READ("$PROJECT/a") },
			{ READ("$PROJECT/a/b"), READ("$PROJECT/a/**"), READ("$PROJECT/ab"),
				READ("$PROJECT/b/a"), READ("$PROJECT") } },
		{ MAY(READ("/etc/**")), { READ("/etc/ssl"), READ("/etc") },
			{ READ("/etc2"), READ("/etcetera/**"), READ("/"), READ("/**"),
				READ("/srv/etc/**"), READ("$PROJECT/etc/**") } },
		{ MAY("project: {write_allowlist: [$PROJECT/out/**]}"),
			{ "project: {write_allowlist: [$PROJECT/out/a]}" },
			{ "project: {write_allowlist: [$PROJECT/output]}",
				"project: {write_allowlist: [$PROJECT/out2/**]}" } },
		{ "defaults: {project: {read_allowlist: [$PROJECT/src/**]}}", { "binds: [src:/x]" },
			{ "binds: [src-secret:/x]", "binds: [srcs/a:/x]", "binds: [sr:/x]",
				"binds: [a/src:/x]" } },
		{ MAY("binds: [~/src:/any]"), { "binds: [~/src:/x]", "binds: [~/src/a:/x]" },
			{ "binds: [~/src-secret:/x]", "binds: [~/src2/a:/x]", "binds: [~/sr:/x]",
				"binds: [~:/x]", "binds: [/src:/x]", "binds: [~/a/src:/x]" } },
		{ MAY("env: {pass: [EDITOR]}"), { "env: {pass: [EDITOR, TERM]}" },
			{ "env: {pass: [EDITORX]}", "env: {pass: [EDITO]}",
				"env: {pass: [XEDITOR]}", "env: {pass: [editor]}",
				"env: {pass: [TERMINFO]}", "env: {pass: [TZDIR]}",
				"env: {pass: [LANGUAGE]}", "env: {pass: [LC_]}" } },
#define ALLOW(host) "network: {allow: [\"" host "\"]}"
		{ MAY(ALLOW("*.example.org:443")),
			{ ALLOW("a.example.org:443"), ALLOW("a.b.example.org:443"),
				ALLOW("*.example.org:443"), ALLOW("*.a.example.org:443") },
			{ ALLOW("aexample.org:443"), ALLOW("example.org:443"),
				ALLOW("a.example.org.evil:443"), ALLOW("a.example.orgs:443"),
				ALLOW("a.xexample.org:443"), ALLOW("*.xexample.org:443"),
				ALLOW("a.example.org:4430"), ALLOW("a.example.org:44"),
				ALLOW("a.example.org:443/tcp") } },
		{ MAY(ALLOW("example.org:443")), { ALLOW("example.org:443") },
			{ ALLOW("a.example.org:443"), ALLOW("evil-example.org:443"),
				ALLOW("example.org.evil:443"), ALLOW("example.or:443"),
				ALLOW("*.example.org:443"), ALLOW("xample.org:443") } },
		{ MAY(ALLOW("10.1.0.0/16:5432")),
			{ ALLOW("10.1.0.0/16:5432"), ALLOW("10.1.255.0/24:5432"),
				ALLOW("10.1.2.3:5432") },
			{ ALLOW("10.0.0.0/16:5432"), ALLOW("10.2.0.0/16:5432"),
				ALLOW("10.0.0.0/15:5432"), ALLOW("10.0.255.255:5432"),
				ALLOW("10.2.0.0:5432"), ALLOW("110.1.0.0/16:5432"),
				ALLOW("10.1.0.0/16:543") } },
#undef ALLOW
		{ MAY("network: {host_ports: [7878]}"), { "network: {host_ports: [7878]}" },
			{ "network: {host_ports: [787]}", "network: {host_ports: [17878]}",
				"network: {host_ports: [7879]}", "network: {host_ports: [878]}" } },
		{ MAY("preflight_allow: [~/.ssh]"), { "preflight_allow: [~/.ssh]" },
			{ "preflight_allow: [~/.ssh2]", "preflight_allow: [~/.ss]",
				"preflight_allow: [~/.ssh/id]" } },
		{ MAY("engine_args: [--x]"), { "engine_args: [--x]" },
			{ "engine_args: [--xy]", "engine_args: [--]", "engine_args: [--x=y]" } },
		{ MAY("state: [/home/agent/.x]"), { "state: [/home/agent/.x]" },
			{ "state: [/home/agent/.xy]", "state: [/home/agent/.x/y]",
				"state: [/home/agent/y/.x]" } },
		{ MAY("agent: claude"), { "agent: claude" },
			{ "agent: claude2", "agent: claud", "agent: xclaude" } },
		{ MAY("root: {image: debian}"), { "root: {image: debian}" },
			{ "root: {image: debian2}", "root: {image: debia}",
				"root: {image: xdebian}" } },
		{ "defaults: {syscalls: /etc/p.json}", { "syscalls: /etc/p.json" },
			{ "syscalls: /etc/p.json.json", "syscalls: /etc/pp.json",
				"syscalls: /a/etc/p.json" } },
	};
#undef MAY
#undef READ

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		for (size_t k = 0; k < 4 && rows[i].good[k]; k++)
			check_one(rows[i].may, rows[i].good[k], true);
		for (size_t k = 0; k < 10 && rows[i].bad[k]; k++)
			check_one(rows[i].may, rows[i].bad[k], false);
	}
}

static void test_texts(void)
{
	static const struct row rows[] = {
		{ NULL, "project: {path: sub/dir}", NULL },
		{ NULL, "project: {path: ..}", "f.yaml:2:17: error: project.path: '..'" BUILT_IN },
		{ NULL, "project: {path: /etc}",
			"f.yaml:2:17: error: project.path: '/etc'" BUILT_IN },
		{ NULL, "project: {path: ~/x}",
			"f.yaml:2:17: error: project.path: '~/x'" BUILT_IN },
		{ NULL, "root: {image: dir:image}",
			"f.yaml:2:15: error: root.image: 'dir:$PROJECT/image'" BUILT_IN },
		{ "project_may: {root: {image: dir:image}}", "root: {image: dir:image}", NULL },
		{ NULL, "root: {image: dir:../image}",
			"f.yaml:2:15: error: root.image: 'dir:$PROJECT/../image'" BUILT_IN },
		{ NULL, "root: {image: debian}",
			"f.yaml:2:15: error: root.image: 'debian'" BUILT_IN },
		{ "defaults: {root: {image: debian}}", "root: {image: debian}", NULL },
		{ "defaults: {root: {image: debian}}", "root: {image: dir:image}",
			"f.yaml:2:15: error: root.image: 'dir:$PROJECT/image'" USER("2:26") },
		{ NULL, "root: {overlay: ephemeral}", NULL },
		{ NULL, "root: {overlay: ~/o}",
			"f.yaml:2:17: error: root.overlay: '~/o'" BUILT_IN },
		{ NULL, "syscalls: strict", NULL },
		{ NULL, "syscalls: ./p.json",
			"f.yaml:2:11: error: syscalls: '$PROJECT/p.json'" BUILT_IN },
		{ "defaults: {syscalls: strict}", "syscalls: default",
			"f.yaml:2:11: error: syscalls: 'default'" USER("2:22") },
		{ "defaults: {syscalls: /etc/p.json}", "syscalls: strict", NULL },
		{ "defaults: {syscalls: /etc/p.json}", "syscalls: /etc/p.json", NULL },
	};

	CHECK_ROWS(rows);
}

/* An agent's profile asks for hosts and programs: the operator names it. */
static void test_agent(void)
{
	static const struct row rows[] = {
		{ NULL, "agent: b", "f.yaml:2:8: error: agent: 'b'" BUILT_IN },
		{ "defaults: {agent: b}", "agent: b", NULL },
		{ "defaults: {agent: c}", "agent: b",
			"f.yaml:2:8: error: agent: 'b'" USER("2:19") },
		{ "project_may: {agent: b}", "agent: b", NULL },
		{ NULL, "state: [/home/agent/.x]",
			"f.yaml:2:9: error: state: '/home/agent/.x'" BUILT_IN },
		{ "project_may: {state: [/home/agent/.x]}", "state: [/home/agent/.x]", NULL },
	};

	CHECK_ROWS(rows);
}

/* What decides nothing about the wall is the project's to say, and cannot be forbidden either. */
static void test_free(void)
{
	static const struct row rows[] = {
		{ NULL,
			"name: a\nfiles: {/etc/b: \"b\"}\ncommand: [c]\nstartup_commands: [d]\n"
			"startup_prompts: [e]\nworkdir: /work/f\nenv: {set: {G: h}}\n"
			"project: {at: /elsewhere, protect: [i]}\n"
			"root: {overlay_create_if_missing: false}",
			NULL },
	};
	static const char *const policies[][2] = {
		{ "version: 1\nproject_may: {name: x}\n",
			"user.yaml:2:21: error: project_may.name: a project may set this freely" },
		{ "version: 1\nproject_may: {project: {protect: [x]}}\n",
			"user.yaml:2:34: error: project_may.project.protect: a project may set "
			"this freely" },
		{ "version: 1\ndefaults: {environment: prod}\n",
			"user.yaml:2:12: error: unknown key 'defaults.environment'" },
		{ "version: 1\nnetwork: {mode: none}\n",
			"user.yaml:2:1: error: unknown key 'network' in a policy" },
		{ "version: 1\ndefaults: [x]\n", "user.yaml:2:11: error: defaults: expected a map "
						 "of spec keys, not a list" },
		{ "defaults: {name: x}\n",
			"user.yaml:1:1: error: the file does not say its version" },
	};

	CHECK_ROWS(rows);
	for (size_t i = 0; i < COUNT_OF(policies); i++) {
		CHECK(!make_layers(&spec, NULL, policies[i][0], NULL, false));
		CHECK_STR(first_said(&spec), policies[i][1]);
		spec_done(&spec);
	}
}

/* Every key that has a rule is held to it: the operator's forbidding layer is always named. */
static void test_system_layer(void)
{
	CHECK(!make_layers(&spec, "version: 1\ndefaults: {limits: {memory: 1G}}\n", NULL,
		"version: 1\nlimits: {memory: 2G}\n", false));
	CHECK_STR(first_said(&spec), "f.yaml:2:18: error: limits.memory: '2G' is more than "
				     "sys.yaml:2:29 lets a project's own file ask for");
	spec_done(&spec);
	CHECK(!make_layers(&spec, "version: 1\nproject_may: {network: {mode: allowlist}}\n",
		"version: 1\n", "version: 1\nnetwork: {mode: host}\n", false));
	CHECK(strstr(first_said(&spec), "more than sys.yaml:2:31 lets"));
	spec_done(&spec);
}

/* --- prod --- */

static void test_prod(void)
{
	static const char dev[] = "version: 1\nenvironment: dev\n";
	static const char prod[] = "version: 1\nenvironment: prod\n";
	static const char logical[] = "version: 1\nengine: logical\n";
	static const struct {
		const char *system, *user;
		const char *refused_by; /* NULL: logical may run */
	} rows[] = {
		{ NULL, NULL, NULL },
		{ dev, dev, NULL },
		{ prod, NULL, "sys.yaml:2:14" },
		{ prod, dev, "sys.yaml:2:14" }, /* the user cannot undo it */
		{ prod, prod, "sys.yaml:2:14" },
		{ dev, prod, "user.yaml:2:14" },
		{ NULL, prod, "user.yaml:2:14" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char wanted[200] = "";

		if (rows[i].refused_by)
			snprintf(wanted, sizeof(wanted),
				"f.yaml:2:9: error: engine: 'logical' enforces nothing, and %s "
				"says environment: prod",
				rows[i].refused_by);
		CHECK(make_layers(&spec, rows[i].system, rows[i].user, logical, true) ==
			!rows[i].refused_by);
		CHECK_STR(first_said(&spec), wanted);
		CHECK(spec_choice(&spec, SPEC_ENVIRONMENT) ==
			(rows[i].refused_by ? SPEC_PROD : SPEC_DEV));
		spec_done(&spec);
		CHECK(make_layers(&spec, rows[i].system, rows[i].user, "version: 1\n", true));
		spec_done(&spec);
	}
	spec_init(&spec);
	spec_add_policy(&spec, SPEC_LAYER_SYSTEM, "sys.yaml", prod, strlen(prod));
	spec_add_option(&spec, SPEC_ENGINE, "--engine", "logical");
	CHECK(!spec_settle(&spec));
	CHECK_STR(first_said(&spec), "--engine: error: engine: 'logical' enforces nothing, and "
				     "sys.yaml:2:14 says environment: prod");
	spec_done(&spec);
}

int main(void)
{
	test_booleans();
	test_choices();
	test_numbers();
	test_subsets();
	test_near_misses();
	test_texts();
	test_agent();
	test_free();
	test_system_layer();
	test_prod();
	return check_report();
}
