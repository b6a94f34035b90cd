/* Plans of specs on a machine made by hand: what is in them, and what their digest stands for. */
#include <errno.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "fake_host.h"
#include "is_json.h"
#include "make_spec.h"
#include "plan/plan.h"
#include "plan_sound.h"

static struct spec spec;
static struct host host;

static void check_file(bool is_so, const char *file, int line)
{
	char start[120];

	snprintf(start, sizeof(start), "%s", file); /* a file may be long */
	check_that(is_so, start, __FILE__, line);
}

#define CHECK_FILE(is_so, file) check_file((is_so), (file), __LINE__)

/* The plan of an operator's file on `host`; NULL where there is none. The caller frees it. */
static struct plan *build(const char *file, struct err *e)
{
	struct plan *p = NULL;
	int r = -EINVAL;

	if (make_spec(&spec, file))
		r = plan_build(&spec, &host, &p, NULL, e);
	CHECK_FILE((r == 0) == (p != NULL), file);
	if (p)
		CHECK_FILE(plan_is_sound(p), file);
	spec_done(&spec);
	return p;
}

static struct plan *build_good(const char *file)
{
	struct err e = { 0 };
	struct plan *p = build(file, &e);

	CHECK_FILE(p != NULL, file);
	CHECK_STR(e.text, "");
	return p;
}

/* Is there an operation of this kind with these operands? NULL: any. */
static const struct plan_op *find(
	const struct plan *p, enum plan_op_kind kind, const char *a, const char *b)
{
	for (uint32_t i = 0; p && i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if (op->kind == kind && plan_says(p, op, a, b))
			return op;
	}
	return NULL;
}

static char *print(const struct plan *p, bool is_json_form)
{
	struct buf out = { .max = (size_t)1 << 22 };

	if (p && is_json_form)
		plan_print_json(p, &out);
	else if (p)
		plan_print(p, &out, false);
	CHECK(!out.failed);
	return out.data ? out.data : strdup("");
}

/* --- what is in a plan --- */

static void test_default(void)
{
	own_free struct plan *p = build_good("version: 1\n");
	own_free char *text = print(p, false), *json = print(p, true);
	uint32_t late = 0;

	if (!p)
		return;
	CHECK(p->engine == SPEC_ENGINE_NATIVE && p->is_hardened);
	CHECK_STR(plan_str(p, p->level_reasons), "");
	for (uint32_t i = 0; i < p->op_count; i++)
		late += plan_ops(p)[i].kind == PLAN_NAMESPACE && i >= 7;
	CHECK(late == 0 && find(p, PLAN_NAMESPACE, "user", NULL) == plan_ops(p));
	CHECK(find(p, PLAN_NAMESPACE, "net", NULL) && find(p, PLAN_NETWORK, "none", NULL));
	CHECK(find(p, PLAN_IDS, "operator", NULL) && find(p, PLAN_IDS, NULL, NULL)->n == 1000);
	CHECK(find(p, PLAN_TMPFS, "", "/") && find(p, PLAN_DIR, "", "/home/agent"));
	CHECK(find(p, PLAN_BIND, "/usr", "/usr")->flags == (PLAN_READ_ONLY | PLAN_NO_DEV));
	CHECK(find(p, PLAN_SYMLINK, "usr/bin", "/bin") && !find(p, PLAN_BIND, NULL, "/sbin"));
	CHECK(find(p, PLAN_PROJECT, "$PROJECT", "/work")->flags == (PLAN_NO_DEV | PLAN_CAPTURED));
	CHECK(!(find(p, PLAN_PROC, "", "/proc")->flags & PLAN_SUBSET));
	CHECK(find(p, PLAN_PROC_FILE, "", "/proc/cpuinfo"));
	CHECK(find(p, PLAN_LANDLOCK, NULL, NULL)->n == 4);
	CHECK(find(p, PLAN_RULE, "", "/usr")->flags == PLAN_READ_ONLY);
	CHECK(find(p, PLAN_RULE, "", "/work")->flags == 0 && find(p, PLAN_RULE, "", "/tmp"));
	CHECK(find(p, PLAN_LIMIT, "limits.memory", "cgroup v2")->need == PLAN_MAY);
	CHECK(find(p, PLAN_SYSCALLS, "default", NULL) && find(p, PLAN_WORKDIR, "", "/work"));
	CHECK(find(p, PLAN_DROP, "groups", NULL) && find(p, PLAN_DROP, "capabilities", NULL));
	CHECK(!find(p, PLAN_PROTECT, NULL, NULL) && !find(p, PLAN_ALLOW, NULL, NULL));
	CHECK(str_starts(text, "plan: hardened, engine native\n  spec        sha256:"));
	CHECK(strstr(text, "\n  cow project   /work") && is_json(json));
	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++) {
		const struct plan_promise *promise = &plan_promises(p)[g];

		check_that(promise->guarantee == g && promise->is_given == (promise->need > 0),
			plan_guarantee_defs[g].name, __FILE__, __LINE__);
	}
}

