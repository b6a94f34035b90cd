/* Profiles in the containers' format: what they mean, and what is said about bad ones. */
#include "seccomp/filter.h"

#include <errno.h>

#include "base/own.h"
#include "seccomp/filter_rules.h"
#include "spec/yaml.h"

#include "base/count.h"
#include "bpf.h"
#include "check.h"

#define ALLOW         SECCOMP_RET_ALLOW
#define ANSWER(error) (SECCOMP_RET_ERRNO | (error))
#define HIGH          (1ULL << 32)

static struct filter_made made;

static void load(int line, const char *json)
{
	struct err e = { 0 };

	filter_made_done(&made);
	if (filter_read_profile("p.json", json, strlen(json), &made, &e) < 0)
		check_equal(e.text, "a program", __FILE__, line);
}

/* A call with its first three arguments. */
static uint32_t ask(const char *name, uint64_t a, uint64_t b, uint64_t c)
{
	struct filter program = { made.code, made.count };
	struct seccomp_data data = { .nr = filter_find_call(filter_arch_native(), name),
		.arch = filter_arch_native()->audit,
		.args = { a, b, c } };
	unsigned steps;

	return made.code && bpf_is_sound(&program) ? bpf_run(&program, &data, &steps) : 1;
}

#define LOAD(json)      load(__LINE__, json)
#define ENTRIES(list)   "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [" list "]}"
#define ENTRY(rest)     ENTRIES("{\"names\": [\"getpid\"], \"action\": \"SCMP_ACT_ALLOW\"" rest "}")
#define ALLOW_ALL(list) "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [" list "]}"

static void test_actions(void)
{
	LOAD("\n{\n\t\"defaultAction\": \"SCMP_ACT_ERRNO\",\n\t\"defaultErrnoRet\": 38,\n"
	     "\t\"defaultErrno\": \"ENOSYS\",\n\t\"archMap\": [ { \"architecture\": "
	     "\"SCMP_ARCH_X86_64\", \"subArchitectures\": [ \"SCMP_ARCH_X86\" ] } ],\n"
	     "\t\"syscalls\": [\n\t\t{ \"names\": [ \"read\", \"write\" ], \"action\": "
	     "\"SCMP_ACT_ALLOW\", \"args\": null, \"comment\": \"\", \"includes\": {} },\n"
	     "\t\t{ \"name\": \"getuid\", \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 13 },\n"
	     "\t\t{ \"names\": [\"getgid\"], \"action\": \"SCMP_ACT_ERRNO\", \"errno\": \"EIO\" "
	     "},\n"
	     "\t\t{ \"names\": [\"geteuid\"], \"action\": \"SCMP_ACT_ERRNO\" },\n"
	     "\t\t{ \"names\": [\"getegid\"], \"action\": \"SCMP_ACT_KILL\" },\n"
	     "\t\t{ \"names\": [\"getpid\"], \"action\": \"SCMP_ACT_KILL_PROCESS\" },\n"
	     "\t\t{ \"names\": [\"gettid\"], \"action\": \"SCMP_ACT_TRAP\" },\n"
	     "\t\t{ \"names\": [\"getppid\"], \"action\": \"SCMP_ACT_LOG\" }\n\t]\n}\n");
	CHECK(ask("read", 0, 0, 0) == ALLOW && ask("write", 0, 0, 0) == ALLOW);
	CHECK(ask("openat", 0, 0, 0) == ANSWER(ENOSYS));
	CHECK(ask("getuid", 0, 0, 0) == ANSWER(EACCES));
	CHECK(ask("getgid", 0, 0, 0) == ANSWER(EIO));
	CHECK(ask("geteuid", 0, 0, 0) == ANSWER(EPERM));
	CHECK(ask("getegid", 0, 0, 0) == SECCOMP_RET_KILL_THREAD);
	CHECK(ask("getpid", 0, 0, 0) == SECCOMP_RET_KILL_PROCESS);
	CHECK(ask("gettid", 0, 0, 0) == SECCOMP_RET_TRAP);
	CHECK(ask("getppid", 0, 0, 0) == SECCOMP_RET_LOG);
}

