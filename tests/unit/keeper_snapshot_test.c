/* What the kernel's files about a process are read as; and that half a file is never a whole one.
 */
#include <signal.h>

#include <errno.h>

#include "base/count.h"
#include "base/own.h"
#include "base/str.h"
#include "check.h"
#include "keeper/inspect/keeper_snapshot.h"

static struct arena arena;

/* As a kernel prints it, cut down to what matters and a little around it. */
static const char status[] = "Name:\tinit\n"
			     "Umask:\t0022\n"
			     "State:\tS (sleeping)\n"
			     "Uid:\t2130706500\t2130706501\t2130706502\t2130706503\n"
			     "Gid:\t1\t2\t3\t4294967295\n"
			     "FDSize:\t64\n"
			     "Groups:\t4 24 27 \n"
			     "NStgid:\t100\t1\n"
			     "SigBlk:\t0000000000000000\n"
			     "SigIgn:\t0000000000001001\n"
			     "CapInh:\t0000000000000001\n"
			     "CapPrm:\t0000000000000002\n"
			     "CapEff:\t0000000000000003\n"
			     "CapBnd:\t000001ffffffffff\n"
			     "CapAmb:\t0000000000000000\n"
			     "NoNewPrivs:\t1\n"
			     "Seccomp:\t2\n"
			     "Seccomp_filters:\t3\n"
			     "Speculation_Store_Bypass:\tvulnerable\n";

static void test_status(void)
{
	struct keeper_snapshot v = { 0 };

	CHECK(keeper_snapshot_parse_status(&v, status) == 0);
	CHECK(v.uids[0] == 2130706500 && v.uids[1] == 2130706501 && v.uids[2] == 2130706502 &&
		v.uids[3] == 2130706503);
	CHECK(v.gids[0] == 1 && v.gids[1] == 2 && v.gids[2] == 3 && v.gids[3] == 4294967295);
	CHECK(v.group_count == 3);
	CHECK(v.capabilities[0] == 1 && v.capabilities[1] == 2 && v.capabilities[2] == 3);
	CHECK(v.capabilities[3] == 0x1ffffffffff && v.capabilities[4] == 0);
	CHECK(v.no_new_privileges == 1 && v.seccomp == 2 && v.filter_count == 3);
	/* SIGHUP, as of nohup, and SIGPIPE. */
	CHECK(v.ignored == (1U << (SIGHUP - 1) | 1U << (SIGPIPE - 1)));
}

/* What this process says of itself. */
static void test_own_status(void)
{
	struct keeper_snapshot v = { 0 };
	char text[16 * 1024];

	signal(SIGUSR2, SIG_IGN);
	CHECK(keeper_snapshot_read_status(&v, text, sizeof(text)) == 0);
	CHECK(v.ignored >> (SIGUSR2 - 1) & 1 && !(v.ignored >> (SIGUSR1 - 1) & 1));
	CHECK(v.filter_count >= 0);
	signal(SIGUSR2, SIG_DFL);
	/* Half of it is nothing. */
	CHECK(keeper_snapshot_read_status(&v, text, 64) < 0);
}

/* The status without the lines that start with `key`, and with `line` at its end. */
static char *status_with(const char *key, const char *line)
{
	char *text = arena_alloc(&arena, sizeof(status) + 256);
	char *to = text;

	for (const char *at = status; *at; at = strchr(at, '\n') + 1) {
		size_t n = strcspn(at, "\n") + 1;

		if (str_starts(at, key))
			continue;
		memcpy(to, at, n);
		to += n;
	}
	memcpy(to, line, strlen(line) + 1);
	return text;
}

static void test_groups(void)
{
	static const struct {
		const char *line;
		unsigned count;
	} rows[] = { { "Groups:\t \n", 0 }, { "Groups:\t\n", 0 }, { "Groups:\t0 \n", 1 },
		{ "Groups:\t1000\n", 1 }, { "Groups:\t2 \n", 0 }, { "Groups:\t2 22 2 \n", 1 },
		{ "Groups:\t-\n", 1 }, { "Groups:\t4 24 27 100 4294967294 \n", 5 } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct keeper_snapshot v = { 0 };

		CHECK(keeper_snapshot_parse_status(&v, status_with("Groups:", rows[i].line)) == 0);
		CHECK(v.group_count == rows[i].count);
	}
}

