/* What a process that faces strangers can still do; children are confined and try. */
#include "gate/gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"

#include "check.h"

#define SEALS  (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)
#define NOBODY 65534

static _Alignas(struct wire_rules) char wanted[sizeof(struct wire_rules) + 512];
static struct wire_rules *const head = (void *)wanted;

static void make_wanted(void)
{
	memset(wanted, 0, sizeof(wanted));
	head->rule_count = 1;
	head->uid = head->gid = NOBODY;
	head->rules[0] = (struct wire_rule){ .name = "example.org", .port = 443 };
}

static int make_memory(size_t size, int seals)
{
	int fd = memfd_create("rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(write(fd, wanted, size) == (ssize_t)size && fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

/* "" or why not. */
static const char *map(size_t size, int seals)
{
	static struct err e;
	own_fd int fd = make_memory(size, seals);
	const struct wire_rules *rules;

	e = (struct err){ 0 };
	rules = gate_map_rules(fd, &e);
	if (rules)
		munmap((void *)(uintptr_t)rules, size);
	CHECK(!rules == !!e.text[0]);
	return e.text;
}

static void test_rules(void)
{
	size_t one = sizeof(struct wire_rules) + sizeof(struct wire_rule);
	static const char unsealed[] =
		"cannot use the rules of the network: they are not in sealed memory";
	static const char broken[] = "cannot use the rules of the network: they are incomplete";

	make_wanted();
	CHECK_STR(map(one, SEALS), "");
	CHECK_STR(map(one, 0), unsealed);
	CHECK_STR(map(one, F_SEAL_SHRINK | F_SEAL_GROW), unsealed);
	CHECK_STR(map(one, F_SEAL_WRITE | F_SEAL_GROW), unsealed);
	CHECK_STR(map(0, SEALS), unsealed);
	CHECK_STR(map(sizeof(struct wire_rules) - 1, SEALS), broken);
	CHECK_STR(map(one - 1, SEALS), broken);
	head->rule_count = 2;
	CHECK_STR(map(one, SEALS), broken);
	head->rule_count = WIRE_MAX_RULES + 1;
	CHECK_STR(map(one, SEALS), broken);
	make_wanted();
	head->publish_count = WIRE_MAX_PUBLISH + 1;
	CHECK_STR(map(one, SEALS), broken);
	make_wanted();
	memset(head->rules[0].name, 'x', WIRE_NAME_SIZE);
	CHECK_STR(map(one, SEALS), broken);
	make_wanted();
	head->rules[0].prefix = 129;
	CHECK_STR(map(one, SEALS), broken);
	make_wanted();
	head->rules[0].protocol = WIRE_UDP;
	CHECK_STR(map(one, SEALS), broken);
	make_wanted();
	head->publish_count = 1;
	memset(head->publish[0].address, '1', sizeof(head->publish[0].address));
	CHECK_STR(map(one, SEALS), broken);
}

/* --- confined --- */

static const char *const readable[] = { "/etc/passwd", "/no/such/file", NULL };
static const uint16_t ports[] = { 4443 };
static int channel[2];

/* The errno of a connection to a port where nobody listens; a TCP port that is not allowed is
 * EACCES. */
static int connect_to(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	own_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 ? errno : 0;
}

static int open_errno(const char *path)
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? errno : 0;
}

struct seen {
	int result, readable, other, good_port, bad_port, files;
	char text[ERR_TEXT_SIZE];
};

enum deed {
	LOOK,
	CALL,
	WAIT
};

static struct seen be_confined(enum deed deed)
{
	struct err e = { 0 };
	struct seen seen = { 0 };
	const struct gate_wall wall = { .filter = &filter_dialer,
		.is_root = geteuid() == 0,
		.readable = readable,
		.ports = ports,
		.port_count = 1,
		.max_files = 20,
		.channel = channel[1] };

	seen.result = gate_confine(&wall, head, &e);
	memcpy(seen.text, e.text, sizeof(seen.text));
	if (seen.result < 0)
		return seen;
	if (deed == CALL)
		syscall(SYS_getpid);
	seen.readable = open_errno("/etc/passwd");
	seen.other = open_errno("/etc/group");
	seen.good_port = connect_to(4443);
	seen.bad_port = connect_to(4444);
	while (seen.files < 100 && socket(AF_INET, SOCK_STREAM, 0) >= 0)
		seen.files++;
	return seen;
}

/* A child; `way` tells what it saw, unless it is killed. */
static pid_t start(int way, enum deed deed)
{
	pid_t pid = fork();
	struct seen seen;

	if (pid)
		return pid;
	seen = be_confined(deed);
	if (write(way, &seen, sizeof(seen)) < 0)
		_exit(1);
	while (deed == WAIT && read(channel[1], &seen, 1) > 0)
		;
	_exit(0);
}

/* Its exit status, or the signal that killed it below zero. */
static int run(enum deed deed, struct seen *ret)
{
	int pipes[2], status = 0;
	pid_t pid;

	memset(ret, 0, sizeof(*ret));
	CHECK(pipe2(pipes, O_CLOEXEC) == 0);
	pid = start(pipes[1], deed);
	close(pipes[1]);
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status))
		CHECK(read(pipes[0], ret, sizeof(*ret)) == sizeof(*ret));
	close(pipes[0]);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_landlock(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
	struct seen seen;

	make_wanted();
	/* The pair: without Landlock the files are there. */
	CHECK(run(LOOK, &seen) == 0);
	CHECK_STR(seen.text, "");
	CHECK(seen.readable == 0 && seen.other == 0 && seen.bad_port == ECONNREFUSED);
	CHECK(seen.files > 0 && seen.files < 20);
	head->is_landlocked = true;
	CHECK(run(LOOK, &seen) == 0);
	if (abi < 1) {
		CHECK(seen.result == -ENOSYS);
		return;
	}
	CHECK_STR(seen.text, "");
	CHECK(seen.readable == 0 && seen.other == EACCES && seen.good_port == ECONNREFUSED);
	CHECK(seen.bad_port == (abi >= 4 ? EACCES : ECONNREFUSED));
}

