/*
 * The comparison of a cage's mounts with the planned ones, on views made by hand: what is as
 * planned has no fault, and each single difference has one, of the right guarantee.
 */
#include "base/count.h"
#include "base/str.h"
#include "check.h"
#include "keeper/inspect/keeper_mounts.h"

#define READ_ONLY (PLAN_READ_ONLY | PLAN_NO_DEV)

enum {
	ROOT,
	ETC,
	USR,
	PROC,
	COVER,
	NULL_DEVICE,
	PTS,
	WORK,
	GIT,
	HOOKS,
	DATA,
	COUNT
};

static struct keeper_mount seen[COUNT + 4];
static struct keeper_expected expected[COUNT + 4];
static struct keeper_mount on_host[4];
static struct keeper_snapshot cage, host;
static struct keeper_mounts mounts;
static struct keeper_mount_faults faults;

/* A small cage, exactly as it was planned. */
static void make_good(void)
{
	static const struct keeper_expected planned[COUNT] = {
		[ROOT] = { .place = "/",
			.type = "tmpfs",
			.root = "/root",
			.flags = PLAN_NO_DEV,
			.kind = PLAN_TMPFS,
			.is_pool = true },
		[ETC] = { .place = "/etc",
			.type = "tmpfs",
			.root = "/own-etc",
			.flags = READ_ONLY,
			.kind = PLAN_TMPFS,
			.is_pool = true },
		[USR] = { .place = "/usr",
			.type = "ext4",
			.device = "8:1",
			.root = "/usr",
			.source = "/usr",
			.flags = READ_ONLY,
			.kind = PLAN_BIND },
		[PROC] = { .place = "/proc",
			.type = "proc",
			.root = "/",
			.flags = PLAN_NO_DEV | PLAN_NO_EXEC,
			.kind = PLAN_PROC },
		[COVER] = { .place = "/proc/sys",
			.type = "tmpfs",
			.root = "/covers/empty",
			.flags = READ_ONLY | PLAN_NO_EXEC,
			.kind = PLAN_PROC,
			.is_pool = true },
		[NULL_DEVICE] = { .place = "/dev/null",
			.type = "devtmpfs",
			.device = "0:5",
			.root = "/null",
			.flags = PLAN_NO_EXEC,
			.kind = PLAN_DEVICE },
		[PTS] = { .place = "/dev/pts",
			.type = "devpts",
			.root = "/",
			.flags = PLAN_NO_EXEC,
			.kind = PLAN_DEVPTS },
		[WORK] = { .place = "/work",
			.type = "overlay",
			.root = "/",
			.flags = PLAN_NO_DEV | PLAN_PROTECTS,
			.kind = PLAN_PROJECT,
			.layer = 1 },
		[GIT] = { .place = "/work/.git",
			.type = "overlay",
			.root = "/.git",
			.flags = PLAN_NO_DEV,
			.kind = PLAN_PROTECT,
			.layer = 1 },
		[HOOKS] = { .place = "/work/.git/hooks",
			.type = "overlay",
			.root = "/.git/hooks",
			.flags = READ_ONLY,
			.kind = PLAN_PROTECT,
			.layer = 1 },
		[DATA] = { .place = "/data",
			.type = "ext4",
			.device = "8:1",
			.root = "/srv/data",
			.source = "/srv/data",
			.flags = READ_ONLY | PLAN_IDMAPPED,
			.kind = PLAN_BIND },
	};
	static const struct keeper_mount there[COUNT] = {
		[ROOT] = { 1, "0:40", "/root", "/", "rw,nosuid,nodev", "tmpfs", "rw,size=8k" },
		[ETC] = { 2, "0:40", "/own-etc", "/etc", "ro,nosuid,nodev", "tmpfs", "rw" },
		[USR] = { 3, "8:1", "/usr", "/usr", "ro,nosuid,nodev,relatime", "ext4", "rw" },
		[PROC] = { 4, "0:42", "/", "/proc", "rw,nosuid,nodev,noexec", "proc", "rw" },
		[COVER] = { 5, "0:40", "/covers/empty", "/proc/sys", "ro,nosuid,nodev,noexec",
			"tmpfs", "rw" },
		[NULL_DEVICE] = { 6, "0:5", "/null", "/dev/null", "rw,nosuid,noexec", "devtmpfs",
			"rw" },
		[PTS] = { 7, "0:43", "/", "/dev/pts", "rw,nosuid,noexec", "devpts", "rw" },
		[WORK] = { 8, "0:44", "/", "/work", "rw,nosuid,nodev", "overlay", "rw" },
		[GIT] = { 10, "0:44", "/.git", "/work/.git", "rw,nosuid,nodev", "overlay", "rw" },
		[HOOKS] = { 11, "0:44", "/.git/hooks", "/work/.git/hooks", "ro,nosuid,nodev",
			"overlay", "rw" },
		[DATA] = { 9, "8:1", "/srv/data", "/data", "ro,nosuid,nodev,idmapped", "ext4",
			"rw" },
	};

	memcpy(expected, planned, sizeof(planned));
	memcpy(seen, there, sizeof(there));
	mounts = (struct keeper_mounts){ .expected = expected, .count = COUNT, .max = COUNT + 4 };
	cage = (struct keeper_snapshot){ .mounts = seen, .mount_count = COUNT };
	on_host[0] = (struct keeper_mount){ 20, "8:1", "/", "/", "rw", "ext4", "rw" };
	host = (struct keeper_snapshot){ .mounts = on_host, .mount_count = 1 };
}