/* A line that is missing leaves behind what nobody takes for good, or is an error. */
static void test_missing_lines(void)
{
	static const char *const needed[] = { "NoNewPrivs:", "Seccomp:", "Seccomp_filters:" };
	static const char *const sets[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };

	for (size_t i = 0; i < COUNT_OF(needed); i++) {
		struct keeper_snapshot v = { 0 };

		CHECK(keeper_snapshot_parse_status(&v, status_with(needed[i], "")) == -EBADMSG);
	}
	for (size_t i = 0; i < COUNT_OF(sets); i++) {
		struct keeper_snapshot v = { 0 };

		CHECK(keeper_snapshot_parse_status(&v, status_with(sets[i], "")) < 0 ||
			v.capabilities[i] == UINT64_MAX);
	}
	for (size_t n = 0; n < sizeof(status) - 1; n++) {
		struct keeper_snapshot v = { 0 };

		/* A file that ends too soon: until the last line that counts, it is none. */
		if (n < (size_t)(strstr(status, "Seccomp_filters:") - status))
			CHECK(keeper_snapshot_parse_status(&v, arena_copy(&arena, status, n)) < 0);
	}
}

static void test_bad_lines(void)
{
	static const char *const lines[] = { "Uid:\t1\t2\t3\n", "Uid:\tx\t0\t0\t0\n", "Uid:\n",
		"Gid:\t\n", "CapEff:\tnone\n", "CapBnd:\n", "NoNewPrivs:\tyes\n", "NoNewPrivs:\n",
		"Seccomp:\t-1\n", "Seccomp_filters:\t\n", "Seccomp_filters:\t99999999999\n",
		"no colon at all" };

	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		struct keeper_snapshot v = { 0 };
		char key[32] = "";

		memcpy(key, lines[i], strcspn(lines[i], ":"));
		CHECK(keeper_snapshot_parse_status(&v, status_with(*key ? key : "-", lines[i])) ==
			-EBADMSG);
	}
}

/* A process chooses its own name, but not a line. */
static void test_names(void)
{
	struct keeper_snapshot v = { 0 };

	CHECK(keeper_snapshot_parse_status(
		      &v, status_with("Name:", "Name:\tUid: 0 0 0 0 Seccomp:\t0\n")) == 0);
	CHECK(v.uids[0] == 2130706500 && v.seccomp == 2);
}

/* --- mounts --- */

static int parse(struct keeper_snapshot *v, const char *text)
{
	return keeper_snapshot_parse_mounts(v, arena_copy(&arena, text, strlen(text)), &arena);
}

static void test_mounts(void)
{
	struct keeper_snapshot v = { 0 };

	CHECK(parse(&v, "74 47 0:40 /root / rw,nosuid,nodev,relatime - tmpfs none "
			"rw,size=8388608k,mode=755\n"
			"76 74 254:0 /usr /usr ro,nosuid shared:1 master:2 - ext4 /dev/vda "
			"rw,discard\n"
			"2147483647 74 254:0 / /a ro - fuse.sshfs host:/x rw\n") == 0);
	CHECK(v.mount_count == 3);
	CHECK(v.mounts[0].id == 74 && v.mounts[1].id == 76 && v.mounts[2].id == 2147483647);
	CHECK_STR(v.mounts[0].device, "0:40");
	CHECK_STR(v.mounts[0].root, "/root");
	CHECK_STR(v.mounts[0].place, "/");
	CHECK_STR(v.mounts[0].options, "rw,nosuid,nodev,relatime");
	CHECK_STR(v.mounts[0].type, "tmpfs");
	CHECK_STR(v.mounts[0].super, "rw,size=8388608k,mode=755");
	/* What stands between the options and the dash is skipped, however much it is. */
	CHECK_STR(v.mounts[1].options, "ro,nosuid");
	CHECK_STR(v.mounts[1].type, "ext4");
	CHECK_STR(v.mounts[1].super, "rw,discard");
	CHECK_STR(v.mounts[2].type, "fuse.sshfs");
	CHECK(parse(&v, "") == 0 && v.mount_count == 0);
	CHECK(parse(&v, "1 0 0:1 / / rw - tmpfs none rw") == 0 && v.mount_count == 1);
}