static void test_filter(void)
{
	struct seen seen;

	make_wanted();
	CHECK(run(CALL, &seen) == -SIGSYS);
}

static bool has_line(const char *text, const char *line)
{
	return strstr(text, line) != NULL;
}

static void test_status(void)
{
	char path[64], text[8192];
	struct seen seen;
	int pipes[2];
	pid_t pid;

	make_wanted();
	CHECK(pipe2(pipes, O_CLOEXEC) == 0);
	pid = start(pipes[1], WAIT);
	CHECK(read(pipes[0], &seen, sizeof(seen)) == sizeof(seen) && seen.result == 0);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	CHECK(file_read_small(path, text, sizeof(text)) > 0);
	CHECK(has_line(text, "\nSeccomp:\t2\n") && has_line(text, "\nNoNewPrivs:\t1\n"));
	CHECK(has_line(text, "\nCapEff:\t0000000000000000\n"));
	CHECK(has_line(text, "\nCapPrm:\t0000000000000000\n"));
	CHECK(has_line(text, "\nCapInh:\t0000000000000000\n"));
	CHECK(has_line(text, "\nCapAmb:\t0000000000000000\n"));
	if (geteuid() == 0) {
		CHECK(has_line(text, "\nUid:\t65534\t65534\t65534\t65534\n"));
		CHECK(has_line(text, "\nGid:\t65534\t65534\t65534\t65534\n"));
		CHECK(has_line(text, "\nGroups:\t \n"));
		CHECK(has_line(text, "\nCapBnd:\t0000000000000000\n"));
	} else {
		CHECK(!has_line(text, "\nUid:\t0\t"));
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
}

/* A user's gate: whether others of that user may look into it shows in who owns its files in /proc.
 */
static void be_users_gate(int way)
{
	char byte = 0;

	/* Root loses what makes a process dumpable together with its id. */
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
				      setresuid(NOBODY, NOBODY, NOBODY) < 0))
		_exit(1);
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 || write(way, "u", 1) != 1 ||
		read(channel[1], &byte, 1) != 1)
		_exit(1);
	byte = be_confined(WAIT).result == 0 ? 'c' : 'f';
	if (write(way, &byte, 1) != 1)
		_exit(1);
	(void)!read(channel[1], &byte, 1);
	_exit(0);
}

static void test_not_dumpable(void)
{
	struct stat before = { 0 }, after = { 0 };
	char path[32], byte = 0;
	int pipes[2];
	pid_t pid;

	make_wanted();
	CHECK(pipe2(pipes, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0)
		be_users_gate(pipes[1]);
	close(pipes[1]);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	CHECK(read(pipes[0], &byte, 1) == 1 && byte == 'u' && stat(path, &before) == 0);
	CHECK(write(channel[0], "", 1) == 1);
	CHECK(read(pipes[0], &byte, 1) == 1 && byte == 'c' && stat(path, &after) == 0);
	CHECK(before.st_uid == (geteuid() == 0 ? NOBODY : geteuid()));
	CHECK(after.st_uid != before.st_uid && after.st_gid != before.st_gid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pipes[0]);
}

/* Root becomes somebody, or there is no gate; and nobody stays without a parent. */
static void test_refusals(void)
{
	struct seen seen;

	make_wanted();
	head->uid = 0;
	CHECK(run(LOOK, &seen) == 0);
	if (geteuid() == 0)
		CHECK_STR(seen.text, "cannot become a user without rights: Invalid argument");
	make_wanted();
	close(channel[0]);
	CHECK(run(LOOK, &seen) == 0);
	CHECK_STR(seen.text,
		"cannot hold on to the process that started this one: Connection reset by peer");
}

/* A sanitizer's runtime makes calls of its own, which no filter here knows. */
static bool is_sanitized(void)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
	return true;
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
	return true;
#endif
	return false;
}

int main(void)
{
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) == 0);
	test_rules();
	if (is_sanitized())
		return check_report();
	test_landlock();
	test_filter();
	test_status();
	test_not_dumpable();
	test_refusals();
	return check_report();
}
