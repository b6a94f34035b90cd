/*
 * What a filter tells. The interpreter is held against the kernel: a child installs programs in
 * which every answer is an error that names its instruction, so that no call does anything and each
 * says where it was answered.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "seccomp/filter_rules.h"

#include "base/count.h"
#include "check.h"

#define HIGH      (1ULL << 32)
#define MAX_ASKED 100000

struct asked {
	uint32_t number;
	uint64_t arguments[6];
	int answer; /* the kernel's errno */
};

static struct asked *asked; /* shared with the child */
static size_t asked_count;
static volatile int *is_done; /* shared too */

static void add(uint32_t number, const uint64_t *arguments)
{
	struct asked *a = &asked[asked_count];

	CHECK(asked_count < MAX_ASKED);
	if (asked_count >= MAX_ASKED)
		return;
	a->number = number;
	a->answer = 0;
	memcpy(a->arguments, arguments, sizeof(a->arguments));
	asked_count++;
}

/* Arguments that hit each test of a rule, and others that just miss. */
static void add_rule(const struct filter_rule *rule)
{
	for (unsigned i = 0; i < 1U << (2 * rule->test_count); i++) {
		uint64_t arguments[6] = { 0 };

		for (unsigned k = 0; k < rule->test_count; k++) {
			const struct filter_test *t = &rule->tests[k];
			uint64_t values[] = { t->value, t->value ^ (t->mask & -t->mask),
				t->value | (~t->mask & HIGH), t->value ^ t->mask };

			arguments[t->arg] = values[i >> (2 * k) & 3];
		}
		add(rule->number, arguments);
	}
}

static void choose_calls(void)
{
	static const uint64_t words[] = { 0, 1, 2, 3, 6, 10, 16, 17, 0x5412, 0x2000, 0x20000000,
		0xc00, 0x4000c1, 0xffffffff, HIGH, HIGH | 2, UINT64_MAX };
	const size_t count = COUNT_OF(words);

	asked_count = 0;
	for (size_t i = 0; i < filter_always_count; i++)
		add_rule(&filter_always[i]);
	for (uint32_t number = 0; number < 600; number++) {
		/* uretprobe and uprobe pass by every filter, and kill who calls them himself. */
		if (number == 335 || number == 336)
			continue;
		for (size_t i = 0; i < 100; i++) {
			uint64_t arguments[6];

			for (size_t k = 0; k < 6; k++)
				arguments[k] =
					words[(i * (k + 3) + i / count + k * number) % count];
			add(number, arguments);
		}
	}
}

/* Every answer but death says at which instruction it was given. */
static void mark(const struct filter *f, struct sock_filter *code)
{
	memcpy(code, f->code, f->count * sizeof(*code));
	for (unsigned i = 0; i < f->count; i++)
		if (code[i].code == (BPF_RET | BPF_K) && code[i].k != SECCOMP_RET_KILL_PROCESS)
			code[i].k = SECCOMP_RET_ERRNO | (i + 1);
}

/* No call works from there on, not even that to end: who started it kills it. */
_Noreturn static void ask_kernel(const struct filter *marked)
{
	struct sock_fprog program = { .len = marked->count };

	memcpy(&program.filter, &marked->code, sizeof(program.filter));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		_exit(1);
	for (size_t i = 0; i < asked_count; i++) {
		const uint64_t *a = asked[i].arguments;

		errno = 0;
		if (syscall(asked[i].number, a[0], a[1], a[2], a[3], a[4], a[5]) == -1)
			asked[i].answer = errno;
	}
	*is_done = 1;
	for (;;)
		continue;
}