static void compare(void)
{
	keeper_mounts_compare(&mounts, &cage, &host, &faults);
}

/* Nothing is wrong but what `but` has, which is one of the members of `faults`. */
static bool is_only(const char *but)
{
	const char *const all[] = { faults.root, faults.reads, faults.writes, faults.project,
		faults.protect, faults.proc, faults.dev };
	bool is_so = !but || but[0];

	for (size_t i = 0; i < COUNT_OF(all); i++)
		if (all[i] != but && all[i][0]) {
			printf("also: %s\n", all[i]);
			is_so = false;
		}
	return is_so;
}

static void test_good(void)
{
	make_good();
	compare();
	CHECK(is_only(NULL));
	CHECK_STR(mounts.pool, "0:40");
	for (size_t i = 0; i < COUNT; i++)
		CHECK(expected[i].is_seen);
}

/* Every planned mount is missed where it is not there. */
static void test_absent(void)
{
	static const struct {
		unsigned which;
		char *fault;
	} rows[] = { { ETC, faults.root }, { USR, faults.root }, { PROC, faults.proc },
		{ COVER, faults.proc }, { NULL_DEVICE, faults.dev }, { PTS, faults.dev },
		{ WORK, faults.project }, { GIT, faults.protect }, { HOOKS, faults.protect },
		{ DATA, faults.root } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		make_good();
		seen[rows[i].which] = seen[COUNT - 1];
		cage.mount_count--;
		compare();
		CHECK(is_only(rows[i].fault));
		CHECK(strstr(rows[i].fault, expected[rows[i].which].place) != NULL);
	}
	make_good();
	cage.mount_count = 0;
	compare();
	CHECK(faults.root[0] && faults.proc[0] && faults.dev[0] && faults.project[0]);
}

/* What nobody planned, wherever it is. */
static void test_unplanned(void)
{
	static const char *const places[] = { "/mnt", "/usr/local", "/data/below", "/dev/sda",
		"/proc/1", "/proc/sys/kernel", "/work/x", "/etc/shadow" };

	for (size_t i = 0; i < COUNT_OF(places); i++) {
		make_good();
		seen[cage.mount_count++] = (struct keeper_mount){ 30, "8:1", "/", places[i],
			"ro,nosuid,nodev,noexec", "ext4", "rw" };
		compare();
		CHECK(is_only(faults.root));
		CHECK(strstr(faults.root, places[i]) != NULL);
	}
}