static void test_pieces(void)
{
	own_free struct plan *p = build_good(
		"version: 1\nname: audit\nfakeroot: true\ncommand: [echo, hi]\nworkdir: /work/src\n"
		"startup_commands: [make]\nagent: claude\nstartup_prompts: [be kind]\n"
		"project: {mode: writable, protect: [Makefile], write_allowlist: "
		"[$PROJECT/out/**]}\n"
		"binds: [/srv/b:/z/b, /srv/a:/z:rw, /srv/s:/srv/sources/s]\n"
		"env: {set: {CI: \"1\", LANG: de}, pass: [EDITOR]}\n"
		"network: {mode: allowlist, allow: [a.org:443], host_ports: [7878], "
		"publish: [\"80:80\"]}\n"
		"limits: {memory: 1G, cpu: 1.5, time: 30m}\n");
	own_free char *text = print(p, false);

	if (!p)
		return;
	CHECK(!p->is_hardened);
	CHECK_STR(plan_str(p, p->name), "audit");
	CHECK_STR(plan_str(p, p->level_reasons), "fakeroot true, project.mode writable");
	CHECK(find(p, PLAN_IDS, NULL, NULL)->n == 0);
	CHECK(find(p, PLAN_PROJECT, NULL, "/work")->flags ==
		(PLAN_NO_DEV | PLAN_READ_ONLY)); /* but for the part */
	CHECK(find(p, PLAN_PROTECT, "", ".git/hooks") && find(p, PLAN_PROTECT, "", "Makefile"));
	CHECK(find(p, PLAN_PROTECT, "", "bawn.yaml") && find(p, PLAN_PART, "", "out"));
	/* A directory is mounted before what is mounted in it. */
	CHECK(find(p, PLAN_BIND, "/srv/a", "/z") < find(p, PLAN_BIND, "/srv/b", "/z/b"));
	CHECK(find(p, PLAN_BIND, NULL, "/z")->flags == PLAN_NO_DEV);
	CHECK(find(p, PLAN_BIND, NULL, "/z/b")->flags ==
		(PLAN_NO_DEV | PLAN_READ_ONLY | PLAN_VIEW));
	CHECK(find(p, PLAN_ENV, "CI", "1") && find(p, PLAN_ENV, "LANG", "de"));
	CHECK(find(p, PLAN_ENV, "LANG", "C.UTF-8")->flags == PLAN_OWN &&
		!find(p, PLAN_ENV, "EDITOR", NULL));
	CHECK(find(p, PLAN_ENV_PASS, "EDITOR", NULL)->need == PLAN_MAY);
	CHECK(find(p, PLAN_ENV, "BAWN_WORKDIR", "/srv/sources"));
	CHECK(find(p, PLAN_ALLOW, "a.org:443/tls", NULL) &&
		find(p, PLAN_HOST_PORT, "", "")->n == 7878);
	CHECK(find(p, PLAN_PUBLISH, "127.0.0.1:80:80", NULL));
	CHECK(find(p, PLAN_FILE, "nameserver 127.0.0.1\n", "/etc/resolv.conf"));
	CHECK(find(p, PLAN_LIMIT, "limits.memory", NULL)->need == PLAN_MUST);
	CHECK(find(p, PLAN_LIMIT, "limits.cpu", NULL)->n == 1500);
	CHECK(find(p, PLAN_STARTUP, "make", NULL));
	CHECK(find(p, PLAN_WORKDIR, "", "/work/src") && find(p, PLAN_ARGUMENT, "echo", NULL));
	CHECK(strstr(text, "\n  run         echo hi\n") && strstr(text, "limits.time     30m"));
}

