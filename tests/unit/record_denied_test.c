/* Denied system calls: how they are counted, and what is said of them. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/own.h"
#include "check.h"
#include "cli/cli_run.h"
#include "is_json.h"

static struct record r = { .run = "20260102-030405-0a0b0c0d" };

static struct record_denial denial(uint32_t number, int error, const char *program)
{
	struct record_denial d = {
		.number = number, .error = error, .pid = 7, .arguments = { 1, UINT64_MAX }
	};

	snprintf(d.program, sizeof(d.program), "%s", program);
	return d;
}

static const struct record_denial *count(uint32_t number, int error, const char *program, bool *ret)
{
	struct record_denial d = denial(number, error, program);

	return record_count_denial(&r, &d, ret);
}

static void forget(void)
{
	r.denial_count = 0;
	r.denials_untold = 0;
}

static void test_rows(void)
{
	const struct record_denial *row, *same;
	bool is_new;

	forget();
	row = count(SYS_mount, EPERM, "unshare", &is_new);
	CHECK(row && is_new && row->times == 1);
	same = count(SYS_mount, EPERM, "unshare", &is_new);
	CHECK(row && same == row && !is_new && row->times == 2);
	CHECK(count(SYS_mount, EACCES, "unshare", &is_new) != row && is_new);
	CHECK(count(SYS_mount, EPERM, "mount", &is_new) != row && is_new);
	CHECK(count(SYS_chroot, EPERM, "unshare", &is_new) != row && is_new);
	CHECK(r.denial_count == 4 && r.denials[0].times == 2 && r.denials_untold == 0);
}

/* Who has a new name every time fills one row, and leaves the others to other calls. */
static void test_many_names(void)
{
	const struct record_denial *row = NULL;
	char name[RECORD_PROGRAM_SIZE];
	bool is_new = true;
	uint64_t times = 0;

	forget();
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		row = count(SYS_mount, EPERM, name, &is_new);
	}
	CHECK(r.denial_count == RECORD_DENIAL_PROGRAMS + 1 && !is_new);
	CHECK(row && row->program[0] == '\0' && row->times == 10000 - RECORD_DENIAL_PROGRAMS);
	CHECK(count(SYS_mount, EPERM, "name 0", &is_new) == &r.denials[0] && !is_new);
	CHECK(count(SYS_keyctl, EPERM, "keyctl", &is_new) && is_new);
	for (size_t i = 0; i < r.denial_count; i++)
		times += r.denials[i].times;
	CHECK(times == 10002);
}

static void test_no_room(void)
{
	bool is_new;

	forget();
	for (uint32_t i = 0; i < RECORD_MAX_DENIALS; i++)
		CHECK(count(i, EPERM, "x", &is_new) && is_new);
	CHECK(!count(5000, EPERM, "x", &is_new) && !is_new);
	CHECK(!count(5000, EPERM, "x", &is_new) && !is_new);
	CHECK(count(0, EPERM, "x", &is_new) && !is_new);
	CHECK(r.denial_count == RECORD_MAX_DENIALS && r.denials_untold == 2);
}

static const struct record_denial *count_write(const char *path, const char *program, bool *ret)
{
	struct record_denial d = denial(SYS_openat, 0, program);

	snprintf(d.path, sizeof(d.path), "%s", path);
	return record_count_denial(&r, &d, ret);
}

/* Writes have rows of their own, and never all. */
static void test_writes(void)
{
	const struct record_denial *row;
	char path[32];
	bool is_new;

	forget();
	row = count_write(".envrc", "sh", &is_new);
	CHECK(row && is_new && count_write(".envrc", "sh", &is_new) == row && row->times == 2);
	CHECK(count_write(".envrc", "cp", &is_new) != row && is_new);
	CHECK(count(SYS_openat, EPERM, "sh", &is_new) != row && is_new);
	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), ".git/hooks/%d", i);
		count_write(path, "sh", &is_new);
	}
	CHECK(!is_new && r.denial_count == RECORD_MAX_WRITES + 1);
	CHECK(r.denials_untold == 1000 - (RECORD_MAX_WRITES - 2));
	CHECK(count_write(".envrc", "sh", &is_new) == row && row->times == 3);
	CHECK(count(SYS_mount, EPERM, "sh", &is_new) && is_new);
}

/* --- what is printed --- */

static const char *printed(void)
{
	static struct buf out;
	struct json j;

	buf_done(&out);
	buf_init(&out, (size_t)1 << 20);
	json_init(&j, &out, 0);
	json_open_list(&j, NULL);
	record_print_denials(&r, &j);
	json_close_list(&j);
	CHECK(!out.failed && is_json(buf_text(&out)));
	return buf_text(&out);
}

