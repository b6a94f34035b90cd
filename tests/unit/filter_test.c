/* Filters of system calls, run by an interpreter: none is ever installed here. */
#include "seccomp/filter.h"

#include <errno.h>
#include <linux/audit.h>

#include "base/own.h"
#include "base/str.h"
#include "seccomp/filter_rules.h"

#include "base/count.h"
#include "bpf.h"
#include "check.h"

#define ALLOW         SECCOMP_RET_ALLOW
#define ANSWER(error) (SECCOMP_RET_ERRNO | (error))
#define HIGH          (1ULL << 32)

static const char *const profiles[] = { "default", "strict" };
static const struct filter *now; /* the program that is being asked */

static uint32_t ask_number(uint32_t number, const uint64_t *args)
{
	struct seccomp_data data = { .nr = (int)number, .arch = filter_arch_native()->audit };
	unsigned steps;

	if (args)
		memcpy(data.args, args, sizeof(data.args));
	return bpf_run(now, &data, &steps);
}

/* Looks at one call; what another architecture has is as it should be. */
static void expect(int line, const char *name, uint64_t a, uint64_t b, uint64_t c, uint32_t wanted)
{
	uint64_t args[6] = { a, b, c };
	int number = filter_find_call(filter_arch_native(), name);
	char got[128], want[128];

	if (number == -ENOTSUP)
		return;
	snprintf(got, sizeof(got), "%s %#llx %#llx %#llx: %#x", name, (unsigned long long)a,
		(unsigned long long)b, (unsigned long long)c,
		number < 0 ? 0 : ask_number((uint32_t)number, args));
	snprintf(want, sizeof(want), "%s %#llx %#llx %#llx: %#x", name, (unsigned long long)a,
		(unsigned long long)b, (unsigned long long)c, wanted);
	check_equal(got, want, __FILE__, line);
}

#define EXPECT(name, a, b, c, wanted) expect(__LINE__, (name), (a), (b), (c), (wanted))

static void expect_all(int line, const char *names, uint32_t wanted)
{
	own_free char *copy = strdup(names);
	char *rest = NULL;

	for (char *n = strtok_r(copy, " ", &rest); n; n = strtok_r(NULL, " ", &rest))
		expect(line, n, 0, 0, 0, wanted);
}

/* --- the built-in profiles --- */

/* What agents were seen to call, except clone3, mount, pivot_root, umount2; sockets are below. */
static const char agents[] =
	"accept4 access arch_prctl bind brk capget capset chdir chmod clock_gettime clock_nanosleep "
	"clone close close_range connect copy_file_range creat dup dup2 epoll_create1 epoll_ctl "
	"epoll_pwait epoll_pwait2 epoll_wait eventfd2 execve exit exit_group faccessat2 fadvise64 "
	"fallocate fchdir fchmod fchown fcntl flock fstat fsync ftruncate futex get_mempolicy getcwd "
	"getdents64 getegid geteuid getgid getgroups getpeername getpgrp getpid getppid getrandom "
	"getrusage getsockname getsockopt gettid getuid inotify_add_watch inotify_init1 "
	"inotify_rm_watch ioctl kill listen lseek lstat madvise memfd_create mkdir mmap mprotect "
	"munmap newfstatat open openat pidfd_open pipe2 pkey_alloc poll prctl pread64 prlimit64 "
	"pselect6 pwrite64 read readlink recvfrom recvmsg rename renameat2 restart_syscall rmdir "
	"rseq rt_sigaction rt_sigprocmask rt_sigreturn rt_sigsuspend sched_getaffinity "
	"sched_setscheduler sched_yield sendmmsg sendto set_mempolicy set_robust_list "
	"set_tid_address setpgid setsid setsockopt shutdown sigaltstack signalfd4 splice stat "
	"statfs statx symlink sysinfo tgkill timer_create timer_settime timerfd_create "
	"timerfd_settime umask uname unlink unlinkat utimensat vfork wait4 write writev";

/* What git, compilers, interpreters and make call besides. */
static const char tools[] =
	"chown faccessat fchmodat fchownat fdatasync fgetxattr fork fstatfs futex_waitv getpgid "
	"getpriority getresuid getresgid getrlimit getsid gettimeofday getxattr lgetxattr link linkat "
	"listxattr membarrier mincore mkdirat mknod mknodat mremap msync nanosleep pause "
	"pidfd_send_signal pipe ppoll preadv pwritev readlinkat readv recvmmsg rt_sigtimedwait "
	"sched_setaffinity select sendfile sendmsg setitimer setrlimit symlinkat sync_file_range "
	"time times tkill truncate utime utimes waitid landlock_create_ruleset";

