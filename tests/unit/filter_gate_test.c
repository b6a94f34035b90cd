/* The filters of the gate, the caller and the usher, run by an interpreter: what is not listed
 * kills. */
#include "seccomp/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "seccomp/filter_rules.h"

#include "base/count.h"
#include "bpf.h"
#include "check.h"

#define ALLOW SECCOMP_RET_ALLOW
#define KILL  SECCOMP_RET_KILL_PROCESS
#define HIGH  (1ULL << 32)

static uint32_t ask(
	const struct filter *f, const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct seccomp_data data = { .nr = filter_find_call(filter_arch_native(), name),
		.arch = filter_arch_native()->audit,
		.args = { a, b, c, d } };
	unsigned steps;

	return bpf_is_sound(f) ? bpf_run(f, &data, &steps) : 1;
}

static void test_all(const struct filter *f)
{
	static const char *const never[] = { "execve", "execveat", "clone", "clone3", "unshare",
		"setns", "mount", "ptrace", "prctl", "bind", "listen", "kill", "tgkill", "openat2",
		"unlinkat", "renameat2", "socketpair", "io_uring_setup", "bpf", "seccomp",
		"setresuid", "capset", "memfd_create", "process_vm_readv", "pidfd_getfd",
		"sendmmsg", "dup3" };

	for (size_t i = 0; i < COUNT_OF(never); i++)
		CHECK_STR(ask(f, never[i], 0, 0, 0, 0) == KILL ? never[i] : "allowed", never[i]);
	CHECK(ask(f, "recvmsg", 0, 0, 0, 0) == ALLOW && ask(f, "exit_group", 0, 0, 0, 0) == ALLOW);
	/* It connects, past Landlock. */
	CHECK(ask(f, "sendmsg", 3, 0, MSG_NOSIGNAL, 0) == ALLOW);
	CHECK(ask(f, "sendmsg", 3, 0, MSG_FASTOPEN, 0) == KILL);
	CHECK(ask(f, "sendto", 3, 0, 0, MSG_FASTOPEN) == KILL);
	CHECK(ask(f, "mmap", 0, 4096, PROT_READ | PROT_EXEC, 0) == KILL);
	CHECK(ask(f, "mmap", 0, 4096, HIGH + PROT_EXEC, 0) == KILL);
	CHECK(ask(f, "mprotect", 0, 4096, PROT_EXEC, 0) == KILL);
	CHECK(ask(f, "socket", AF_UNIX, SOCK_STREAM, 0, 0) == KILL);
	CHECK(ask(f, "socket", AF_NETLINK, SOCK_RAW, 0, 0) == KILL);
	CHECK(ask(f, "socket", AF_PACKET, SOCK_RAW, 0, 0) == KILL);
	CHECK(ask(f, "socket", AF_INET, SOCK_RAW, IPPROTO_ICMP, 0) == KILL);
	CHECK(ask(f, "socket", AF_INET, SOCK_STREAM, IPPROTO_SCTP, 0) == KILL);
	CHECK(ask(f, "socket", AF_INET, SOCK_STREAM, IPPROTO_MPTCP, 0) == KILL);
	CHECK(ask(f, "setsockopt", 3, IPPROTO_TCP, TCP_ULP, 0) != ALLOW);
	CHECK(ask(f, "setsockopt", 3, SOL_SOCKET, SO_ATTACH_FILTER, 0) != ALLOW);
	CHECK(ask(f, "fcntl", 3, F_SETOWN, 1, 0) == KILL);
	CHECK(ask(f, "fcntl", 3, F_DUPFD, 0, 0) == KILL);
}

/* Who may connect sockets to where it likes. */
static void test_connecting(const struct filter *f)
{
	CHECK(ask(f, "socket", AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0) == ALLOW);
	CHECK(ask(f, "socket", AF_INET6, SOCK_STREAM, 0, 0) == ALLOW);
	CHECK(ask(f, "connect", 3, 0, 0, 0) == ALLOW);
	CHECK(ask(f, "accept4", 3, 0, 0, 0) == KILL);
}