/* Names as the kernel escapes them, and no others. */
static void test_escapes(void)
{
	struct keeper_snapshot v = { 0 };

	CHECK(parse(&v, "1 0 8:1 /a\\040b\\134c /x\\011y\\012z\\043 rw - ext4 /dev/a\\040b rw\n") ==
		0);
	CHECK_STR(v.mounts[0].root, "/a b\\c");
	CHECK_STR(v.mounts[0].place, "/x\ty\nz#");
	/* A name with " - " in it does not move the columns. */
	CHECK(parse(&v, "1 0 8:1 / /a\\040-\\040tmpfs\\040none rw - ext4 /dev/x ro\n") == 0);
	CHECK_STR(v.mounts[0].place, "/a - tmpfs none");
	CHECK_STR(v.mounts[0].type, "ext4");
	CHECK(parse(&v, "1 0 8:1 / /\\134040 rw - ext4 /dev/x ro\n") == 0);
	CHECK_STR(v.mounts[0].place, "/\\040");
}

/* A mount may have been made with an empty source. */
static void test_empty_source(void)
{
	struct keeper_snapshot v = { 0 };

	CHECK(parse(&v, "1 0 0:1 / /mnt rw,nosuid - tmpfs  rw,size=4k\n") == 0);
	CHECK(v.mount_count == 1);
	if (v.mount_count == 1 && v.mounts[0].super)
		CHECK_STR(v.mounts[0].super, "rw,size=4k");
}

static void test_bad_mounts(void)
{
	static const char *const lines[] = { "nonsense", "1 0 0:1 / / rw", "1 0 0:1 / / rw -",
		"1 0 0:1 / / rw - ", "1 0 0:1 / / rw - tmpfs", "1 0 0:1 / / rw - tmpfs none",
		"1 0 0:1 / - tmpfs none rw", " - tmpfs none rw", "x 0 0:1 / / rw - tmpfs none rw",
		"99999999999 0 0:1 / / rw - tmpfs none rw" };

	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		struct keeper_snapshot v = { 0 };
		const char *two =
			arena_printf(&arena, "1 0 0:1 / / rw - tmpfs none rw\n%s\n", lines[i]);

		check_that(parse(&v, lines[i]) == -EBADMSG, lines[i], __FILE__, __LINE__);
		check_that(parse(&v, two) == -EBADMSG, lines[i], __FILE__, __LINE__);
	}
}

static void test_no_memory(void)
{
	struct keeper_snapshot v = { 0 };
	struct arena small;
	char text[] = "1 0 0:1 / / rw - tmpfs none rw\n";

	arena_init(&small, 16);
	CHECK(keeper_snapshot_parse_mounts(&v, text, &small) == -ENOMEM);
	arena_done(&small);
}

static void test_options(void)
{
	CHECK(keeper_has_option("ro,nosuid,nodev", "ro"));
	CHECK(keeper_has_option("ro,nosuid,nodev", "nosuid"));
	CHECK(keeper_has_option("ro,nosuid,nodev", "nodev"));
	CHECK(keeper_has_option("ro", "ro"));
	CHECK(!keeper_has_option("rw,nosuid", "ro"));
	CHECK(!keeper_has_option("rw,nosuid", "suid"));
	CHECK(!keeper_has_option("rw,nosuid", "nosui"));
	CHECK(!keeper_has_option("rw,nosuidx", "nosuid"));
	CHECK(!keeper_has_option("rw,errors=remount-ro", "ro"));
	CHECK(!keeper_has_option("rw,romantic", "ro"));
	CHECK(!keeper_has_option("", "ro"));
	CHECK(keeper_has_option("rw,size=8k", "size=8k"));
	CHECK(!keeper_has_option("rw,size=80k", "size=8k"));
}

/* --- all of them --- */

