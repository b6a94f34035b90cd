/*
 * System calls that the agent has no use for, by all three ways into the kernel. The arguments are
 * such that no call does anything: a kernel that lets one through says EFAULT, EBADF or EINVAL.
 * EPERM, EACCES and ENOSYS mean that it was refused, by the filter or by the kernel for lack of a
 * capability.
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BAD     1 /* an address where nothing is */
#define X32_BIT 0x40000000L

struct call {
	const char *name;
	long number, number_i386; /* 0: there is none */
	long args[5];
};

/* By number, so that a kernel newer than the headers is tried as well. */
static const struct call calls[] = {
	{ "acct", 163, 51, { BAD } },
	{ "add_key", 248, 286, { BAD, BAD, BAD, 0, 0 } },
	{ "bpf", 321, 357, { 9999, BAD, 8 } },
	{ "chroot", 161, 61, { BAD } },
	{ "clock_settime", 227, 264, { 9999, BAD } },
	{ "clock_adjtime", 305, 343, { 9999, BAD } },
	{ "delete_module", 176, 129, { BAD, 0 } },
	{ "fanotify_init", 300, 338, { -1, 0 } },
	{ "file_getattr", 468, 468, { -1, BAD, BAD, 0, 0 } },
	{ "file_setattr", 469, 469, { -1, BAD, BAD, 0, 0 } },
	{ "finit_module", 313, 350, { -1, BAD, 0 } },
	{ "fsconfig", 431, 431, { -1, 9999, 0, 0, 0 } },
	{ "fsmount", 432, 432, { -1, -1, 0 } },
	{ "fsopen", 430, 430, { BAD, 0 } },
	{ "fspick", 433, 433, { -1, BAD, -1 } },
	{ "init_module", 175, 128, { BAD, 0, BAD } },
	{ "io_uring_enter", 426, 426, { -1, 0, 0, 0, 0 } },
	{ "io_uring_register", 427, 427, { -1, 9999, 0, 0 } },
	{ "io_uring_setup", 425, 425, { 0, BAD } },
	{ "ioperm", 173, 101, { -1, -1, 0 } },
	{ "iopl", 172, 110, { 99 } },
	{ "kcmp", 312, 349, { -1, -1, 0, 0, 0 } },
	{ "kexec_file_load", 320, 0, { -1, -1, 0, 0, -1 } },
	{ "kexec_load", 246, 283, { 0, 99, BAD, 0 } },
	{ "keyctl", 250, 288, { 9999 } },
	{ "listmount", 458, 458, { BAD, BAD, 0, 0 } },
	{ "lookup_dcookie", 212, 253, { 0, BAD, 0 } },
	{ "memfd_secret", 447, 447, { -1 } },
	{ "migrate_pages", 256, 294, { -1, 0, 0, 0 } },
	{ "modify_ldt", 154, 123, { 0, 0, 0 } },
	{ "mount", 165, 21, { BAD, BAD, BAD, 0, 0 } },
	{ "mount_setattr", 442, 442, { -1, BAD, -1, BAD, 0 } },
	{ "move_mount", 429, 429, { -1, BAD, -1, BAD, -1 } },
	{ "move_pages", 279, 317, { -1, 0, 0, 0, 0 } },
	{ "name_to_handle_at", 303, 341, { -1, BAD, BAD, BAD, -1 } },
	{ "nfsservctl", 180, 169, { 0, 0, 0 } },
	{ "open_by_handle_at", 304, 342, { -1, BAD, 0 } },
	{ "open_tree", 428, 428, { -1, BAD, -1 } },
	{ "open_tree_attr", 467, 467, { -1, BAD, -1, BAD, 0 } },
	{ "perf_event_open", 298, 336, { BAD, 0, -1, -1, 0 } },
	{ "personality", 135, 136, { 0x0400000 } },
	{ "pidfd_getfd", 438, 438, { -1, 0, 0 } },
	{ "pivot_root", 155, 217, { BAD, BAD } },
	{ "process_madvise", 440, 440, { -1, BAD, 1, 0, -1 } },
	{ "process_mrelease", 448, 448, { -1, -1 } },
	{ "process_vm_readv", 310, 347, { 0, BAD, 1, BAD, 1 } },
	{ "process_vm_writev", 311, 348, { 0, BAD, 1, BAD, 1 } },
	{ "ptrace", 101, 26, { 9999, 0, 0, 0 } },
	{ "quotactl", 179, 131, { 9999, BAD, 0, BAD } },
	{ "quotactl_fd", 443, 443, { -1, 9999, 0, 0 } },
	{ "reboot", 169, 88, { 0, 0, 0, 0 } },
	{ "request_key", 249, 287, { BAD, BAD, BAD, 0 } },
	{ "setdomainname", 171, 121, { BAD, -1 } },
	{ "sethostname", 170, 74, { BAD, -1 } },
	{ "setns", 308, 346, { -1, 0 } },
	{ "settimeofday", 164, 79, { BAD, 0 } },
	{ "statmount", 457, 457, { BAD, BAD, 8, 0 } },
	{ "swapoff", 168, 115, { BAD } },
	{ "swapon", 167, 87, { BAD, 0 } },
	{ "syslog", 103, 103, { 99, BAD, -1 } },
	{ "umount2", 166, 52, { BAD, 0x10000000 } },
	{ "unshare", 272, 310, { 0x10000000 } },
	{ "uselib", 134, 86, { BAD } },
	{ "userfaultfd", 323, 374, { 0x40000001 } },
};