static void test_against_kernel(const struct filter *plain)
{
	static struct sock_filter code[FILTER_MAX_CODE];
	const struct filter marked = { code, plain->count };
	int status = 0, wrong = 0;
	pid_t pid;

	*is_done = 0;
	choose_calls();
	mark(plain, code);
	pid = fork();
	if (pid == 0)
		ask_kernel(&marked);
	CHECK(pid > 0);
	while (pid > 0 && !*is_done && waitpid(pid, &status, WNOHANG) == 0)
		usleep(1000);
	CHECK(*is_done && kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
	for (size_t i = 0; i < asked_count; i++) {
		struct seccomp_data call = { .nr = (int)asked[i].number,
			.arch = filter_arch_native()->audit };

		memcpy(call.args, asked[i].arguments, sizeof(call.args));
		wrong += asked[i].answer == 0 ||
			 filter_answer(&marked, &call) !=
				 (SECCOMP_RET_ERRNO | (uint32_t)asked[i].answer);
	}
	CHECK(wrong == 0 && asked_count > 59000);
}

static void test_watching_against_kernel(void)
{
	struct filter_made made = { 0 };

	CHECK(filter_make_telling(filter_named("default"), &made) == 0);
	CHECK(filter_watch_writes(&made) == 0);
	test_against_kernel(&(struct filter){ made.code, made.count });
	filter_made_done(&made);
}

/* The program that tells differs in what is told, and in nothing else. */
static void test_telling(const char *name)
{
	const struct filter *plain = filter_named(name);
	struct filter_made made = { 0 };
	size_t told = 0, wrong = 0;

	CHECK(filter_make_telling(plain, &made) == 0 && made.count == plain->count);
	choose_calls();
	for (size_t i = 0; i < asked_count; i++) {
		struct seccomp_data call = { .nr = (int)asked[i].number,
			.arch = filter_arch_native()->audit };
		uint32_t before, after;

		memcpy(call.args, asked[i].arguments, sizeof(call.args));
		before = filter_answer(plain, &call);
		after = filter_answer(&(struct filter){ made.code, made.count }, &call);
		told += filter_is_notifying(before);
		wrong += after != (filter_is_notifying(before) ? SECCOMP_RET_USER_NOTIF : before);
	}
	CHECK(wrong == 0 && told > 1000);
	filter_made_done(&made);
}

/* The program that watches tells writes where they are allowed, and differs in nothing else. */
static void test_watching(const char *name)
{
	const struct filter *plain = filter_named(name);
	struct filter_made made = { 0 };
	size_t watched = 0, wrong = 0;

	CHECK(filter_make_telling(plain, &made) == 0 && filter_watch_writes(&made) == 0);
	CHECK(made.count > plain->count && made.count < plain->count + 100);
	choose_calls();
	for (size_t i = 0; i < asked_count; i++) {
		struct seccomp_data call = { .nr = (int)asked[i].number,
			.arch = filter_arch_native()->audit };
		uint32_t before, after;
		bool is_watched;

		memcpy(call.args, asked[i].arguments, sizeof(call.args));
		before = filter_answer(plain, &call);
		after = filter_answer(&(struct filter){ made.code, made.count }, &call);
		is_watched = before == SECCOMP_RET_ALLOW && filter_find_watched(&call);
		watched += is_watched;
		if (is_watched || filter_is_notifying(before))
			before = SECCOMP_RET_USER_NOTIF;
		wrong += after != before;
		call.arch = AUDIT_ARCH_I386;
		wrong += filter_answer(&(struct filter){ made.code, made.count }, &call) !=
			 SECCOMP_RET_KILL_PROCESS;
		wrong += filter_find_watched(&call) != NULL;
	}
	CHECK(wrong == 0 && watched > 1000);
	filter_made_done(&made);
}

static void test_what_is_watched(void)
{
	struct seccomp_data call = { .arch = filter_arch_native()->audit, .nr = SYS_openat };
	const struct filter_watched *w;

	call.args[1] = call.args[3] = UINT64_MAX;
	call.args[2] = O_RDONLY | O_CREAT | O_CLOEXEC | O_DIRECTORY;
	CHECK(!filter_find_watched(&call));
	for (size_t i = 0; i < 3; i++) {
		call.args[2] = (uint64_t[]){ O_WRONLY, O_RDWR | O_APPEND, O_RDONLY | O_TRUNC }[i];
		w = filter_find_watched(&call);
		CHECK(w && w->places[0].at == 0 && w->places[0].path == 1);
		CHECK(w && w->places[1].path == -1 && !w->takes_away);
	}
	call.args[2] = HIGH; /* the kernel reads an int */
	CHECK(!filter_find_watched(&call));
	call.nr = SYS_renameat2;
	w = filter_find_watched(&call);
	CHECK(w && w->places[1].at == 2 && w->places[1].path == 3 && w->takes_away);
	call.nr = SYS_symlinkat;
	w = filter_find_watched(&call);
	CHECK(w && w->places[0].at == 1 && w->places[0].path == 2);
	call.nr = SYS_read;
	CHECK(!filter_find_watched(&call));
}

/* A program that is too long stays what it was. */
static void test_too_long(void)
{
	struct filter_made made = { calloc(FILTER_MAX_CODE, sizeof(struct sock_filter)),
		FILTER_MAX_CODE - 10 };

	for (unsigned i = 0; made.code && i < made.count; i++)
		made.code[i] = (struct sock_filter){ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };
	CHECK(made.code && filter_watch_writes(&made) == -E2BIG);
	CHECK(made.code && made.count == FILTER_MAX_CODE - 10 &&
		made.code[0].k == SECCOMP_RET_ALLOW);
	filter_made_done(&made);
}

static void test_what_is_told(void)
{
	CHECK(filter_is_notifying(SECCOMP_RET_ERRNO | EPERM));
	CHECK(filter_is_notifying(SECCOMP_RET_ERRNO | EACCES));
	CHECK(!filter_is_notifying(SECCOMP_RET_ERRNO | ENOSYS));
	CHECK(!filter_is_notifying(SECCOMP_RET_ERRNO | EAFNOSUPPORT));
	CHECK(!filter_is_notifying(SECCOMP_RET_ERRNO));
	CHECK(!filter_is_notifying(SECCOMP_RET_ALLOW | EPERM) &&
		!filter_is_notifying(SECCOMP_RET_LOG));
	CHECK(!filter_is_notifying(SECCOMP_RET_TRAP | EPERM));
	CHECK(!filter_is_notifying(SECCOMP_RET_KILL_PROCESS | EPERM));
}

/* What no compiler makes is no way through. */
static void test_no_program(void)
{
	static const struct sock_filter bad[][2] = {
		{ { BPF_LD | BPF_W | BPF_ABS, 0, 0, sizeof(struct seccomp_data) - 3 },
			{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } },
		{ { BPF_LD | BPF_W | BPF_ABS, 0, 0, UINT32_MAX },
			{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } },
		{ { BPF_JMP | BPF_JA, 0, 0, 1 }, { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } },
		{ { BPF_JMP | BPF_JA, 0, 0, UINT32_MAX },
			{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } },
		{ { BPF_JMP | BPF_JSET | BPF_K, 0, 0, 0 },
			{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } },
		{ { BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 0 },
			{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } },
		{ { BPF_LDX | BPF_IMM, 0, 0, 0 }, { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW } },
		{ { BPF_ALU | BPF_AND | BPF_K, 0, 0, 0 }, { BPF_RET | BPF_A, 0, 0, 0 } },
	};
	struct seccomp_data call = { 0 };

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		CHECK(filter_answer(&(struct filter){ bad[i], 2 }, &call) ==
			SECCOMP_RET_KILL_PROCESS);
	CHECK(filter_answer(&(struct filter){ bad[0], 0 }, &call) == SECCOMP_RET_KILL_PROCESS);
}

static void test_names(void)
{
	char name[FILTER_NAME_SIZE];

	filter_name_call(SYS_mount, name);
	CHECK_STR(name, "mount");
	filter_name_call(457, name); /* too new for libseccomp */
	CHECK_STR(name, "statmount");
	filter_name_call(467, name);
	CHECK_STR(name, "open_tree_attr");
	filter_name_call(99999, name);
	CHECK_STR(name, "call 99999");
	filter_name_call(UINT32_MAX, name);
	CHECK_STR(name, "call 4294967295");
}

static void test_allows(void)
{
	const uint64_t none[6] = { 0 }, typing[6] = { 0, 0x5412 };

	CHECK(filter_allows(filter_named("strict"), SYS_sendmsg, none));
	CHECK(!filter_allows(filter_named("strict"), SYS_mount, none));
	CHECK(filter_allows(filter_named("default"), SYS_ioctl, none));
	CHECK(!filter_allows(filter_named("default"), SYS_ioctl, typing));
}

int main(void)
{
	asked = mmap(NULL, MAX_ASKED * sizeof(*asked), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	is_done = mmap(
		NULL, sizeof(*is_done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (asked == MAP_FAILED || is_done == MAP_FAILED)
		return 1;
	test_against_kernel(filter_named("default"));
	test_against_kernel(filter_named("strict"));
	test_watching_against_kernel();
	test_telling("default");
	test_telling("strict");
	test_watching("default");
	test_watching("strict");
	test_what_is_watched();
	test_too_long();
	test_what_is_told();
	test_no_program();
	test_names();
	test_allows();
	return check_report();
}
