/*
 * Names and paths that begin like others and are others, for matchers of several modules that look
 * at a disk or at a plan: acknowledged paths, protected paths, nested mounts, places of the cage.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/scan/change_marks.h"
#include "check.h"
#include "check/check.h"
#include "fake_host.h"
#include "keeper/inspect/keeper_mounts.h"
#include "keeper/keeper_inside.h"
#include "make_spec.h"

static struct spec spec;
static char top[] = "/tmp/bawn-near-XXXXXX";

static void make_file(const char *path)
{
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
}

/* --- spec --- */

static void test_files(void)
{
	static const char *const good[] = { "/home/agent/a", "/etc/a", "/opt/a", "/run/a/b" };
	static const char *const bad[] = { "/home/agentx/a", "/home/agen/a", "/home/a", "/etcx/a",
		"/et/a", "/optx/a", "/runx/a", "/a/etc/b", "/home/agent", "/etc", "/run" };

	for (size_t i = 0; i < COUNT_OF(good) + COUNT_OF(bad); i++) {
		bool is_good = i < COUNT_OF(good);
		const char *path = is_good ? good[i] : bad[i - COUNT_OF(good)];
		char file[100];

		snprintf(file, sizeof(file), "version: 1\nfiles: {%s: \"x\"}\n", path);
		check_that(make_spec(&spec, file) == is_good, path, __FILE__, __LINE__);
		spec_done(&spec);
	}
}

/* --- check --- */

static bool warns(const char *yaml, const char *text)
{
	bool is_said = false;
	char file[200];

	snprintf(file, sizeof(file), "version: 1\n%s\n", yaml);
	CHECK(make_spec(&spec, file));
	check_settings(&spec);
	for (size_t i = 0; i < spec.diags.count; i++)
		is_said |= strstr(spec.diags.items[i].text, text) != NULL;
	spec_done(&spec);
	return is_said;
}

static void test_places(void)
{
	static const char mirrors[] = "mirrors a host", home[] = "in one operator's home";

	CHECK(warns("binds: ['/srv/a:/root/a']", mirrors));
	CHECK(!warns("binds: ['/srv/a:/rooted/a']", mirrors));
	CHECK(warns("binds: ['/srv/a:/home/agentx/a']", mirrors));
	CHECK(!warns("binds: ['/srv/a:/home/agent/a']", mirrors));
	CHECK(!warns("binds: ['/srv/a:/homes/bob/a']", mirrors));
	CHECK(!warns("binds: ['/srv/a:/home/bob/a']\nproject: {at: /home/bob}",
		"/home/bob/a mirrors a host"));
	CHECK(warns("binds: ['/srv/a:/home/bobby/a']\nproject: {at: /home/bob}",
		"/home/bobby/a mirrors a host"));
	CHECK(warns("binds: ['/root/a:/srv/a']", home));
	CHECK(!warns("binds: ['/rooted/a:/srv/a']", home));
}

/* How many findings there are of the credentials in ~/t with one path acknowledged. */
static size_t findings(const char *allowed)
{
	struct check_places places = { top, top };
	char file[200];
	size_t count;

	snprintf(file, sizeof(file), "version: 1\nbinds: ['~/t:/data']\npreflight_allow: [%s]\n",
		allowed);
	CHECK(make_spec(&spec, file));
	check_contents(&spec, &places);
	count = spec.diags.errors + spec.diags.warnings;
	spec_done(&spec);
	return count;
}

/* What is acknowledged is this, and what is in it: not all that begins alike. */
static void test_acknowledged(void)
{
	CHECK(mkdir("t", 0700) == 0 && mkdir("t/x", 0700) == 0 && mkdir("t/x/.ssh", 0700) == 0);
	make_file("t/.env");
	CHECK(findings("~/t/none") == 2);
	CHECK(findings("~/t/.env") == 1 && findings("~/t/x/.ssh") == 1 && findings("~/t/x") == 1);
	CHECK(findings("~/t") == 0 && findings("~/t/.env, ~/t/x") == 0);
	CHECK(findings("~/t/.en") == 2 && findings("~/t/.envx") == 2);
	CHECK(findings("~/t/x/.ss") == 2 && findings("~/t/x/.ssh2") == 2);
	CHECK(findings("~/t2") == 2 && findings("/t") == 2);
}

