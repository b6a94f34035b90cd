#include "check/check.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "check/check_git.h"

#include "base/count.h"
#include "check.h"

/* --- what was said --- */

static struct spec spec;

static void load(const char *yaml)
{
	static char bytes[400000];

	snprintf(bytes, sizeof(bytes), "version: 1\n%s\n", yaml);
	spec_done(&spec); /* of the test before; nothing at first */
	spec_init(&spec);
	spec_add_file(&spec, "bawn.yaml", bytes, strlen(bytes), true);
}

/* What was said with this in its sentence or its hint. */
static const struct diag *find(enum diag_level level, const char *text)
{
	for (size_t i = 0; i < spec.diags.count; i++) {
		const struct diag *d = &spec.diags.items[i];

		if (d->level == level &&
			(strstr(d->text, text) || (d->hint && strstr(d->hint, text))))
			return d;
	}
	return NULL;
}

static bool says(const char *text)
{
	return find(DIAG_WARNING, text) || find(DIAG_ERROR, text);
}

/* --- settings: each finding is there with the thing, and not without it --- */

#define NET(more) "network: { mode: allowlist, " more " }"

struct pair {
	const char *with, *without, *texts[8];
};

static const struct pair errors[] = {
	{ "audit: { strict_binds: true }\nbinds: ['~/a:/home/alice/a', '~/b:/root/b']",
		"audit: { strict_binds: true }\nbinds: ['~/a:/home/agent/a', '~/b:/work/b']",
		{ "target /home/alice/a mirrors a host", "target /root/b mirrors a host" } },
	{ NET("publish: ['80:80', '80:81']"), NET("publish: ['80:80', '81:80']"),
		{ "opens the same port of the host as the entry at bawn.yaml:2:" } },
};