static void test_hosts(void)
{
	own_free struct plan *copied = NULL, *root = NULL, *image = NULL, *shared = NULL;

	fake_host_lose(&host, HOST_OVERLAY);
	fake_host_lose(&host, HOST_PROC_SUBSET);
	copied = build_good("version: 1\n");
	CHECK(find(copied, PLAN_PROJECT, NULL, NULL)->flags & PLAN_COPIED);
	CHECK(!(find(copied, PLAN_PROC, NULL, NULL)->flags & PLAN_SUBSET));
	fake_host_init(&host);
	host.is_root = true;
	host.has_bash = false;
	root = build_good("version: 1\nbinds: [/srv:/srv]\n");
	CHECK(find(root, PLAN_IDS, "reserved", NULL));
	CHECK(find(root, PLAN_PROJECT, NULL, NULL)->flags & PLAN_IDMAPPED);
	CHECK(find(root, PLAN_BIND, "/srv", NULL)->flags & PLAN_IDMAPPED);
	CHECK(find(root, PLAN_ENV, "SHELL", "/bin/sh"));
	fake_host_init(&host);
	image = build_good("version: 1\nroot: {image: dir:/srv/image}\n");
	CHECK(find(image, PLAN_IMAGE, "dir:/srv/image", "/") &&
		!find(image, PLAN_BIND, "/usr", NULL));
	shared = build_good("version: 1\nnetwork: {mode: host}\n");
	CHECK(!find(shared, PLAN_NAMESPACE, "net", NULL) &&
		find(shared, PLAN_NETWORK, "host", NULL));
}

/* A limit that is promised is also set: by an operation, whatever the engine. */
static void test_limits_are_set(void)
{
	static const enum plan_guarantee limits[] = { PLAN_LIMITS_MEMORY, PLAN_LIMITS_CPU,
		PLAN_LIMITS_PIDS, PLAN_LIMITS_DISK, PLAN_LIMITS_TIME, PLAN_LIMITS_OUTPUT,
		PLAN_LIMITS_FILES };
	static const enum host_ability lost[] = { HOST_KVM, HOST_CGROUP_MEMORY, HOST_CGROUP_CPU,
		HOST_CGROUP_PIDS, HOST_USERNS_PIDS };

	for (enum spec_engine e = SPEC_ENGINE_NATIVE; e <= SPEC_ENGINE_LOGICAL; e++) {
		for (size_t i = 0; i < COUNT_OF(lost); i++) {
			char file[200];
			own_free struct plan *p = NULL;

			if (i > 0)
				fake_host_lose(&host, lost[i]);
			snprintf(file, sizeof(file),
				"version: 1\nengine: %s\nrelaxed: true\nlimits: {memory: 1G, cpu: "
				"1, pids: 9, disk: 1G, time: 1m, output: 1M, files: 9}\n",
				spec_keys[SPEC_ENGINE].choices[e]);
			p = build_good(file);
			for (size_t k = 0; p && k < COUNT_OF(limits); k++) {
				const char *name = plan_guarantee_defs[limits[k]].name;
				char what[80];

				snprintf(what, sizeof(what), "%s is set by %s without %s", name,
					spec_keys[SPEC_ENGINE].choices[e],
					i ? host_ability_defs[lost[i]].name : "nothing");
				check_that(plan_promises(p)[limits[k]].is_given ==
						   (find(p, PLAN_LIMIT, name, NULL) != NULL),
					what, __FILE__, __LINE__);
			}
			fake_host_init(&host);
		}
	}
}

/* --- what differs, differs; what does not, does not --- */

/* The operations as text: what a cage would do, without the name of the spec. */
static char *operations(const char *file)
{
	own_free struct plan *p = build_good(file);
	char *json = print(p, true), *start = strstr(json, "\"operations\":");

	if (start)
		memmove(json, start, strlen(start) + 1);
	return json;
}

