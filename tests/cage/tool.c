/*
 * tool - small things that cases do in a cage and that no shell does; static, for images without
 * anything else in them.
 *
 *     tool WHAT [ARGUMENT]
 *
 * Prints what it found, and returns 0 when it could do what was asked.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"

static int fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	return 1;
}

/* Which of 0, 1 and 2 are terminals, and whether there is one to open. */
static int say_terminals(const char *unused)
{
	int tty = open("/dev/tty", O_RDWR);

	(void)unused;
	printf("%d%d%d %s\n", isatty(0), isatty(1), isatty(2), tty < 0 ? "none" : "tty");
	return 0;
}

static int say_descriptors(const char *unused)
{
	(void)unused;
	for (int fd = 0; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d ", fd);
	printf("\n");
	return 0;
}

static int say_interfaces(const char *unused)
{
	struct if_nameindex *all = if_nameindex();

	(void)unused;
	for (struct if_nameindex *i = all; i && i->if_index; i++)
		printf("%s\n", i->if_name);
	return all ? 0 : fail("interfaces");
}

/* A server and a client in one cage. */
static int talk(const char *unused)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(here);
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), end;
	char got[6] = "";

	(void)unused;
	if (bind(server, (struct sockaddr *)&here, size) < 0 || listen(server, 1) < 0 ||
		getsockname(server, (struct sockaddr *)&here, &size) < 0 ||
		connect(client, (struct sockaddr *)&here, size) < 0)
		return fail("loopback");
	end = accept(server, NULL, NULL);
	if (write(client, "hello", 5) != 5 || read(end, got, 5) != 5)
		return fail("loopback");
	printf("%s\n", got);
	return 0;
}

/* Is anything beyond the cage reached, by an address that every network would take? */
static int reach(const char *address)
{
	struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(53) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, address, &there.sin_addr);
	if (connect(fd, (struct sockaddr *)&there, sizeof(there)) < 0)
		return fail("connect");
	printf("reached\n");
	return 0;
}

static int make_devices(const char *folder)
{
	const struct {
		mode_t mode;
		dev_t device;
	} kinds[] = { { S_IFCHR, makedev(1, 3) }, { S_IFBLK, makedev(7, 0) } };

	if (chdir(folder) < 0)
		return fail(folder);
	for (size_t i = 0; i < 2; i++) {
		if (mknod("device", kinds[i].mode | 0666, kinds[i].device) == 0) {
			printf("made a device\n");
			return 0;
		}
		printf("%s\n", errno == EPERM || errno == EACCES ? "refused" : strerror(errno));
	}
	return mkfifo("fifo", 0600) < 0 ? fail("fifo") : 0;
}

/* How many more descriptors, or processes, there can be. */
static int open_many(const char *unused)
{
	int n = 0;

	(void)unused;
	while (dup(0) >= 0)
		n++;
	printf("%d %s\n", n, strerrorname_np(errno));
	return 0;
}

static int fork_many(const char *most)
{
	int n = 0, num = 0;
	pid_t pid = 1;

	while (n < atoi(most) && (pid = fork()) > 0)
		n++;
	num = pid < 0 ? errno : 0;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	printf("%d %s\n", n, num ? strerrorname_np(num) : "all");
	return 0;
}

static int share_memory(const char *unused)
{
	int fd = shm_open("/bawn-test", O_RDWR | O_CREAT | O_EXCL, 0600), status;
	volatile int *n;

	(void)unused;
	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return fail("shm_open");
	n = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (n == MAP_FAILED)
		return fail("mmap");
	if (fork() == 0) {
		*n = 42;
		_exit(0);
	}
	wait(&status);
	printf("%d\n", *n);
	return 0;
}

/* Signals that are blocked or ignored: none, for a command that was just started. */
static int say_signals(const char *unused)
{
	sigset_t blocked;

	(void)unused;
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int n = 1; n < 32; n++) {
		struct sigaction now;

		if (sigismember(&blocked, n))
			printf("%d is blocked\n", n);
		if (sigaction(n, NULL, &now) == 0 && now.sa_handler != SIG_DFL)
			printf("%d is not as it begins\n", n);
	}
	return 0;
}

/* ls and cat, for images that have neither. */
static int list(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	if (!dir)
		return fail(folder);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			printf("%s\n", entry->d_name);
	return 0;
}