static const struct pair warnings[] = {
	/* places */
	{ "binds: ['~/a:/home/al/a', '~/b:/Users/b', '~/c:/root/c', { from: ~/d, to: '/C:\\d' }]",
		"binds: ['~/a:/home/agent/z', '~/b:/srv/b', '~/c:/opt/c', { from: ~/d, to: /d }]",
		{ "target /home/al/a mirrors a host", "write /home/agent/a",
			"target /Users/b mirrors", "choose a place below /home/agent, /srv",
			"target /root/c mirrors", "target /C:\\d mirrors" } },
	{ "binds: ['~/a:/home/alice/a']",
		"binds: ['~/a:/home/alice/a']\nproject: { at: /home/alice }",
		{ "target /home/alice/a mirrors a host" } },
	{ "binds: ['/home/alice/a:/data']\nroot: { image: 'dir:/root/i' }",
		"binds: ['~/a:/data']\nroot: { image: 'dir:~/i' }",
		{ "binds: /home/alice/a is in one operator's home", "write ~/a",
			"root.image: /root/i is in one", "write ~/i" } },
	{ "project: { at: /home/alice/p }", "project: { at: /home/agent/p }",
		{ "project.at: /home/alice/p mirrors a host" } },
	{ "binds: ['out:/data:rw']", "binds: ['out:/data:rw']\nproject: { mode: writable }",
		{ "reaches the project itself, although project.mode is captured" } },
	/* pointless */
	{ "network: { allow: ['a.org:443'], host_ports: [80], publish: ['80:80'] }",
		NET("allow: ['a.org:443'], host_ports: [80], publish: ['80:80']"),
		{ "network.allow: nothing of it is reachable",
			"network.host_ports: nothing of it is reachable",
			"network.publish: nothing is published" } },
	{ "network: { mode: host, allow: ['a.org:443'], host_ports: [80], publish: ['80:80'] }",
		"network: { mode: host, allow: [] }",
		{ "network.allow: it holds nothing back", "network.host_ports: network.mode: host",
			"network.publish: nothing is published" } },
	{ NET(""), "network: { mode: none }", { "allowlist allows nothing" } },
	{ NET(""), NET("") "\nagent: x", { "allowlist allows nothing" } },
	{ "project: { mode: read_only, write_allowlist: [$PROJECT/a] }",
		"project: { mode: captured, write_allowlist: [$PROJECT/a] }",
		{ "project.write_allowlist: nothing of it can be written" } },
	{ "project: { cage: project, at: /srv/p }", "project: { cage: project }",
		{ "project.at: the project is at its own path" } },
	{ "engine_args: [-x]", "engine_args: [-x]\nengine: bwrap", { "engine_args: which" } },
	{ "engine_args: [-x]\nengine: native", "engine: native", { "engine_args: the run is" } },
	{ "root: { overlay_size: 5G }", "root: { overlay: ~/o, overlay_size: 5G }",
		{ "because root.overlay is ephemeral" } },
	{ "root: { overlay: ~/o }", "root: { overlay: ~/o, overlay_create_if_missing: false }",
		{ "the run would be refused if the overlay is missing" } },
	{ "root: { overlay: ~/o, overlay_size: 2G }\nlimits: { memory: 1G }",
		"root: { overlay: ~/o, overlay_size: 1G }\nlimits: { memory: 1G }",
		{ "root.overlay_size: it cannot be filled, because an overlay is in memory" } },
	{ "allow_degraded: [limits.cpu]\nrelaxed: true", "allow_degraded: [limits.cpu]",
		{ "allow_degraded: it allows nothing more", "outside the chain of verification" } },
	{ "engine: logical", "engine: native", { "this version has no engine logical" } },
	{ "limits: { time: 90m }\nsession: { ttl: 1h }", "limits: { time: 90m }",
		{ "a run may take 1h30m, longer than its session is kept (session.ttl: 1h)" } },
	/* lists */
	{ NET("allow: ['a.org:443', 'A.org:443', 'a.org:443/tcp']"),
		NET("allow: ['a.org:443', 'b.org:443', 'a.org:80']"),
		{ "'a.org:443/tls' stands here a second time; the first is at bawn.yaml:2:",
			"'a.org:443/tcp' has another protocol than the same destination at" } },
	{ NET("allow: ['x.y.a.org:7', '*.z.a.org:7', '*.a.org:7', '10.1.0.0/16:7', "
	      "'10.0.0.0/8:7']"),
		NET("allow: ['a.org:7', '*.z.a.org:8', '*.a.org:7', '11.1.0.0/16:7', "
		    "'10.0.0.0/8:7']"),
		{ "'x.y.a.org:7/tcp' is already allowed by '*.a.org:7/tcp' at bawn.yaml:2:",
			"'*.z.a.org:7/tcp' is already allowed by '*.a.org:7/tcp'",
			"'10.1.0.0/16:7/tcp' is already allowed by '10.0.0.0/8:7/tcp'" } },
	{ "allow_degraded: [limits.cpu, limits.cpu]\nnetwork: { host_ports: [80, 80] }",
		"command: [a, a]\nnetwork: { host_ports: [80, 81] }",
		{ "'limits.cpu' stands here a second time", "'80' stands here a second time" } },
	/* environment */
	{ "env: { pass: [CI], set: { A: x, CI: '1' } }", "env: { pass: [CI], set: { A: x } }",
		{ "CI is also set at bawn.yaml:2:" } },
	{ "env: { pass: [LD_PRELOAD, SSH_AUTH_SOCK, GH_TOKEN, PGPASSWORD, AWS_PROFILE, my_keys] }",
		"env: { pass: [LANG, TOKENIZERS_X, AWS_REGION, KEYBOARD], set: { LD_PRELOAD: /x } "
		"}",
		{ "LD_PRELOAD brings paths", "SSH_AUTH_SOCK tells the cage of a door",
			"GH_TOKEN looks like a secret", "PGPASSWORD looks like a secret",
			"AWS_PROFILE looks like a secret", "my_keys looks like a secret" } },
};

static void check_yaml(const char *yaml)
{
	load(yaml);
	check_that(spec_settle(&spec), "no errors", yaml, 0);
	check_settings(&spec);
}

/* Each text is said with the one YAML, at a line of it and with a hint; not with the other. */
static void test_pairs(enum diag_level level, const struct pair *pairs, size_t count)
{
	for (const struct pair *p = pairs; p < pairs + count; p++) {
		check_yaml(p->with);
		for (const char *const *text = p->texts; *text; text++) {
			const struct diag *d = find(level, *text);

			check_that(d && d->at.line > 1 && d->hint, *text, p->with, 0);
		}
		check_yaml(p->without);
		for (const char *const *text = p->texts; *text; text++)
			check_that(!says(*text), *text, p->without, 1);
	}
}