#define ONE(op, value, more)                                                                       \
	"{\"names\": [\"lseek\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": [{\"index\": 1, "      \
	"\"op\": \"SCMP_CMP_" op "\", \"value\": " value more "}]}"

static void test_comparisons(void)
{
	static const struct {
		const char *json;
		uint64_t good, bad;
	} rows[] = {
		{ ENTRIES(ONE("EQ", "4294967296", "")), HIGH, 0 },
		{ ENTRIES(ONE("NE", "7", "")), HIGH + 7, 7 },
		{ ENTRIES(ONE("LT", "4294967296", "")), HIGH - 1, HIGH },
		{ ENTRIES(ONE("LE", "4294967296", "")), HIGH, HIGH + 1 },
		{ ENTRIES(ONE("GT", "18446744073709551614", "")), UINT64_MAX, UINT64_MAX - 1 },
		{ ENTRIES(ONE("GE", "18446744073709551615", "")), UINT64_MAX, UINT64_MAX - 1 },
		{ ENTRIES(ONE("MASKED_EQ", "15", ", \"valueTwo\": 18")), 0x32, 0x33 },
		{ ENTRIES(ONE("MASKED_EQ", "2114060288", "")), 0x11, 0x10000000 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		load((int)i, rows[i].json);
		CHECK(ask("lseek", 0, rows[i].good, 0) == ALLOW);
		CHECK(ask("lseek", 0, rows[i].bad, 0) == ANSWER(EPERM));
	}
}

/* All tests of an entry must hold, but tests of one argument are alternatives. */
static void test_several(void)
{
	LOAD(ENTRY(", \"args\": [{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"}, "
		   "{\"index\": 1, \"value\": 2, \"op\": \"SCMP_CMP_EQ\"}]"));
	CHECK(ask("getpid", 1, 2, 0) == ALLOW && ask("getpid", 1, 0, 0) == ANSWER(EPERM));
	CHECK(ask("getpid", 0, 2, 0) == ANSWER(EPERM));
	LOAD(ENTRY(", \"args\": [{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"}, "
		   "{\"index\": 0, \"value\": 2, \"op\": \"SCMP_CMP_EQ\"}]"));
	CHECK(ask("getpid", 1, 0, 0) == ALLOW && ask("getpid", 2, 0, 0) == ALLOW);
	CHECK(ask("getpid", 3, 0, 0) == ANSWER(EPERM));
	/* The strictest of several entries, whichever comes first. */
	LOAD(ALLOW_ALL("{\"names\": [\"getpid\", \"getuid\"], \"action\": \"SCMP_ACT_LOG\"},"
		       "{\"names\": [\"getpid\"], \"action\": \"SCMP_ACT_KILL_PROCESS\", "
		       "\"args\": [{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"}]},"
		       "{\"names\": [\"getuid\"], \"action\": \"SCMP_ACT_ERRNO\"},"
		       "{\"names\": [\"getuid\"], \"action\": \"SCMP_ACT_ALLOW\"}"));
	CHECK(ask("getpid", 0, 0, 0) == SECCOMP_RET_LOG);
	CHECK(ask("getpid", 1, 0, 0) == SECCOMP_RET_KILL_PROCESS);
	CHECK(ask("getuid", 0, 0, 0) == ANSWER(EPERM));
	/* Where the kernel reads an int, so does the test. */
	LOAD(ENTRIES("{\"names\": [\"socket\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": "
		     "[{\"index\": 0, \"value\": 40, \"op\": \"SCMP_CMP_NE\"}]}"));
	CHECK(ask("socket", 40, 0, 0) == ANSWER(EPERM) && ask("socket", 2, 0, 0) == ALLOW);
	CHECK(ask("socket", 40 + HIGH, 0, 0) == ANSWER(EPERM));
}

static void test_conditions(void)
{
	static const struct {
		const char *rest;
		bool applies;
	} rows[] = {
		{ ", \"includes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}", false },
		{ ", \"excludes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}", true },
		{ ", \"includes\": {\"caps\": []}, \"excludes\": null", true },
		{ ", \"includes\": {\"arches\": [\"s390x\"]}", false },
		{ ", \"includes\": {\"arches\": [\"amd64\", \"arm64\"]}", true },
		{ ", \"excludes\": {\"arches\": [\"s390\", \"s390x\"]}", true },
		{ ", \"excludes\": {\"arches\": [\"amd64\", \"arm64\"]}", false },
		{ ", \"includes\": {\"minKernel\": \"4.8\"}", true },
		{ ", \"includes\": {\"minKernel\": \"999.1\"}", false },
		{ ", \"excludes\": {\"minKernel\": \"4.8\"}", false },
	};
	char json[256];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		snprintf(json, sizeof(json), "%s%s}]}",
			"{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [{\"names\": "
			"[\"getpid\"], \"action\": \"SCMP_ACT_ALLOW\"",
			rows[i].rest);
		load((int)i, json);
		CHECK(ask("getpid", 0, 0, 0) == (rows[i].applies ? ALLOW : ANSWER(EPERM)));
	}
}