static const char dangerous[] =
	"acct add_key adjtimex bpf chroot clock_adjtime clock_settime delete_module fanotify_init "
	"fanotify_mark finit_module fsconfig fsmount fsopen fspick init_module io_uring_enter "
	"io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl "
	"lookup_dcookie migrate_pages mount mount_setattr move_mount move_pages name_to_handle_at "
	"open_by_handle_at open_tree perf_event_open personality pidfd_getfd pivot_root "
	"process_madvise process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot "
	"request_key setdomainname sethostname setns settimeofday swapoff swapon syslog umount2 "
	"userfaultfd vhangup";

static void test_names(void)
{
	expect_all(__LINE__, agents, ALLOW);
	expect_all(__LINE__, tools, ALLOW);
	expect_all(__LINE__, dangerous, ANSWER(EPERM));
	expect_all(__LINE__, "clone3 modify_ldt uselib memfd_secret nfsservctl", ANSWER(ENOSYS));
	CHECK(ask_number(457, NULL) == ANSWER(EPERM)); /* statmount */
	CHECK(ask_number(458, NULL) == ANSWER(EPERM)); /* listmount */
	CHECK(ask_number(467, NULL) == ANSWER(EPERM)); /* open_tree_attr */
	CHECK(ask_number(462, NULL) == ALLOW);         /* mseal */
	CHECK(ask_number(464, NULL) == ALLOW);         /* getxattrat */
	for (uint32_t number = 468; number < 2000; number++)
		CHECK(ask_number(number, NULL) == ANSWER(ENOSYS));
	CHECK(ask_number(0x3fffffff, NULL) == ANSWER(ENOSYS));
}

/* Every number, through every other door. */
static void test_architectures(void)
{
	static const uint32_t others[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64, 0,
		AUDIT_ARCH_X86_64 & ~__AUDIT_ARCH_64BIT };
	struct seccomp_data data = { 0 };
	unsigned steps;

	for (int number = 0; number < 600; number++) {
		for (size_t i = 0; i < COUNT_OF(others); i++) {
			data.nr = number;
			data.arch = others[i];
			CHECK(bpf_run(now, &data, &steps) == SECCOMP_RET_KILL_PROCESS);
		}
		CHECK(ask_number((uint32_t)number | 0x40000000U, NULL) == ANSWER(ENOSYS));
		CHECK(ask_number((uint32_t)number | 0x80000000U, NULL) == ANSWER(ENOSYS));
	}
	CHECK(ask_number(UINT32_MAX, NULL) == ANSWER(ENOSYS));
}

static void test_namespaces(void)
{
	static const uint64_t spaces[] = { 0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000,
		0x10000000, 0x20000000, 0x40000000 };
	bool is_strict = now == filter_named("strict");

	for (size_t i = 0; i < COUNT_OF(spaces); i++) {
		EXPECT("clone", spaces[i], 0, 0, ANSWER(EPERM));
		EXPECT("clone", spaces[i] | 0x3d0f00 | HIGH, 0, 0, ANSWER(EPERM));
		EXPECT("unshare", spaces[i], 0, 0, ANSWER(EPERM));
		EXPECT("unshare", spaces[i] | 0x200 | HIGH, 0, 0, ANSWER(EPERM));
	}
	EXPECT("clone", 0x3d0f00, 0, 0, ALLOW); /* a thread */
	EXPECT("clone", 0x1200011, 0, 0, ALLOW);
	EXPECT("clone", 0x4111, 0, 0, ALLOW); /* posix_spawn */
	EXPECT("unshare", 0x200, 0, 0, is_strict ? ANSWER(EPERM) : ALLOW);
	EXPECT("unshare", 0x50f00, 0, 0, is_strict ? ANSWER(EPERM) : ALLOW);
	EXPECT("unshare", 0x100000, 0, 0, ANSWER(EPERM)); /* known to no kernel yet */
	EXPECT("unshare", HIGH, 0, 0, ANSWER(EPERM));
}