/* A layer above may overrule a list; only who says both contradicts himself. */
static void test_layers(void)
{
	static const char policy[] = "version: 1\ndefaults: { project: { protect: [a] } }\n";

	load("network: { mode: allowlist, allow: ['a.org:443'] }\nproject: { protect: [a] }\n"
	     "binds: ['~/x:/srv/x']");
	spec_add_policy(&spec, SPEC_LAYER_USER, "policy.yaml", policy, strlen(policy));
	spec_add_option(&spec, SPEC_NETWORK_MODE, "--network", "none");
	spec_add_option(&spec, SPEC_BINDS, "-v", "/home/alice/x:/srv/y");
	CHECK(spec_settle(&spec));
	check_settings(&spec);
	CHECK(spec.diags.warnings == 0);
}

/* Nothing is said of a sound spec, nor of none at all. */
static void test_quiet(void)
{
	check_yaml("name: x\ncommand: [a, a]\nproject: { protect: [.git/x] }\n"
		   "network: { mode: allowlist, allow: ['a.org:443', '*.b.org:443', "
		   "'10.0.0.0/8:7'] }\n"
		   "binds: ['~/a:/home/agent/a', '~/b:/data/b', '/srv/c:/srv/c', '~/d:/work/d']\n"
		   "env: { pass: [LANG, TZ], set: { CI: '1' } }\nlimits: { time: 30m }");
	CHECK(spec.diags.errors + spec.diags.warnings == 0);
}

static void test_many_entries(void)
{
	static char yaml[300000] = "network: { mode: allowlist, allow: [\n '*.y.org:443'";
	size_t n = strlen(yaml);
	clock_t start;

	for (int i = 0; i < 10000; i++)
		n += (size_t)snprintf(yaml + n, 64, "\n ,'a%d.x.org:%d'", i % 9990, 80 + i % 2);
	snprintf(yaml + n, 64, "] }");
	start = clock();
	check_yaml(yaml);
	CHECK(clock() - start < 2 * CLOCKS_PER_SEC && spec.diags.warnings == 10);
}

/* --- contents --- */

static char home[64]; /* of these tests; ~/t is what is bound */
static int tree = -1;

#define put_folder(path)       CHECK(mkdirat(tree, (path), 0700) == 0)
#define put_link(path, target) CHECK(symlinkat((target), tree, (path)) == 0)
#define put_file(path, text)   put_bytes((path), (text), sizeof(text) - 1)