/* --- keep --- */

/* Is a path held in the project `p`, where this is what the spec says of it? */
static bool is_held(const char *project, const char *path)
{
	own_fd int fd = open("p", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	own_free struct plan *p = NULL;
	struct keeper_protect hold;
	struct host host;
	struct err e = { 0 };
	bool is_found = false;
	char file[200];

	fake_host_init(&host);
	snprintf(file, sizeof(file), "version: 1\nproject: {mode: writable, %s}\n", project);
	CHECK(make_spec(&spec, file) && plan_build(&spec, &host, &p, NULL, &e) == 0);
	spec_done(&spec);
	if (!p)
		return false;
	keeper_protect_init(&hold);
	CHECK(keeper_protect_find(&hold, p, plan_find(p, PLAN_PROJECT, NULL), fd, &e) == 0);
	CHECK_STR(e.text, "");
	for (size_t i = 0; i < hold.count; i++)
		is_found |= hold.items[i].kind != CAGE_HELD_WAY && str_eq(hold.items[i].path, path);
	keeper_protect_done(&hold);
	return is_found;
}

/* Which part of the project something protected is in decides whether it has to be held. */
static void test_held(void)
{
	CHECK(mkdir("p", 0700) == 0 && mkdir("p/.env", 0700) == 0 && mkdir("p/a", 0700) == 0);
	make_file("p/.envrc");
	make_file("p/a/b");
	make_file("p/ab");
	CHECK(is_held("protect: [a/b]", ".envrc") && is_held("protect: [a/b]", "a/b"));
	CHECK(!is_held("protect: [a/b]", "ab"));
	/* Only .env can be written: .envrc is not in it. */
	CHECK(!is_held("write_allowlist: [$PROJECT/.env/**]", ".envrc"));
	CHECK(is_held("write_allowlist: [$PROJECT/a/**], protect: [a/b, ab]", "a/b"));
	CHECK(!is_held("write_allowlist: [$PROJECT/a/**], protect: [a/b, ab]", "ab"));
}

/* A mount below a source is in the way, one beside it is not. */
static void test_nested(void)
{
	static const struct {
		const char *source;
		bool is_refused;
	} rows[] = { { "/srv/data", false }, { "/srv/data2", true }, { "/srv", true },
		{ "/srv/dat", false }, { "/srv/data2/x", false }, { "/srv/data2/xy", false },
		{ "/", true } };
	struct keeper_mount mounts[] = { { .place = "/" }, { .place = "/srv/data2" },
		{ .place = "/srv/data2/x" } };
	const struct keeper_snapshot host = { .mounts = mounts, .mount_count = 3 };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct err e = { 0 };

		check_that(
			(keeper_refuse_nested(&host, rows[i].source, &e) < 0) == rows[i].is_refused,
			rows[i].source, __FILE__, __LINE__);
	}
}

/* --- work --- */

/* A link that takes the place of a folder takes that of what is protected in it, and of no more. */
static void test_in_place(void)
{
	static const char *const held[] = { "deep/er/secret" };
	static const struct {
		const char *path;
		enum change_mark mark;
	} rows[] = { { "deep", CHANGE_HELD }, { "deep/er", CHANGE_HELD },
		{ "deep/er/secret/x", CHANGE_HELD }, { "dee", CHANGE_PLAIN },
		{ "deep/e", CHANGE_PLAIN }, { "deep/er/sec", CHANGE_PLAIN },
		{ "deep/er/secrets", CHANGE_PLAIN }, { "deeper", CHANGE_PLAIN },
		{ "er", CHANGE_PLAIN } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct change_effect x = { .path = rows[i].path,
			.change = CHANGE_CHANGED,
			.before.type = CHANGE_FOLDER,
			.after.type = CHANGE_LINK };

		check_that(change_mark_effect(&x, held, 1) == rows[i].mark, rows[i].path, __FILE__,
			__LINE__);
	}
}

int main(void)
{
	if (!mkdtemp(top) || chdir(top) < 0)
		return 1;
	test_files();
	test_places();
	test_acknowledged();
	test_held();
	test_nested();
	test_in_place();
	if (chdir("/") == 0)
		CHECK(tree_remove(AT_FDCWD, top, NULL) == 0);
	return check_report();
}