static int print_file(const char *path)
{
	char bytes[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fail(path);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		fwrite(bytes, 1, (size_t)n, stdout);
	return n < 0 ? fail(path) : 0;
}

static int write_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	return fd < 0 || write(fd, "written\n", 8) != 8 ? fail(path) : 0;
}

/* And how many groups besides the own, which a login puts into the list. */
static int say_ids(const char *unused)
{
	static gid_t groups[65536];
	int n = getgroups(COUNT_OF(groups), groups), others = 0;

	(void)unused;
	for (int i = 0; i < n; i++)
		others += groups[i] != getgid();
	printf("%u %u %d\n", getuid(), getgid(), n < 0 ? n : others);
	return 0;
}

/* --- calls that a filter refuses --- */

static void say_call(const char *name, long r)
{
	printf("%s %s\n", name, r < 0 ? strerrorname_np(errno) : "0");
}

/* Each kind of answer, by name. */
static int make_refused_calls(const char *unused)
{
	struct rlimit core = { 0 };

	(void)unused;
	say_call("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
	say_call("unshare", unshare(CLONE_NEWNS));
	say_call("keyctl", syscall(SYS_keyctl, 0, 0));
	say_call("bpf", syscall(SYS_bpf, 0, NULL, 0));
	say_call("ioctl", ioctl(0, TIOCSTI, "x"));
	say_call("chmod", chmod("/tmp", 04755));
	say_call("chmod", chmod("/tmp", 02755));
	say_call("clone3", syscall(SYS_clone3, NULL, 0));
	say_call("openat2", syscall(SYS_openat2, 0, NULL, NULL, 0));
	say_call("call", syscall(9999));
	say_call("socket", socket(AF_ALG, SOCK_SEQPACKET, 0));
	say_call("setrlimit", syscall(SYS_setrlimit, RLIMIT_CORE, &core));
	say_call("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				    SECCOMP_FILTER_FLAG_NEW_LISTENER, NULL));
	return 0;
}

/* NUMBER calls by each of two processes; prints in between, and whether one had another answer. */
static int flood(const char *number)
{
	int wrong = 0;

	for (int i = 0; i < 2; i++) {
		if (fork() != 0)
			continue;
		for (long n = atol(number); n > 0; n--)
			wrong += syscall(SYS_personality, 0) != -1 || errno != EPERM;
		_exit(wrong ? 1 : 0);
	}
	printf("begun\n");
	fflush(stdout);
	for (int status; wait(&status) > 0;)
		wrong += status != 0;
	printf("%d wrong\n", wrong);
	return wrong;
}

/* Under a filter of its own that asks a listener which nobody has, and in whose name it may be. */
static int ask_nobody(const char *unused)
{
	struct sock_filter code[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, 0 },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_mount },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
	};
	struct sock_fprog program = { 4, code };

	(void)unused;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return fail("seccomp");
	say_call("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
	say_call("umount2", umount2("/tmp", 0));
	return 0;
}

/* Many names, one call; then another call. */
static int be_many(const char *unused)
{
	char name[16];

	(void)unused;
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "\x1b[%dm", i);
		prctl(PR_SET_NAME, name);
		if (fork() == 0) {
			syscall(SYS_keyctl, 0, 0);
			_exit(0);
		}
		wait(NULL);
	}
	say_call("bpf", syscall(SYS_bpf, 0, NULL, 0));
	return 0;
}

static const struct {
	const char *name;
	int (*does)(const char *argument);
} tools[] = {
	{ "ask-nobody", ask_nobody },
	{ "be-many", be_many },
	{ "cat", print_file },
	{ "devices", make_devices },
	{ "descriptors", say_descriptors },
	{ "files", open_many },
	{ "flood", flood },
	{ "ids", say_ids },
	{ "interfaces", say_interfaces },
	{ "ls", list },
	{ "processes", fork_many },
	{ "reach", reach },
	{ "refused", make_refused_calls },
	{ "shm", share_memory },
	{ "signals", say_signals },
	{ "talk", talk },
	{ "terminals", say_terminals },
	{ "write", write_file },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < COUNT_OF(tools); i++)
		if (strcmp(argv[1], tools[i].name) == 0)
			return tools[i].does(argc > 2 ? argv[2] : "");
	return 2;
}