static void put_bytes(const char *path, const char *bytes, size_t n)
{
	own_fd int fd = openat(tree, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
}

static void put_socket(const char *path)
{
	own_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/t/%s", home, path);
	CHECK(bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
}

static void tree_open(void)
{
	char path[sizeof(home) + 2];

	snprintf(home, sizeof(home), "/tmp/bawn-check-XXXXXX");
	CHECK(mkdtemp(home) != NULL);
	snprintf(path, sizeof(path), "%s/t", home);
	CHECK(mkdir(path, 0700) == 0);
	tree = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return st && type != FTW_NS && ftw ? remove(path) : -1;
}

static void tree_close(void)
{
	close(tree);
	CHECK(nftw(home, remove_one, 64, FTW_DEPTH | FTW_PHYS) == 0);
}

#define BIND "binds: ['~/t:/data']"

static void look(const char *yaml)
{
	struct check_places places = { home, home };

	load(yaml);
	CHECK(spec_settle(&spec));
	check_contents(&spec, &places);
}

/* Looks, and finds just these; a NULL ends them. */
static void expect(int line, const char *yaml, const char *const *texts)
{
	size_t count = 0;

	look(yaml);
	for (; texts[count]; count++)
		check_that(says(texts[count]), texts[count], yaml, line);
	check_that(spec.diags.errors + spec.diags.warnings == count, "no more", yaml, line);
}

#define EXPECT(yaml, ...) expect(__LINE__, (yaml), (const char *const[]){ __VA_ARGS__ })

static void test_missing(void)
{
	struct check_places nowhere = { NULL, "/" };

	EXPECT("binds: ['~/missing:/data', 't/none:/srv/x', '~/t:/srv/t']",
		"binds: ~/missing does not exist on this host",
		"binds: $PROJECT/t/none does not exist on this host", NULL);
	CHECK(spec.diags.errors == 2);
	check_contents(&spec, &nowhere);
	CHECK(find(DIAG_ERROR, "it is not known where ~ is") != NULL);
}

static void test_links(void)
{
	char inside[80];

	put_folder("a");
	put_link("a/up", "../b");
	put_link("a/here", "./x/../y");
	put_link("a/cage", "/data/x");
	EXPECT(BIND, NULL);
	put_link("a/out", "../../b");
	put_link("abs", "/opt/python");
	put_link("a/sly", "/data/../etc/passwd");
	snprintf(inside, sizeof(inside), "%s/t/a", home);
	put_link("host", inside);
	EXPECT(BIND, "~/t: the symlink a/out leads out of it, to ../../b",
		"the symlink abs leads out of it, to /opt/python",
		"the symlink a/sly leads out of it", "the symlink host names /tmp/bawn-check-",
		NULL);
}

static void test_python(void)
{
	put_file("model.pth", "PK\0\0/x\n");
	put_file("weights.txt", "/abs\n");
	EXPECT(BIND, NULL);
	put_folder(".venv");
	put_folder(".venv/bin");
	put_file(".venv/pyvenv.cfg", "home = /usr/bin\n");
	EXPECT(BIND, "~/t: .venv is a virtual environment, made for", NULL);
	put_link(".venv/bin/python", "python3");
	put_link(".venv/bin/python3", "/opt/py/bin/python3");
	put_file("e.pth", "# made\r\n/home/alice/src\r\nimport x\n");
	put_file("i.pth", "import os; os.system('x')\n");
	put_file("r.pth", "below\n");
	EXPECT(BIND,
		".venv is a virtual environment, and its interpreter is outside the bind: /opt/py/",
		"the symlink .venv/bin/python3 leads out",
		"e.pth makes Python import from a path of the host, in line 2: /home/alice/src",
		"i.pth runs code whenever Python starts, in line 1",
		"r.pth adds to what Python imports", NULL);
}

static void test_git(void)
{
	put_folder(".git");
	put_folder("sub");
	put_folder("other");
	put_file("config", "[core]\nsshCommand = x\n");
	put_file(".git/config", "[core]\n\tbare = false\n[remote \"o\"]\n\turl = ssh://git@h/x\n");
	put_file("sub/.git", "gitdir: ../.git/modules/sub\n");
	EXPECT(BIND, NULL);
	put_file("other/.git", "gitdir: /home/alice/r/.git/worktrees/o\n");
	put_file(".git/config",
		"[url \"https://tok:en@h/\"] insteadOf = h:\n[core]\nhooksPath=/x\n");
	EXPECT(BIND, "~/t: .git/config line 1 has url.insteadOf, which makes git reach",
		".git/config line 3 has core.hooksPath",
		"other/.git names a repository outside the bind: /home/alice/r/.git/worktrees",
		NULL);
	CHECK(!says("tok"));
}

static void test_credentials(void)
{
	put_folder("x");
	put_file("x/id_rsa.pub", "");
	put_file("x/.env.example", "");
	EXPECT(BIND, NULL);
	put_folder("x/.ssh");
	put_file("x/.ssh/id_rsa", "");
	put_file(".env", "");
	EXPECT(BIND, "~/t: x/.ssh holds credentials, by its name",
		"~/t: .env holds credentials, by its name", NULL);
	EXPECT(BIND "\npreflight_allow: [~/t/x/.ssh, ~/t/.env]", NULL);
	/* A link is no way round a name that is refused. */
	put_link("keys", "x/.ssh");
	EXPECT("binds: ['~/t/keys:/data']",
		"~/t/keys: by its name it holds credentials: /tmp/bawn-check-", "id_rsa holds",
		NULL);
	EXPECT("binds: ['~/t/x/.ssh:/data']\npreflight_allow: [~/t/x/.ssh]", NULL);
}

/* Sockets, devices, mounts. */
static void test_doors(void)
{
	put_folder("run");
	put_file("run/plain", "");
	EXPECT(BIND, NULL);
	put_socket("run/s");
	EXPECT(BIND, "~/t: run/s is a socket", NULL);
	EXPECT("binds: ['~/t/run/s:/data/s', '/dev/null:/srv/null']", "~/t/run/s: it is a socket",
		"/dev/null: it is a device", NULL);
	look("binds: ['/:/data']");
	CHECK(says("/: proc is a mount of its own, and was not looked into"));
}

/* At most five of a kind, then a number; always the same five. */
static void test_number_said(void)
{
	char name[16];

	for (int i = 9; i > 0; i--) {
		snprintf(name, sizeof(name), "l%d", i);
		put_link(name, "/x");
	}
	EXPECT(BIND, "link l1", "link l2", "link l3", "link l4", "link l5",
		"and 4 more symlinks that lead out of it", NULL);
}

/* --- a tree that would hang, loop, take over a terminal or never end --- */

static void put_deep(void)
{
	char path[256] = "";

	for (int i = 0; i < 100; i++) {
		memcpy(path + 2 * i, "d/", 3);
		put_folder(path);
	}
	put_link("d/d/d/link", "/out");
	memcpy(path + 200, "link", 5);
	put_link(path, "/out");
}

static void test_hostile(void)
{
	own(buf) struct buf out = { .max = 1 << 20 };
	clock_t start;

	put_folder(".git");
	put_folder("w");
	CHECK(mkfifoat(tree, ".git/config", 0600) == 0 && mkfifoat(tree, "x.pth", 0600) == 0);
	CHECK(mkfifoat(tree, "w/.git", 0600) == 0 && mkfifoat(tree, "pyvenv.cfg", 0600) == 0);
	put_link("loop", "loop");
	put_link("round", ".");
	put_link("w/round", "..");
	put_link("\x1b[2J\nerror: all is lost", "/\x1b]0;x\a\xff");
	put_socket("sock");
	put_deep();
	start = clock();
	EXPECT(BIND, "\\x1b[2J\\x0aerror: all is lost leads out of it, to /\\x1b]0;x\\x07\\xff",
		".git/config is a named pipe", "pyvenv.cfg is a", "sock is a socket", "w/.git is a",
		"x.pth is a named pipe", "d/d/d/link leads", "too large to look at whole", NULL);
	CHECK(clock() - start < 2 * CLOCKS_PER_SEC);
	diags_print(&spec.diags, &out, false);
	CHECK(out.len > 0 && !strchr(buf_text(&out), '\x1b') && !strchr(buf_text(&out), '\a'));
}

static void test_huge(void)
{
	clock_t start;
	char name[32];

	put_folder("many");
	for (int i = 0; i < 30000; i++) {
		snprintf(name, sizeof(name), "many/%d.pth", i);
		CHECK(mknodat(tree, name, S_IFREG | 0600, 0) == 0);
	}
	put_folder("z");
	put_link("z/link", "/out");
	start = clock();
	EXPECT(BIND, "looked at the first 20000 entries only", NULL);
	CHECK(clock() - start < 2 * CLOCKS_PER_SEC);
}

/* --- git's format, line by line --- */

static void expect_git(const char *text, unsigned line, const char *name)
{
	const struct check_git_setting *found;
	struct check_git git;

	check_git_init(&git, text, strlen(text));
	found = check_git_next(&git);
	check_equal(found ? found->name : "", name, text, (int)line);
	check_that(!found || git.line == line, "line", text, (int)line);
}

static void test_git_format(void)
{
	expect_git("[core]\nfsmonitor = .git/evil\n", 2, "core.fsmonitor");
	expect_git("[core]\nfsmonitor = true ; builtin\n", 0, "");
	expect_git("[core]\nfsmonitor\n", 0, "");
	expect_git("\xef\xbb\xbf[CORE]\r\n  SSHCommand=x\r\n", 2, "core.sshCommand");
	expect_git("[include] path = /x", 1, "include.path");
	expect_git("[includeIf \"gitdir:/a]b\\\"\"]\n\tpath = x\n", 2, "includeIf.path");
	expect_git("[url.x]\npushInsteadOf = y\n", 2, "url.pushInsteadOf");
	expect_git("[remote \"o\"]\nurl = https://u:secret@h/x\n", 2, "remote.url");
	expect_git("[remote \"o\"]\nurl = https://alice@h/x:y@z\n", 0, "");
	expect_git("# [core]\n;hooksPath = x\n[corex]\nhooksPath = x\n", 0, "");
	expect_git("[", 0, "");
	expect_git("[core \"\\", 0, "");
	expect_git("", 0, "");
}

int main(void)
{
	void (*const in_tree[])(void) = { test_missing, test_links, test_python, test_git,
		test_credentials, test_doors, test_number_said, test_hostile, test_huge };

	alarm(100); /* nothing here may wait */
	test_pairs(DIAG_ERROR, errors, COUNT_OF(errors));
	test_pairs(DIAG_WARNING, warnings, COUNT_OF(warnings));
	test_layers();
	test_quiet();
	test_many_entries();
	test_git_format();
	for (size_t i = 0; i < COUNT_OF(in_tree); i++) {
		tree_open();
		in_tree[i]();
		tree_close();
	}
	spec_done(&spec);
	return check_report();
}