/* An empty allow-list allows nothing: its cage is not the cage of the full one. */
static void test_narrow_lists(void)
{
	static const char *const rows[][2] = {
		{ "version: 1\n", "version: 1\nproject: {write_allowlist: []}\n" },
		{ "version: 1\n", "version: 1\nproject: {read_allowlist: []}\n" },
		{ "version: 1\nproject: {write_allowlist: [$PROJECT/src/**]}\n",
			"version: 1\nproject: {write_allowlist: [$PROJECT/**, "
			"$PROJECT/src/**]}\n" },
		{ "version: 1\nproject: {read_allowlist: [$PROJECT/src/**]}\n",
			"version: 1\nproject: {read_allowlist: [$PROJECT/**, $PROJECT/src/**]}\n" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own_free char *wide = operations(rows[i][0]), *narrow = operations(rows[i][1]);

		CHECK_FILE(!str_eq(wide, narrow), rows[i][1]);
	}
}

/* Specs of one canonical form are one spec: they have one plan. */
static void test_same_spec_same_plan(void)
{
	static const char *const rows[][2] = {
		{ "version: 1\nbinds: [/a:/x, /b:/y]\n", "version: 1\nbinds: [/b:/y, /a:/x:ro]\n" },
		{ "version: 1\nenv: {set: {A: x, B: y}}\n",
			"version: 1\nenv: {set: {B: y, A: x}}\n" },
		{ "version: 1\nenv: {pass: [P, Q]}\n", "version: 1\nenv: {pass: [Q, P, Q]}\n" },
		{ "version: 1\nnetwork: {mode: allowlist, allow: [a.org:1, b.org:1]}\n",
			"version: 1\nnetwork: {mode: allowlist, allow: [b.org:1, a.org:1]}\n" },
		{ "version: 1\nproject: {mode: writable, protect: [a, b]}\n",
			"version: 1\nproject: {mode: writable, protect: [b, a]}\n" },
		{ "version: 1\nproject: {write_allowlist: [$PROJECT/a, $PROJECT/b]}\n",
			"version: 1\nproject: {write_allowlist: [$PROJECT/b, $PROJECT/a]}\n" },
		{ "version: 1\n", "version: 1\nlimits: {memory: 8G}\n" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own_free struct plan *a = build_good(rows[i][0]), *b = build_good(rows[i][1]);
		char x[SHA256_HEX_SIZE] = "", y[SHA256_HEX_SIZE] = "";

		if (!a || !b)
			continue;
		CHECK(plan_digest(a, x) == 0 && plan_digest(b, y) == 0);
		check_that(
			!str_eq(a->spec_digest, b->spec_digest) ||
				(a->size == b->size && memcmp(a, b, a->size) == 0 && str_eq(x, y)),
			rows[i][1], __FILE__, __LINE__);
	}
}

static void test_digest(void)
{
	static const char base[] = "version: 1\nbinds: [/srv/a:/a]\ncommand: [x]\n";
	static const char *const others[] = {
		"version: 1\nbinds: [/srv/a:/b]\ncommand: [x]\n",
		"version: 1\nbinds: [/srv/b:/a]\ncommand: [x]\n",
		"version: 1\nbinds: [/srv/a:/a:rw]\ncommand: [x]\n",
		"version: 1\nbinds: []\ncommand: [x]\n",
		"version: 1\nbinds: [/srv/a:/a]\ncommand: [x, x]\n",
		"version: 1\nbinds: [/srv/a:/a]\ncommand: [x]\nname: n\n",
	};
	own_free struct plan *p = build_good(base), *again = build_good(base);
	own_free char *json = print(p, true);
	char digest[SHA256_HEX_SIZE], other[SHA256_HEX_SIZE];

	if (!p || !again)
		return;
	CHECK(p->size == again->size && memcmp(p, again, p->size) == 0);
	CHECK(plan_digest(p, digest) == 0 && plan_digest(again, other) == 0);
	CHECK_STR(other, digest);
	sha256_hex(json, strlen(json), other); /* anyone can hash what is printed */
	CHECK_STR(other, digest);
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		own_free struct plan *q = build_good(others[i]);

		CHECK(q && plan_digest(q, other) == 0 && !str_eq(other, digest));
	}
	plan_preflight_digest(other);
	CHECK(find(p, PLAN_PREFLIGHT, other, NULL));
}

/* --- what cannot be planned --- */

static void test_errors(void)
{
	struct plan_choice choice;
	struct plan *p = NULL;
	struct err e = { 0 };

	CHECK(!build("version: 1\nbinds: [~/.ssh:/x]\n", &e) && e.kind == ERR_SPEC);
	CHECK(make_spec(&spec, "version: 1\n"));
	fake_host_lose(&host, HOST_LANDLOCK);
	fake_host_lose(&host, HOST_QEMU);
	CHECK(plan_build(&spec, &host, &p, &choice, &e) == -EOPNOTSUPP && e.kind == ERR_REFUSED);
	CHECK(!p && choice.engine == SPEC_ENGINE_AUTO &&
		choice.engines[SPEC_ENGINE_NATIVE].lacking == 1);
	CHECK(plan_build(&spec, &host, &p, NULL, NULL) == -EOPNOTSUPP && !p);
	fake_host_init(&host);
	spec_done(&spec);
}

/* What is missing is told, the first ability of the table like any other. */
static void test_missing_is_told(void)
{
	static const enum host_ability lost[] = { HOST_NS_USER, HOST_NS_IPC, HOST_LANDLOCK };

	for (size_t i = 0; i < COUNT_OF(lost); i++) {
		own_free struct plan *p = NULL;
		own_free char *text = NULL, *json = NULL;
		char member[80];

		fake_host_lose(&host, lost[i]);
		p = build_good("version: 1\nrelaxed: true\nengine: container\n");
		text = print(p, false);
		json = print(p, true);
		snprintf(member, sizeof(member), "\"missing\":\"%s\"",
			host_ability_defs[lost[i]].name);
		check_that(strstr(json, member) != NULL, member, __FILE__, __LINE__);
		check_that(strstr(text, host_ability_defs[lost[i]].meaning) != NULL, member,
			__FILE__, __LINE__);
		fake_host_init(&host);
	}
}

/* Sizes of the spec that fit its file fit the plan. */
static void test_large(void)
{
	own(buf) struct buf file = { .max = YAML_MAX_SIZE };
	own_free struct plan *p = NULL, *q = NULL;

	buf_puts(&file, "version: 1\nbinds:\n");
	for (int i = 0; i < 1000; i++)
		buf_printf(&file, "- /srv/%d:/data/%d\n", i, i);
	p = build_good(buf_text(&file));
	CHECK(p && find(p, PLAN_BIND, "/srv/999", "/data/999"));
	buf_done(&file);
	buf_init(&file, YAML_MAX_SIZE);
	buf_puts(&file, "version: 1\npreflight_allow:\n");
	for (int i = 0; i < 4000; i++)
		buf_printf(&file, "- /srv/some/longer/name/%d\n", i);
	q = build_good(buf_text(&file));
	CHECK(q && !q->is_hardened);
}

/* The allow-lists are in the tree and in Landlock's rules, and say the same in both. */
static void test_parts(void)
{
	static const struct {
		const char *file;
		int part, rule, whole; /* flags; -1: there is none */
	} rows[] = {
		{ "project: {write_allowlist: [$PROJECT/src/**]}", 0, 0, PLAN_READ_ONLY },
		{ "project: {read_allowlist: [$PROJECT/src/**]}", 0, 0, PLAN_LIST },
		{ "project: {read_allowlist: [$PROJECT/src/**], write_allowlist: []}",
			PLAN_READ_ONLY, PLAN_READ_ONLY, PLAN_LIST },
		{ "project: {mode: read_only, write_allowlist: [$PROJECT/src/**]}", -1, -1,
			PLAN_READ_ONLY },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char file[200];
		own_free struct plan *p = NULL;
		const struct plan_op *part, *rule, *whole;

		snprintf(file, sizeof(file), "version: 1\n%s\n", rows[i].file);
		p = build_good(file);
		if (!p)
			continue;
		part = find(p, PLAN_PART, "", "src");
		rule = find(p, PLAN_RULE, "", "/work/src");
		whole = find(p, PLAN_RULE, "", "/work");
		CHECK((part ? part->flags : -1) == rows[i].part);
		CHECK((rule ? rule->flags : -1) == rows[i].rule);
		CHECK(whole && whole->flags == rows[i].whole);
	}
}

/* The folder of git that is outside the project, if there is one. */
static void test_git(void)
{
	static const struct {
		const char *file;
		unsigned flags; /* 0: it is not shown */
	} rows[] = {
		{ "version: 1\n", PLAN_NO_DEV | PLAN_CAPTURED },
		{ "version: 1\nproject: {cage: project}\n", PLAN_NO_DEV | PLAN_CAPTURED },
		{ "version: 1\nproject: {mode: read_only}\n",
			PLAN_NO_DEV | PLAN_READ_ONLY | PLAN_VIEW },
		{ "version: 1\nproject: {write_allowlist: [$PROJECT/a]}\n",
			PLAN_NO_DEV | PLAN_CAPTURED | PLAN_READ_ONLY },
		{ "version: 1\nproject: {mode: writable}\n", PLAN_NO_DEV | PLAN_PROTECTS },
		{ "version: 1\nproject: {mode: writable, write_allowlist: [$PROJECT/a]}\n",
			PLAN_NO_DEV | PLAN_READ_ONLY | PLAN_VIEW },
		{ "version: 1\nproject: {read_allowlist: [$PROJECT/a]}\n", 0 },
		{ "version: 1\nproject: {git: none}\n", 0 },
		{ "version: 1\nengine: logical\n", 0 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own_free struct plan *without = build_good(rows[i].file);
		own_free struct plan *with = (host.has_outer_git = true, build_good(rows[i].file));
		const struct plan_op *git = find(with, PLAN_GIT, "$GIT", "$GIT");
		const struct plan_op *rule = find(with, PLAN_RULE, NULL, "$GIT");

		host.has_outer_git = false;
		CHECK_FILE(!find(without, PLAN_GIT, NULL, NULL), rows[i].file);
		CHECK_FILE((git ? git->flags : 0) == rows[i].flags, rows[i].file);
		CHECK_FILE(!git || git < find(with, PLAN_PROJECT, NULL, NULL), rows[i].file);
		CHECK_FILE((git != NULL) == (rule != NULL), rows[i].file);
		CHECK_FILE(!rule || (rule->flags & PLAN_READ_ONLY) == (git->flags & PLAN_READ_ONLY),
			rows[i].file);
	}
}

/* In a writable one its hooks are held, and what is other worktrees'. */
static void test_git_protected(void)
{
	static const char file[] = "version: 1\nproject: {mode: writable}\n";
	static const char *const others[] = { ".git/worktrees/x" };
	struct host before = host;
	own_free struct plan *inside = NULL, *outside = NULL, *without = NULL;

	host.git_others = others;
	host.git_other_count = 1;
	inside = build_good(file);
	CHECK(find(inside, PLAN_PROTECT, "", ".git/hooks"));
	CHECK(find(inside, PLAN_PROTECT, "", ".git/worktrees/x"));
	CHECK(!find(inside, PLAN_PROTECT, "$GIT", NULL));
	host.has_outer_git = true;
	outside = build_good(file);
	CHECK(find(outside, PLAN_PROTECT, "", ".git/hooks"));
	CHECK(!find(outside, PLAN_PROTECT, "", ".git/worktrees/x"));
	CHECK(find(outside, PLAN_PROTECT, "$GIT", "hooks"));
	CHECK(find(outside, PLAN_PROTECT, "$GIT", "config"));
	CHECK(find(outside, PLAN_PROTECT, "$GIT", "info/attributes"));
	CHECK(find(outside, PLAN_PROTECT, "$GIT", "worktrees/x"));
	CHECK(!find(outside, PLAN_PROTECT, "$GIT", ".envrc"));
	host.no_git_protect = true;
	without = build_good(file);
	CHECK(find(without, PLAN_GIT, NULL, NULL)->flags & PLAN_READ_ONLY);
	CHECK(!find(without, PLAN_PROTECT, "$GIT", NULL));
	host = before;
}

/* A rule of the network is data; its text is the spec's, whatever form that has. */
static void test_rules(void)
{
	static const char *const allowed[] = { "*.a.org:443/tls", "10.0.0.0/8:1/tcp",
		"192.0.2.1:80/tcp", "[2001:db8::/32]:443/tcp", "[2001:db8::1]:5432/tcp",
		"b.org:80/http", "c.org:443/tls", "d.org:443/tcp", "npm" };
	static const char *const published[] = { "0.0.0.0:8080:80", "127.0.0.1:1:2", "[::1]:3:4" };
	static const char *const secrets[] = {
		"name=e host=e.org:443 header=x-key from=env:KEY",
		("name=f host=f.org:8443 header=authorization scheme=Bearer from=file:~/a\\ b "
		 "ca=/etc/c\\\\d"),
		"name=g host=g.org:443 header=x-key from=file:/k ca=~/ca",
	};
	own(buf) struct buf file = { .max = 1 << 16 };
	own_free struct plan *p = NULL;
	const struct plan_op *op;

	buf_puts(&file, "version: 1\nnetwork:\n  mode: allowlist\n  allow:\n");
	for (size_t i = 0; i < COUNT_OF(allowed); i++)
		buf_printf(&file, "    - '%s'\n", allowed[i]);
	buf_puts(&file, "  publish:\n");
	for (size_t i = 0; i < COUNT_OF(published); i++)
		buf_printf(&file, "    - '%s'\n", published[i]);
	buf_puts(&file, "secrets:\n");
	for (size_t i = 0; i < COUNT_OF(secrets); i++)
		buf_printf(&file, "  - '%s'\n", secrets[i]);
	p = build_good(buf_text(&file));
	for (size_t i = 0; i < COUNT_OF(allowed); i++)
		CHECK_FILE(find(p, PLAN_ALLOW, allowed[i], ""), allowed[i]);
	for (size_t i = 0; i < COUNT_OF(published); i++)
		CHECK_FILE(find(p, PLAN_PUBLISH, published[i], ""), published[i]);
	for (size_t i = 0; i < COUNT_OF(secrets); i++)
		CHECK_FILE(find(p, PLAN_SECRET, secrets[i], ""), secrets[i]);
	op = find(p, PLAN_ALLOW, "*.a.org:443/tls", NULL);
	CHECK(op && plan_rule_of(p, op)->is_wildcard && plan_rule_of(p, op)->port == 443);
	op = find(p, PLAN_ALLOW, "10.0.0.0/8:1/tcp", NULL);
	CHECK(op && plan_rule_of(p, op)->prefix == 104 && plan_rule_of(p, op)->address[12] == 10);
	op = find(p, PLAN_SECRET, secrets[1], NULL);
	CHECK(op && plan_rule_of(p, op)->source_root == PLAN_ROOT_HOME);
	if (op)
		CHECK_STR(plan_rule_text(p, plan_rule_of(p, op), PLAN_RULE_SOURCE), "/a b");
}

/* No spec can name a root that is not its own. */
static void test_roots(void)
{
	static const struct {
		const char *from, *text;
		enum plan_root root;
	} rows[] = {
		{ "/a", "/a", PLAN_ROOT_NONE },
		{ "~", "~", PLAN_ROOT_HOME },
		{ "~/a", "~/a", PLAN_ROOT_HOME },
		{ "a", "$PROJECT/a", PLAN_ROOT_PROJECT },
		{ "../a", "$PROJECT/../a", PLAN_ROOT_PROJECT },
		{ "./$GIT", "$PROJECT/$GIT", PLAN_ROOT_PROJECT },
		{ "./$STATE/a", "$PROJECT/$STATE/a", PLAN_ROOT_PROJECT },
		{ "./$SESSION/home", "$PROJECT/$SESSION/home", PLAN_ROOT_PROJECT },
		{ "/$BAWN", "/$BAWN", PLAN_ROOT_NONE },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		own(buf) struct buf file = { .max = 4096 };
		own_free struct plan *p = NULL;
		const struct plan_op *op;

		buf_printf(&file, "version: 1\npreflight_allow: ['~']\nbinds: ['%s:/b']\n",
			rows[i].from);
		p = build_good(buf_text(&file));
		op = find(p, PLAN_BIND, rows[i].text, "/b");
		CHECK_FILE(op && op->a_root == rows[i].root, rows[i].from);
	}
}

/* A buffer that is too small fails, and does no more than that. */
static void test_small_buffers(void)
{
	own_free struct plan *p = build_good(
		"version: 1\nname: n\nbinds: [~/a:/b]\nenv: {pass: [LANG]}\ncommand: [c, d]\n"
		"project: {mode: writable, write_allowlist: [$PROJECT/e/**]}\n"
		"network: {mode: allowlist, allow: [f.org:1], host_ports: [2], "
		"publish: [\"3:3\"]}\nlimits: {time: 1h}\nstartup_commands: [g]\n");

	for (size_t max = 0; p && max < 6000; max += max < 300 ? 1 : 61) {
		own(buf) struct buf text = { .max = max }, json = { .max = max };

		plan_print(p, &text, max % 2);
		CHECK(text.failed ? text.len <= max : text.len > 0);
		plan_print_json(p, &json);
		CHECK(json.failed ? json.len <= max : json.len > 0);
	}
}

int main(void)
{
	fake_host_init(&host);
	test_default();
	test_pieces();
	test_hosts();
	test_limits_are_set();
	test_narrow_lists();
	test_same_spec_same_plan();
	test_digest();
	test_errors();
	test_missing_is_told();
	test_large();
	test_parts();
	test_git();
	test_git_protected();
	test_rules();
	test_roots();
	test_small_buffers();
	return check_report();
}