/* A second mount at a planned place hides the planned one. */
static void test_stacked(void)
{
	for (unsigned i = 0; i < COUNT; i++) {
		make_good();
		seen[cage.mount_count++] = (struct keeper_mount){ 30, "8:1", "/home", seen[i].place,
			seen[i].options, "ext4", "rw" };
		compare();
		CHECK(is_only(faults.root));
	}
}

/* Planned twice at one place: a bind at a part of the project, say. The last is the one seen. */
static void test_same_mount_again(void)
{
	make_good();
	seen[cage.mount_count++] = seen[USR];
	compare();
	CHECK(is_only(faults.root));
}

/* Something else at a planned place. */
static void test_other(void)
{
	static const struct {
		unsigned which;
		const char *device, *root, *type;
		char *fault;
	} rows[] = {
		{ ROOT, NULL, "/", NULL, faults.reads },
		{ ROOT, NULL, NULL, "ext4", faults.reads },
		{ ETC, NULL, NULL, "ext4", faults.reads },
		{ ETC, NULL, "/etc", NULL, faults.reads },
		{ USR, "8:2", NULL, NULL, faults.reads },
		{ USR, NULL, "/", NULL, faults.reads },
		{ USR, NULL, "/usr2", NULL, faults.reads },
		{ DATA, NULL, "/srv", NULL, faults.reads },
		{ DATA, NULL, "/srv/data/sub", NULL, faults.reads },
		{ PROC, NULL, NULL, "sysfs", faults.proc },
		{ PROC, NULL, "/1", NULL, faults.proc },
		{ COVER, "0:99", NULL, NULL, faults.proc },
		{ COVER, NULL, "/root", NULL, faults.proc },
		{ NULL_DEVICE, NULL, "/mem", NULL, faults.dev },
		{ NULL_DEVICE, "8:1", NULL, NULL, faults.dev },
		{ WORK, NULL, NULL, "ext4", faults.project },
		{ WORK, NULL, "/sub", NULL, faults.project },
		{ GIT, NULL, "/git", NULL, faults.protect },
		{ GIT, "0:45", NULL, NULL, faults.protect },
		{ HOOKS, NULL, NULL, "ext4", faults.protect },
		{ HOOKS, "0:45", NULL, NULL, faults.protect },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct keeper_mount *m = &seen[rows[i].which];

		make_good();
		m->device = rows[i].device ? rows[i].device : m->device;
		m->root = rows[i].root ? rows[i].root : m->root;
		m->type = rows[i].type ? rows[i].type : m->type;
		compare();
		CHECK(is_only(rows[i].fault));
		CHECK(strstr(rows[i].fault, m->place) != NULL);
	}
}

/* Each restriction in turn is missing. */
static void test_restrictions(void)
{
	static const struct {
		unsigned which;
		const char *options, *lacks;
		char *fault;
	} rows[] = {
		{ ROOT, "rw,nodev", "nosuid", faults.writes },
		{ ROOT, "rw,nosuid", "nodev", faults.writes },
		{ ETC, "rw,nosuid,nodev", "ro", faults.writes },
		{ USR, "rw,nosuid,nodev", "ro", faults.writes },
		{ USR, "ro,nodev", "nosuid", faults.writes },
		{ USR, "ro,nosuid", "nodev", faults.writes },
		{ DATA, "ro,nosuid,nodev", "idmapped", faults.writes },
		{ DATA, "rw,nosuid,nodev,idmapped", "ro", faults.writes },
		{ PROC, "rw,nosuid,nodev", "noexec", faults.proc },
		{ COVER, "rw,nosuid,nodev,noexec", "ro", faults.proc },
		{ NULL_DEVICE, "rw,noexec", "nosuid", faults.writes },
		{ NULL_DEVICE, "rw,nosuid", "noexec", faults.writes },
		{ WORK, "rw,nosuid", "nodev", faults.project },
		{ WORK, "rw,nodev", "nosuid", faults.project },
		{ GIT, "rw,nosuid", "nodev", faults.protect },
		{ HOOKS, "rw,nosuid,nodev", "ro", faults.protect },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char lacks[32];

		make_good();
		seen[rows[i].which].options = rows[i].options;
		compare();
		CHECK(is_only(rows[i].fault));
		snprintf(lacks, sizeof(lacks), "lacks %s", rows[i].lacks);
		CHECK(strstr(rows[i].fault, lacks) != NULL);
	}
	/* More restricted than planned is no fault; nor is a captured project without an id map. */
	make_good();
	seen[WORK].options = "ro,nosuid,nodev,noexec";
	compare();
	CHECK(is_only(NULL));
}