static void test_gate(void)
{
	CHECK(ask(&filter_gate, "socket", AF_INET, SOCK_STREAM, 0, 0) == KILL);
	CHECK(ask(&filter_gate, "connect", 3, 0, 0, 0) == KILL);
	CHECK(ask(&filter_gate, "sendto", 3, 0, 0, MSG_NOSIGNAL) == ALLOW);
	CHECK(ask(&filter_gate, "setsockopt", 3, IPPROTO_TCP, TCP_NODELAY, 0) == ALLOW);
	CHECK(ask(&filter_gate, "socket", AF_INET, SOCK_DGRAM, 0, 0) == KILL);
	CHECK(ask(&filter_gate, "openat", 0, 0, O_RDONLY, 0) == KILL);
	CHECK(ask(&filter_gate, "mmap", 0, 4096, PROT_READ, 0) == KILL);
	CHECK(ask(&filter_gate, "splice", 0, 0, 0, 0) == ALLOW);
	CHECK(ask(&filter_gate, "fcntl", 3, F_SETPIPE_SZ, 65536, 0) == ALLOW);
	CHECK(ask(&filter_gate, "ioctl", 3, 0x541b, 0, 0) == KILL);
	CHECK(ask(&filter_gate, "ioctl", 3, 0x5412, 0, 0) == KILL);
}

static void test_dialer(void)
{
	static const uint64_t bad[] = { O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND, O_TMPFILE,
		O_PATH, O_DIRECTORY };

	CHECK(ask(&filter_dialer, "socket", AF_INET6, SOCK_DGRAM, 0, 0) == ALLOW);
	CHECK(ask(&filter_dialer, "openat", 0, 0, O_RDONLY | O_CLOEXEC, 0) == ALLOW);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		CHECK(ask(&filter_dialer, "openat", 0, 0, bad[i], 0) == KILL);
	CHECK(ask(&filter_dialer, "mmap", 0, 4096, PROT_READ | PROT_WRITE, 0) == ALLOW);
	CHECK(ask(&filter_dialer, "sendto", 3, 0, 0, MSG_NOSIGNAL) == ALLOW);
	CHECK(ask(&filter_dialer, "sendto", 3, 0, 0, MSG_FASTOPEN) == KILL);
	CHECK(ask(&filter_dialer, "sendmsg", 3, 0, MSG_FASTOPEN, 0) == KILL);
	CHECK(ask(&filter_dialer, "accept4", 3, 0, 0, 0) == KILL);
	CHECK(ask(&filter_dialer, "ioctl", 3, 0x541b, 0, 0) == KILL);
}

/* It has the keys: it gets every socket from others, and opens nothing. */
static void test_vault(void)
{
	CHECK(ask(&filter_vault, "socket", AF_INET, SOCK_STREAM, 0, 0) == KILL);
	CHECK(ask(&filter_vault, "socket", AF_UNIX, SOCK_STREAM, 0, 0) == KILL);
	CHECK(ask(&filter_vault, "connect", 3, 0, 0, 0) == KILL);
	CHECK(ask(&filter_vault, "accept4", 3, 0, 0, 0) == KILL);
	CHECK(ask(&filter_vault, "openat", 3, 0, 0, 0) == KILL);
	CHECK(ask(&filter_vault, "sendto", 3, 0, 0, MSG_NOSIGNAL) == ALLOW);
	CHECK(ask(&filter_vault, "sendto", 3, 0, 0, MSG_FASTOPEN) == KILL);
	CHECK(ask(&filter_vault, "sendmsg", 3, 0, MSG_FASTOPEN, 0) == KILL);
	CHECK(ask(&filter_vault, "setsockopt", 3, SOL_SOCKET, SO_LINGER, 0) == ALLOW);
	CHECK(ask(&filter_vault, "setsockopt", 3, SOL_SOCKET, SO_ATTACH_FILTER, 0) == KILL);
	CHECK(ask(&filter_vault, "mmap", 0, 4096, PROT_READ | PROT_EXEC, 0) == KILL);
	CHECK(ask(&filter_vault, "mprotect", 0, 4096, PROT_EXEC, 0) == KILL);
	CHECK(ask(&filter_vault, "read", 3, 0, 0, 0) == ALLOW);
}

/* They are not for cages. */
static void test_names(void)
{
	CHECK(!filter_named("gate") && !filter_named("caller") && !filter_named("usher") &&
		!filter_named("vault"));
}

int main(void)
{
	test_all(&filter_gate);
	test_all(&filter_dialer);
	test_all(&filter_usher);
	test_all(&filter_vault);
	test_connecting(&filter_dialer);
	test_connecting(&filter_usher);
	test_gate();
	test_dialer();
	test_vault();
	test_names();
	return check_report();
}