static int parse_with(struct keeper_snapshot *v, enum keeper_text changed, const char *text)
{
	static const char *const good[KEEPER_TEXT_COUNT] = {
		[KEEPER_TEXT_STATUS] = status,
		[KEEPER_TEXT_MOUNTS] = "1 0 0:1 / / rw - tmpfs none rw\n",
		[KEEPER_TEXT_UID_MAP] = "1000 70001 1\n",
		[KEEPER_TEXT_GID_MAP] = "1001 70002 2\n3 4 5\n",
		[KEEPER_TEXT_STAT] = "7 (a) b) S 1 2 3 4 -1 0\n",
		[KEEPER_TEXT_LIMITS] = "Max processes  5 6 processes\nMax open files  7 8 files\n",
		[KEEPER_TEXT_INTERFACES] = "Inter-|\n face |\n    lo: 0 0\n  eth0: 1 1\n",
	};
	char *texts[KEEPER_TEXT_COUNT];

	for (int i = 0; i < KEEPER_TEXT_COUNT; i++) {
		const char *from = text && i == (int)changed ? text : good[i];

		texts[i] = arena_copy(&arena, from, strlen(from));
	}
	*v = (struct keeper_snapshot){ 0 };
	return keeper_snapshot_parse(v, texts, &arena);
}

static void test_texts(void)
{
	static const struct {
		enum keeper_text text;
		const char *bad;
	} rows[] = { { KEEPER_TEXT_STATUS, "Uid:\t1\n" }, { KEEPER_TEXT_MOUNTS, "nonsense\n" },
		{ KEEPER_TEXT_UID_MAP, "" }, { KEEPER_TEXT_UID_MAP, "1000 70001\n" },
		{ KEEPER_TEXT_GID_MAP, "" }, { KEEPER_TEXT_GID_MAP, "1000 x 1\n" },
		{ KEEPER_TEXT_STAT, "" }, { KEEPER_TEXT_STAT, "7 (a" },
		{ KEEPER_TEXT_STAT, "7 (a) S" }, { KEEPER_TEXT_STAT, "7 (a) S 1 2 3" },
		{ KEEPER_TEXT_STAT, "7 (a) S 1 2 3 x" } };
	struct keeper_snapshot v;

	CHECK(parse_with(&v, KEEPER_TEXT_COUNT, NULL) == 0);
	CHECK(v.uid_map.inside == 1000 && v.uid_map.outside == 70001 && v.uid_map.count == 1 &&
		v.uid_map.lines == 1);
	CHECK(v.gid_map.inside == 1001 && v.gid_map.outside == 70002 && v.gid_map.count == 2 &&
		v.gid_map.lines == 2);
	CHECK(v.session == 3 && v.terminal_number == 4);
	CHECK(v.max_processes == 5 && v.max_files == 7);
	CHECK_STR(v.interfaces, "lo eth0 ");
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_that(parse_with(&v, rows[i].text, rows[i].bad) == -EBADMSG, rows[i].bad,
			__FILE__, __LINE__);
	/* A limit that is not there is none, and more interfaces than can be kept are many. */
	CHECK(parse_with(&v, KEEPER_TEXT_LIMITS, "Max processes  unlimited\n") == 0);
	CHECK(v.max_processes == UINT64_MAX && v.max_files == UINT64_MAX);
	CHECK(parse_with(&v, KEEPER_TEXT_INTERFACES,
		      "\n\nlo: 0\na23456789012345: 0\nb23456789012345: 0\nc23456789012345: 0\n"
		      "d23456789012345: 0\n") == 0);
	CHECK_STR(v.interfaces, "many ");
}

/* The parsers on this process's own files, and the whole of the reading. */
static void test_here(void)
{
	struct keeper_snapshot v;
	struct err e = { 0 };

	CHECK(keeper_snapshot_read(&v, getpid(), &arena, &e) == 0);
	CHECK_STR(e.text, "");
	CHECK(v.uids[0] == getuid() && v.gids[1] == getegid());
	CHECK(v.mount_count > 0 && v.descriptor_count >= 3);
	for (int i = 0; i < KEEPER_NS_COUNT; i++)
		CHECK(v.namespaces[i] != 0 && keeper_namespace_names[i]);
	CHECK(keeper_snapshot_read(&v, 0x7fffffff, &arena, &e) < 0);
	CHECK(strstr(e.text, "cannot inspect the cage from outside") != NULL);
}

int main(void)
{
	arena_init(&arena, (size_t)64 * 1024 * 1024);
	test_status();
	test_own_status();
	test_groups();
	test_missing_lines();
	test_bad_lines();
	test_names();
	test_mounts();
	test_escapes();
	test_empty_source();
	test_bad_mounts();
	test_no_memory();
	test_options();
	test_texts();
	test_here();
	arena_done(&arena);
	return check_report();
}