/* What is mounted on the host below a source comes along, as restricted as the source. */
static void test_carried(void)
{
	make_good();
	on_host[host.mount_count++] =
		(struct keeper_mount){ 21, "8:7", "/", "/srv/data/disk", "rw", "ext4", "rw" };
	seen[cage.mount_count++] = (struct keeper_mount){ 30, "8:7", "/", "/data/disk",
		"ro,nosuid,nodev,idmapped", "ext4", "rw" };
	compare();
	CHECK(is_only(NULL));
	for (unsigned i = 0; i < COUNT; i++)
		expected[i].is_seen = false;
	seen[COUNT].options = "rw,nosuid,nodev,idmapped";
	compare();
	CHECK(is_only(faults.writes));
	/* The same place, but not what the host has there. */
	make_good();
	host.mount_count = 2;
	seen[cage.mount_count++] = (struct keeper_mount){ 30, "8:8", "/", "/data/disk",
		"ro,nosuid,nodev,idmapped", "ext4", "rw" };
	compare();
	CHECK(is_only(faults.root));
	make_good();
	host.mount_count = 2;
	seen[cage.mount_count++] = (struct keeper_mount){ 30, "8:7", "/home", "/data/disk",
		"ro,nosuid,nodev,idmapped", "ext4", "rw" };
	compare();
	CHECK(is_only(faults.root));
	/* A neighbour whose name begins alike is not below. */
	make_good();
	on_host[1].place = "/srv/data2";
	host.mount_count = 2;
	seen[cage.mount_count++] = (struct keeper_mount){ 30, "8:7", "/", "/data2",
		"ro,nosuid,nodev,idmapped", "ext4", "rw" };
	compare();
	CHECK(is_only(faults.root));
}

/* The pool is one file system: a cover of another is not the cage's own. */
static void test_pool(void)
{
	make_good();
	seen[COVER].device = "0:50";
	compare();
	CHECK(is_only(faults.proc));
	CHECK_STR(mounts.pool, "0:40");
	make_good();
	seen[ETC].device = "0:50";
	compare();
	CHECK(is_only(faults.reads));
}

/* Names of any length and any content are told within the room there is. */
static void test_long_names(void)
{
	char place[5000];

	memset(place, 'x', sizeof(place));
	place[0] = '/';
	place[sizeof(place) - 1] = '\0';
	make_good();
	seen[cage.mount_count++] =
		(struct keeper_mount){ 30, "8:1", "/", place, "rw", "ext4", "rw" };
	compare();
	CHECK(is_only(faults.root) && strlen(faults.root) < sizeof(faults.root));
	make_good();
	seen[DATA].root = place;
	compare();
	CHECK(is_only(faults.reads) && strlen(faults.reads) < sizeof(faults.reads));
}

int main(void)
{
	test_good();
	test_absent();
	test_unplanned();
	test_stacked();
	test_same_mount_again();
	test_other();
	test_restrictions();
	test_carried();
	test_pool();
	test_long_names();
	return check_report();
}