/* The wall stands whatever a profile says. */
static void test_wall(void)
{
	static const char *const wall[] = { "setns", "mount", "umount2", "pivot_root", "chroot",
		"fsopen", "open_tree", "move_mount", "mount_setattr", "keyctl", "add_key",
		"request_key", "bpf", "io_uring_setup" };
	struct seccomp_data data = { .nr = 20, .arch = 0x40000003 };
	unsigned steps;

	LOAD(ALLOW_ALL("{\"names\": [\"setns\", \"mount\", \"clone\", \"clone3\", \"unshare\", "
		       "\"ioctl\", \"seccomp\"], \"action\": \"SCMP_ACT_ALLOW\"}"));
	for (size_t i = 0; i < COUNT_OF(wall); i++)
		CHECK(ask(wall[i], 0, 0, 0) == ANSWER(EPERM));
	CHECK(ask("clone3", 0, 0, 0) == ANSWER(ENOSYS));
	CHECK(ask("clone", 0x10000000, 0, 0) == ANSWER(EPERM));
	CHECK(ask("unshare", 0x80, 0, 0) == ANSWER(EPERM));
	CHECK(ask("ioctl", 0, 0x5412 + HIGH, 0) == ANSWER(EPERM));
	CHECK(ask("seccomp", 1, 8, 0) == ANSWER(EPERM));
	CHECK(ask("clone", 0x11, 0, 0) == ALLOW && ask("ptrace", 0, 0, 0) == ALLOW);
	CHECK(bpf_run(&(struct filter){ made.code, made.count }, &data, &steps) ==
		SECCOMP_RET_KILL_PROCESS);
	data = (struct seccomp_data){ .nr = 0x40000001, .arch = filter_arch_native()->audit };
	CHECK(bpf_run(&(struct filter){ made.code, made.count }, &data, &steps) == ANSWER(ENOSYS));
	/* A name that is too new: it gets the default, which refuses it too. */
	LOAD(ENTRIES("{\"names\": [\"not_yet\", \"getpid\"], \"action\": \"SCMP_ACT_ALLOW\"}"));
	CHECK(ask("getpid", 0, 0, 0) == ALLOW);
}

struct row {
	const char *json, *said;
};

#define ARGS(fields) ENTRY(", \"args\": [{" fields "}]")

static const struct row bad[] = {
	{ "", "p.json: a profile of system calls is JSON and starts with '{'" },
	{ "defaultAction: SCMP_ACT_ALLOW",
		"p.json: a profile of system calls is JSON and starts with '{'" },
	{ "{}", "p.json:1:1: the key 'defaultAction' is missing" },
	{ "{\"defaultAction\": 1}", "p.json:1:19: this must be text, not a number" },
	{ "{\n\t\"defaultAction\": \"ALLOW\"}", "p.json:2:20: 'ALLOW' is not an action" },
	{ "{\"defaultAction\": \"\\u001b[2J\"}", "p.json:1:20: '\\x1b[2J' is not an action" },
	{ "{\"defaultAction\": \"SCMP_ACT_TRACE\"}",
		"p.json:1:20: SCMP_ACT_TRACE needs a program outside that answers; bawn has "
		"none" },
	{ "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 4096}",
		"p.json:1:56: '4096' is not a number from 0 to 4095" },
	{ "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrno\": \"EPREM\"}",
		"p.json:1:54: 'EPREM' is not the name of an error" },
	{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscall\": []}",
		"p.json:1:38: unknown key 'syscall'; did you mean 'syscalls'?" },
	{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": {}}",
		"p.json:1:49: this must be a list, not a map" },
	{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"flags\": [\"TSYNC\"]}",
		"p.json:1:38: 'flags' is not a profile's to choose in a cage" },
	{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"listenerPath\": \"/s\"}",
		"p.json:1:38: 'listenerPath' is not a profile's to choose in a cage" },
	{ ENTRIES("1"), "p.json:1:50: this must be a map, not a number" },
	{ ENTRIES("{\"action\": \"SCMP_ACT_ALLOW\"}"),
		"p.json:1:50: an entry has the key 'names'" },
	{ ENTRIES("{\"names\": []}"), "p.json:1:50: the key 'action' is missing" },
	{ ENTRIES("{\"names\": [], \"action\": \"SCMP_ACT_NOTIFY\"}"),
		"p.json:1:75: SCMP_ACT_NOTIFY needs a program outside that answers; bawn has "
		"none" },
	{ ENTRIES("{\"names\": \"read\", \"action\": \"SCMP_ACT_ALLOW\"}"),
		"p.json:1:61: this must be a list, not text" },
	{ ENTRIES("{\"names\": [1], \"action\": \"SCMP_ACT_ALLOW\"}"),
		"p.json:1:61: this must be text, not a number" },
	{ ALLOW_ALL("{\"names\": [\"ptrcae\"], \"action\": \"SCMP_ACT_ERRNO\"}"),
		"p.json:1:62: 'ptrcae' cannot be refused: this bawn knows no such system call" },
	{ ENTRY(", \"cap\": []"), "p.json:1:101: unknown key 'cap'" },
	{ ENTRY(", \"args\": {}"), "p.json:1:108: this must be a list, not a map" },
	{ ENTRY(", \"args\": [1,2,3,4,5,6,7]"),
		"p.json:1:108: a call has no more than six arguments" },
	{ ENTRY(", \"args\": [1]"), "p.json:1:109: this must be a map, not a number" },
	{ ARGS("\"index\": 6, \"value\": 1, \"op\": \"SCMP_CMP_EQ\""),
		"p.json:1:119: '6' is not a number from 0 to 5" },
	{ ARGS("\"index\": 0, \"value\": 1, \"op\": \"EQ\""),
		"p.json:1:141: 'EQ' is not a comparison" },
	{ ARGS("\"index\": 0, \"value\": 1"), "p.json:1:109: the key 'op' is missing" },
	{ ARGS("\"index\": 0, \"value\": -1, \"op\": \"SCMP_CMP_EQ\""),
		"p.json:1:131: '-1' is not a number from 0 to 18446744073709551615" },
	{ ARGS("\"index\": 0, \"value\": 18446744073709551616, \"op\": \"SCMP_CMP_EQ\""),
		"p.json:1:131: '18446744073709551616' is not a number from 0 to "
		"18446744073709551615" },
	{ ARGS("\"index\": 0, \"value\": 1.5, \"op\": \"SCMP_CMP_EQ\""),
		"p.json:1:131: this must be a number, not a number with a point" },
	{ ENTRY(", \"includes\": {\"cap\": []}"),
		"p.json:1:114: unknown key 'cap'; did you mean 'caps'?" },
	{ ENTRY(", \"excludes\": {\"caps\": \"X\"}"),
		"p.json:1:122: this must be a list, not text" },
	{ ENTRY(", \"includes\": {\"minKernel\": \"new\"}"),
		"p.json:1:127: 'new' is not a kernel's version, such as 4.8" },
	{ ENTRY(", \"includes\": {\"minKernel\": 4.8}"),
		"p.json:1:126: this must be text, not a number with a point" },
	{ ENTRY(", \"action\": \"SCMP_ACT_ALLOW\""),
		"p.json:1:101: key 'action' stands here a second time; the first is on line 1" },
	{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\"",
		"p.json:2:1: not valid YAML: missing comma in flow mapping" },
	{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\"} {}",
		"p.json:1:37: not valid YAML: missing document start" },
	{ "{\"defaultAction\": !x \"SCMP_ACT_ALLOW\"}", "p.json:1:19: tags are not allowed" },
};