static void test_sockets(void)
{
	uint32_t route = now == filter_named("strict") ? ANSWER(EAFNOSUPPORT) : ALLOW;
	uint32_t other =
		now == filter_named("strict") ? ANSWER(EAFNOSUPPORT) : ANSWER(EPROTONOSUPPORT);

	EXPECT("socket", 1, 1, 0, ALLOW);
	EXPECT("socket", 1, 0x80801, 0, ALLOW);
	EXPECT("socket", 2, 1, 0, ALLOW);
	EXPECT("socket", 2, 0x80801, 6, ALLOW);
	EXPECT("socket", 2, 2, 17, ALLOW);
	EXPECT("socket", 2, 2, 1, ALLOW);
	EXPECT("socket", 10, 1, 6, ALLOW);
	EXPECT("socket", 10, 2, 17, ALLOW);
	EXPECT("socket", 10, 2, 58, ALLOW);
	EXPECT("socket", 2 | HIGH, 1 | HIGH, 6 | HIGH, ALLOW); /* garbage the kernel never sees */
	EXPECT("socket", 2, 1, 262, ANSWER(EPROTONOSUPPORT));  /* MPTCP */
	EXPECT("socket", 10, 1, 262 | HIGH, ANSWER(EPROTONOSUPPORT));
	EXPECT("socket", 2, 1, 132, ANSWER(EPROTONOSUPPORT)); /* SCTP */
	EXPECT("socket", 2, 3, 255, ANSWER(EPROTONOSUPPORT));
	EXPECT("socket", 2, 10, 0, ANSWER(EAFNOSUPPORT)); /* SOCK_PACKET */
	EXPECT("socket", 2, 0x8080a, 0x300, ANSWER(EAFNOSUPPORT));
	EXPECT("socket", 16, 3, 0, route);
	EXPECT("socket", 16 | HIGH, 3, HIGH, route);
	for (uint64_t protocol = 1; protocol < 32; protocol++) {
		EXPECT("socket", 16, 3, protocol, other);
		EXPECT("socket", 16 | HIGH, 3, protocol | HIGH, other);
	}
	for (uint64_t family = 0; family < 64; family++) {
		if (family == 1 || family == 2 || family == 10 || family == 16)
			continue;
		EXPECT("socket", family, 1, 0, ANSWER(EAFNOSUPPORT));
		EXPECT("socket", family | HIGH, 1, 0, ANSWER(EAFNOSUPPORT));
		EXPECT("socketpair", family, 1, 0, ANSWER(EAFNOSUPPORT));
	}
	EXPECT("socket", UINT64_MAX, 1, 0, ANSWER(EAFNOSUPPORT));
	EXPECT("socketpair", 1, 1, 0, ALLOW);
	EXPECT("socketpair", 1 | HIGH, 1, 0, ALLOW);
	EXPECT("socketpair", 40 | HIGH, 1, 0, ANSWER(EAFNOSUPPORT));
}

static void test_arguments(void)
{
	static const uint64_t typing[] = { 0x5412, 0x541c, 0x541d, 0x5423 };

	for (size_t i = 0; i < COUNT_OF(typing); i++) {
		EXPECT("ioctl", 0, typing[i], 0, ANSWER(EPERM));
		EXPECT("ioctl", 0, typing[i] | HIGH, 0, ANSWER(EPERM));
		EXPECT("ioctl", 0, typing[i] | 0xffffffff00000000U, 0, ANSWER(EPERM));
	}
	EXPECT("ioctl", 0, 0x5401, 0, ALLOW); /* isatty */
	EXPECT("ioctl", 0x5412, 0x5413, 0x5412, ALLOW);
	EXPECT("seccomp", 1, 8, 0, ANSWER(EPERM));
	EXPECT("seccomp", 1, 9 | HIGH, 0, ANSWER(EPERM));
	EXPECT("mknod", 0, 0x11a4, 0, ALLOW); /* a pipe */
	EXPECT("mknod", 0, 0x21a4, 0, ANSWER(EPERM));
	EXPECT("mknod", 0, 0x61a4, 0, ANSWER(EPERM));
	EXPECT("mknodat", 0, 0, 0x11a4, ALLOW);
	EXPECT("mknodat", 0, 0, 0x21a4 | HIGH, ANSWER(EPERM));
	EXPECT("mknodat", 0, 0, 0xffff61a4, ANSWER(EPERM));
	EXPECT("personality", UINT32_MAX, 0, 0, ANSWER(EPERM));
}

static void test_strict(void)
{
	static const uint64_t words[] = { 0, 1, 2, 8, 10, 16, 0x5412, 0x2000000, HIGH | 16 };
	const struct filter *names[] = { filter_named("strict"), filter_named("default") };
	size_t count = COUNT_OF(words), fewer = 0, wider = 0;

	for (uint32_t number = 0; number < 1024; number++) {
		for (size_t i = 0; i < count * count * count; i++) {
			uint64_t args[6] = { words[i % count], words[i / count % count],
				words[i / count / count] };
			uint32_t strict, lenient;

			now = names[0];
			strict = ask_number(number, args);
			now = names[1];
			lenient = ask_number(number, args);
			wider += strict == ALLOW && lenient != ALLOW;
			fewer += strict != lenient && i == 0;
		}
	}
	CHECK(wider == 0 && fewer > 20);
	now = names[0];
	expect_all(
		__LINE__, "io_setup mq_open shmget vmsplice setuid seccomp unshare", ANSWER(EPERM));
	CHECK(!filter_named("") && !filter_named("Default") && !filter_named("strict.json"));
}