/* --- three ways in --- */

static long call_native(const struct call *c)
{
	return syscall(c->number, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], 0);
}

static long call_x32(const struct call *c)
{
	return syscall(
		c->number | X32_BIT, c->args[0], c->args[1], c->args[2], c->args[3], c->args[4], 0);
}

static long call_i386(const struct call *c)
{
#ifdef __x86_64__
	long result = c->number_i386;

	__asm__ volatile("int $0x80"
			 : "+a"(result)
			 : "b"(c->args[0]), "c"(c->args[1]), "d"(c->args[2]), "S"(c->args[3]),
			 "D"(c->args[4])
			 : "memory", "r8", "r9", "r10", "r11");
	if ((int)result >= 0 || (int)result < -4095)
		return (int)result;
	errno = -(int)result;
#else
	(void)c;
	errno = ENOSYS;
#endif
	return -1;
}

static bool is_refused(long result)
{
	return result == -1 && (errno == EPERM || errno == EACCES || errno == ENOSYS);
}

/* --- trying many: one line for each, and a sentence for all --- */

struct tally {
	int tried, through;
	char names[TEXT_MAX];
};

/* Each in a child, because some filters kill. Returns whether it got through. */
static bool try_one(struct tally *t, const char *name, long (*run)(const void *), const void *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		long result = run(arg);
		bool is_through = !is_refused(result);

		printf("call: %s %s %s\n", name, is_through ? "through" : "refused",
			result == -1 ? error_name(errno) : "0");
		fflush(stdout);
		_exit(is_through ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status))
		printf("call: %s refused SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
	fflush(stdout);
	t->tried++;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return false;
	t->through++;
	snprintf(t->names + strlen(t->names), sizeof(t->names) - strlen(t->names), " %s", name);
	return true;
}

static int report(const struct tally *t)
{
	return t->through ? worked("%d of %d:%s", t->through, t->tried, t->names)
			  : refused("all %d", t->tried);
}

static long run_native(const void *call)
{
	return call_native(call);
}

static long run_x32(const void *call)
{
	return call_x32(call);
}

static long run_i386(const void *call)
{
	return call_i386(call);
}

static int attack_calls(char **args)
{
	bool is_i386 = strcmp(args[0], "i386") == 0, is_x32 = strcmp(args[0], "x32") == 0;
	struct tally tally = { 0 };

#ifndef __x86_64__
	if (is_i386 || is_x32)
		return untried("this processor has one way into the kernel");
#endif
	for (size_t i = 0; i < ELEMENTS(calls); i++)
		if ((!is_i386 || calls[i].number_i386) &&
			(!args[1] || !strcmp(args[1], calls[i].name)))
			try_one(&tally, calls[i].name,
				is_i386  ? run_i386
				: is_x32 ? run_x32
					 : run_native,
				&calls[i]);
	return report(&tally);
}

/* A number that no kernel knows yet: whatever it will do must not be allowed today. */
static int attack_unknown(char **args)
{
	(void)args;
	for (long number = 500; number < 1100; number++)
		if (syscall(number, 0, 0, 0, 0, 0, 0) != -1 || errno != ENOSYS)
			return worked("call %ld: %s", number, error_name(errno));
	return refused("ENOSYS, all of them");
}