static void test_bad(void)
{
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct err e = { 0 };
		struct filter_made none = { 0 };

		CHECK(filter_read_profile("p.json", bad[i].json, strlen(bad[i].json), &none, &e) ==
			-EINVAL);
		CHECK(!none.code && e.kind == ERR_SPEC);
		CHECK_STR(e.text, bad[i].said);
	}
}

/* As many rules as can be, and a file as large as can be. */
static void test_large(void)
{
	static char json[YAML_MAX_SIZE + 1];
	struct err e = { 0 };
	size_t n = (size_t)snprintf(
		json, sizeof(json), "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [\n");

	for (int i = 0; i < 1400; i++)
		n += (size_t)snprintf(json + n, sizeof(json) - n,
			"%s{\"names\": [\"getpid\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": [\n"
			"{\"index\": 0, \"value\": %d, \"op\": \"SCMP_CMP_EQ\"}]}",
			i ? ",\n" : "", i);
	snprintf(json + n, sizeof(json) - n, "]}");
	CHECK(filter_read_profile("p.json", json, strlen(json), &made, &e) == -EINVAL);
	CHECK_STR(e.text, "p.json: the profile is longer than the kernel accepts");
	CHECK(filter_read_profile("p.json", json, sizeof(json), &made, &e) == -EINVAL);
	CHECK_STR(e.text, "p.json: the file is larger than 256 kB");
	n = (size_t)snprintf(json, sizeof(json),
		"{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [{\"action\": "
		"\"SCMP_ACT_ALLOW\", \"names\": [\n");
	for (int i = 0; i < 4097; i++)
		n += (size_t)snprintf(json + n, sizeof(json) - n, "%s\"getpid\"", i ? ",\n" : "");
	snprintf(json + n, sizeof(json) - n, "]}]}");
	CHECK(filter_read_profile("p.json", json, strlen(json), &made, &e) == -EINVAL);
	CHECK_STR(e.text, "p.json:4098:2: more than 4096 rules");
}

int main(void)
{
	test_actions();
	test_comparisons();
	test_several();
	test_conditions();
	test_wall();
	test_bad();
	filter_made_done(&made);
	test_large();
	filter_made_done(&made);
	return check_report();
}