/* How long a call waits for its answer. The kernel remembers those that need no argument. */
static void test_costs(void)
{
	static const char *const hot[] = { "read", "write", "openat", "futex", "clock_gettime",
		"ioctl", "socket", "clone" };
	struct seccomp_data data = { .arch = filter_arch_native()->audit, .args = { 10, 1, 58 } };
	unsigned steps, most = 0;

	CHECK(bpf_is_sound(now) && now->count < 600);
	printf("%u instructions;", now->count);
	for (size_t i = 0; i < COUNT_OF(hot); i++) {
		data.nr = filter_find_call(filter_arch_native(), hot[i]);
		bpf_run(now, &data, &steps);
		CHECK(steps < (i < 5 ? 16 : 60));
		printf(" %s %u", hot[i], steps);
	}
	for (data.nr = 0; data.nr < 1024; data.nr++) {
		bpf_run(now, &data, &steps);
		most = steps > most ? steps : most;
	}
	printf("; at most %u\n", most);
}

/* --- any rules: the program says what the rules say --- */

static bool holds(const struct filter_test *t, const uint64_t *args)
{
	uint64_t a = args[t->arg] & t->mask, b = t->value;
	bool answers[] = { a == b, a != b, a<b, a <= b, a> b, a >= b };

	return answers[t->op];
}

static uint32_t judge(const struct filter_rules *rules, uint32_t number, const uint64_t *args)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct filter_rule *rule = &rules->items[i];
		unsigned k = 0;

		while (k < rule->test_count && holds(&rule->tests[k], args))
			k++;
		if (rule->number == number && k == rule->test_count)
			return rule->action;
	}
	return rules->action;
}

static uint32_t random_below(uint32_t limit)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005U + 1442695040888963407U;
	return (uint32_t)(state >> 33) % limit;
}

static uint64_t random_word(void)
{
	static const uint64_t words[] = { 0, 1, 2, 7, 0x7fffffff, 0xfffffffe, 0xffffffff, HIGH,
		HIGH + 1, HIGH * 2, HIGH * 2 + 1, UINT64_MAX - 1, UINT64_MAX };

	return words[random_below(COUNT_OF(words))];
}

static void make_rules(struct filter_rules *rules)
{
	size_t count = random_below(300);

	rules->count = 0;
	while (rules->count < count) {
		struct filter_rule rule = { .number = random_below(200),
			.action = ANSWER(random_below(5)),
			.test_count = random_below(4) };

		for (unsigned k = 0; k < rule.test_count; k++)
			rule.tests[k] = (struct filter_test){ random_below(3),
				(enum filter_op)random_below(6),
				random_below(2) ? UINT64_MAX : random_word(), random_word() };
		CHECK(filter_rules_add(rules, &rule) == 0);
	}
}

static void test_compiler(void)
{
	static struct filter_rule items[FILTER_MAX_RULES];
	struct filter_rules rules = { filter_arch_native()->audit, ALLOW, items, 0 };
	struct filter program;
	struct arena arena;
	int wrong = 0;

	now = &program;
	for (int round = 0; round < 300; round++) {
		arena_init(&arena, (size_t)1 << 22);
		make_rules(&rules);
		CHECK(filter_compile(&rules, &arena, &program) == 0 && bpf_is_sound(&program));
		for (int i = 0; i < 3000; i++) {
			uint64_t args[6] = { random_word(), random_word(), random_word() };
			uint32_t number = random_below(210);

			wrong += ask_number(number, args) != judge(&rules, number, args);
		}
		arena_done(&arena);
	}
	CHECK(wrong == 0);
	/* As long as can be, and longer. */
	arena_init(&arena, (size_t)1 << 22);
	for (rules.count = 0; rules.count < FILTER_MAX_RULES; rules.count++)
		items[rules.count] = (struct filter_rule){ (uint32_t)rules.count % 400, ALLOW, 1,
			{ { 0, FILTER_EQ, UINT64_MAX, rules.count } } };
	CHECK(filter_compile(&rules, &arena, &program) == -E2BIG);
	CHECK(filter_rules_add(&rules, &items[0]) == -E2BIG);
	arena_done(&arena);
}

int main(void)
{
	for (size_t i = 0; i < COUNT_OF(profiles); i++) {
		now = filter_named(profiles[i]);
		test_names();
		test_architectures();
		test_namespaces();
		test_sockets();
		test_arguments();
		test_costs();
	}
	test_strict();
	test_compiler();
	return check_report();
}