/* --- namespaces --- */

struct space {
	const char *name;
	unsigned flag;
};
static const struct space spaces[] = { { "user", CLONE_NEWUSER }, { "mount", CLONE_NEWNS },
	{ "pid", CLONE_NEWPID }, { "net", CLONE_NEWNET }, { "ipc", CLONE_NEWIPC },
	{ "uts", CLONE_NEWUTS }, { "cgroup", CLONE_NEWCGROUP }, { "time", 0x80 } };

static long run_unshare(const void *flags)
{
	return unshare(*(const int *)flags);
}

static long wait_for(long pid)
{
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, __WALL);
	return pid;
}

static long run_clone(const void *flags)
{
	return wait_for(syscall(SYS_clone, *(const int *)flags | SIGCHLD, 0, 0, 0, 0));
}

static long run_clone3(const void *flags)
{
	struct clone_args args = { .flags = *(const unsigned *)flags, .exit_signal = SIGCHLD };

	return wait_for(syscall(SYS_clone3, &args, sizeof(args)));
}

/* setns wants a descriptor: that of our own namespace does, since the right is asked first. */
static long run_setns(const void *flags)
{
	char path[64] = "/proc/self/ns/";

	for (size_t i = 0; i < ELEMENTS(spaces); i++)
		if (spaces[i].flag == *(const unsigned *)flags)
			strcat(path, i == 1 ? "mnt" : spaces[i].name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : syscall(SYS_setns, fd, *(const int *)flags);
}

static void try_space(struct tally *t, const struct space *s, unsigned more, const char *suffix)
{
	static const struct {
		const char *name;
		long (*run)(const void *);
	} ways[] = { { "unshare", run_unshare }, { "clone", run_clone }, { "clone3", run_clone3 },
		{ "setns", run_setns } };
	unsigned flags = s->flag | more;

	for (size_t i = 0; i < ELEMENTS(ways); i++) {
		char name[64];

		/* A time namespace is for children of unshare only; setns takes one at a time. */
		if ((s->flag == 0x80 && i == 1) || (more && i == 3))
			continue;
		snprintf(name, sizeof(name), "%s:%s%s", ways[i].name, suffix, s->name);
		try_one(t, name, ways[i].run, &flags);
	}
}

static int attack_namespaces(char **args)
{
	struct tally tally = { 0 };

	(void)args;
	for (size_t i = 0; i < ELEMENTS(spaces); i++) {
		try_space(&tally, &spaces[i], 0, "");
		if (i)
			try_space(&tally, &spaces[i], CLONE_NEWUSER, "user+");
	}
	return report(&tally);
}

/* --- commands for terminals, also with bits that the kernel drops --- */

struct command {
	const char *name;
	unsigned long code;
};

/* On a pipe, which has none of them: ENOTTY is what the kernel says, so the filter did not. */
static long run_ioctl(const void *command)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	return syscall(SYS_ioctl, ends[0], ((const struct command *)command)->code, 0);
}

static int attack_ioctls(char **args)
{
	static const struct command commands[] = {
		{ "TIOCSTI", TIOCSTI },
		{ "TIOCSTI|1<<32", TIOCSTI | 1UL << 32 },
		{ "TIOCSTI|1<<63", TIOCSTI | 1UL << 63 },
		{ "TIOCLINUX", TIOCLINUX },
		{ "TIOCLINUX|1<<32", TIOCLINUX | 1UL << 32 },
		{ "TIOCSETD", TIOCSETD },
		{ "TIOCSETD|1<<32", TIOCSETD | 1UL << 32 },
		{ "TIOCCONS", TIOCCONS },
	};
	struct tally tally = { 0 };

	(void)args;
	for (size_t i = 0; i < ELEMENTS(commands); i++)
		try_one(&tally, commands[i].name, run_ioctl, &commands[i]);
	return report(&tally);
}

const struct attack attacks_calls[] = {
	{ "calls", "native|i386|x32 [NAME]", attack_calls, "system calls outside the profile" },
	{ "unknown", "", attack_unknown, "numbers of the future" },
	{ "namespaces", "", attack_namespaces, "unshare, clone, clone3, setns of each" },
	{ "ioctls", "", attack_ioctls, "TIOCSTI and its kin" },
	{ 0 },
};