static void test_json(void)
{
	char wanted[1024];
	bool is_new;

	forget();
	CHECK_STR(printed(), "[]");
	count(SYS_bpf, EPERM, "a\x1b[m\"\xff", &is_new);
	snprintf(wanted, sizeof(wanted),
		"[{\"type\":\"syscall_denied\",\"call\":\"bpf\",\"number\":%d,\"error\":\"EPERM\","
		"\"pid\":7,\"program\":\"a\\u001b[m\\\"\\udcff\",\"arguments\":[\"0x1\","
		"\"0xffffffffffffffff\",\"0x0\",\"0x0\",\"0x0\",\"0x0\"],\"times\":1,"
		"\"text\":\"bpf by a\\u001b[m\\\"\\udcff was refused with EPERM: a cage loads no "
		"programs into the kernel\"}]",
		SYS_bpf);
	CHECK_STR(printed(), wanted);
	forget();
	count(99999, EACCES, "", &is_new);
	r.denials[0].times = UINT64_MAX;
	r.denials_untold = UINT64_MAX;
	CHECK(strstr(printed(), "\"program\":null,"));
	CHECK(strstr(printed(), "\"times\":9223372036854775807,\"text\":\"call 99999 was refused "
				"with EACCES: the profile of system calls does without it\"}"));
	CHECK(strstr(printed(), "{\"type\":\"syscalls_untold\",\"times\":9223372036854775807,"));
}

static void test_json_of_write(void)
{
	bool is_new;

	forget();
	count_write("a\x1b\xff/b", "sh", &is_new);
	CHECK_STR(printed(),
		"[{\"type\":\"write_denied\",\"path\":\"a\\u001b\\udcff/b\",\"call\":\"openat\","
		"\"pid\":7,\"program\":\"sh\",\"times\":1,\"text\":\"a write to "
		"'a\\u001b\\udcff/b' by sh was refused (openat): it is protected\"}]");
}

/* Every call that a profile of ours refuses has a sentence that fits. */
static void test_sentences(void)
{
	char text[512];

	for (uint32_t number = 0; number < 600; number++) {
		struct record_denial d = denial(number, EPERM, "a name of 15 by");

		record_say_denial(&d, text, sizeof(text));
		CHECK(strlen(text) < 300 && strstr(text, " by a name of 15 by was refused with "
							 "EPERM: "));
	}
}

/* --- what the operator is told --- */

static const char *said(bool is_quiet)
{
	static char text[8192];
	/* A plan without operations has its promises next. */
	static struct {
		struct plan head;
		struct plan_promise promises[PLAN_GUARANTEE_COUNT];
	} plan = { .head.promise_count = PLAN_GUARANTEE_COUNT };
	static struct run run;
	const struct cli cli = { .is_quiet = is_quiet };
	const struct err none = { 0 };
	struct cli_printer told;
	struct run_sink sink;
	own_fd int into = memfd_create("said", MFD_CLOEXEC), before = dup(STDERR_FILENO);
	ssize_t n;

	CHECK(into >= 0 && before >= 0 && dup2(into, STDERR_FILENO) >= 0);
	run.record = r;
	run.record.plan = &plan.head;
	sink = cli_sink(&told, &cli);
	sink.ended(sink.of, &run, &none);
	dup2(before, STDERR_FILENO);
	n = pread(into, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void test_line(void)
{
	bool is_new;

	forget();
	CHECK_STR(said(false), "");
	/* What programs only try is on record, and no news. */
	count(SYS_io_uring_setup, EPERM, "node", &is_new);
	CHECK_STR(said(false), "");
	count(SYS_mount, EPERM, "a\x1b[m", &is_new);
	count(SYS_mount, EPERM, "b", &is_new);
	CHECK_STR(said(true), "");
	CHECK_STR(said(false), "bawn: system calls: denied mount (by a\\x1b[m); why: bawn log "
			       "--denials 20260102-030405-0a0b0c0d\n");
	count(SYS_keyctl, EPERM, "", &is_new);
	count(SYS_bpf, EPERM, "c", &is_new);
	count(SYS_chroot, EPERM, "d", &is_new);
	CHECK_STR(said(false),
		"bawn: system calls: denied mount (by a\\x1b[m), keyctl, bpf (by c) and 1 more; "
		"why: bawn log --denials 20260102-030405-0a0b0c0d\n");
}

static void test_line_of_writes(void)
{
	bool is_new;

	forget();
	count_write(".git/hooks/\x1b", "sh", &is_new);
	count_write(".git/hooks/\x1b", "cp", &is_new);
	count_write(".envrc", "", &is_new);
	CHECK_STR(said(true), "");
	CHECK_STR(said(false),
		"bawn: writes: denied to .git/hooks/\\x1b (by sh), .envrc; why: bawn "
		"log --denials 20260102-030405-0a0b0c0d\n");
	count(SYS_openat, EPERM, "sh", &is_new);
	CHECK(strstr(said(false), "system calls: denied openat (by sh); why"));
}

int main(void)
{
	test_rows();
	test_many_names();
	test_no_room();
	test_writes();
	test_json();
	test_json_of_write();
	test_sentences();
	test_line();
	test_line_of_writes();
	return check_report();
}
