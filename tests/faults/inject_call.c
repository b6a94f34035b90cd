/*
 * inject_call - one system call of one process: is it meant, and what becomes of it?
 */
#include <elf.h>
#include <err.h>
#include <errno.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject.h"
#include "witness.h"

struct injection it = { .number = -1,
	.seconds = 10,
	.report = 2,
	.times = 1,
	.hit_number = -1,
	.meanwhile_status = -1 };

long trace(long request, const struct process *p, long addr, void *data)
{
	return syscall(SYS_ptrace, request, (long)p->pid, addr, data);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Instead of its call the process makes one that no filter minds and that changes nothing. */
static void skip_call(struct process *p)
{
#if defined(__x86_64__)
	struct user_regs_struct regs;

	trace(PTRACE_GETREGS, p, 0, &regs);
	regs.orig_rax = SYS_getpid;
	trace(PTRACE_SETREGS, p, 0, &regs);
#elif defined(__aarch64__)
	int number = SYS_getpid;
	struct iovec v = { &number, sizeof(number) };

	trace(PTRACE_SETREGSET, p, NT_ARM_SYSTEM_CALL, &v);
#else
#error "say here how a system call is skipped"
#endif
}

static void set_answer(struct process *p, int error)
{
#if defined(__x86_64__)
	struct user_regs_struct regs;

	trace(PTRACE_GETREGS, p, 0, &regs);
	regs.rax = (unsigned long long)-error;
	trace(PTRACE_SETREGS, p, 0, &regs);
#else
	struct user_regs_struct regs;
	struct iovec v = { &regs, sizeof(regs) };

	trace(PTRACE_GETREGSET, p, NT_PRSTATUS, &v);
	regs.regs[0] = (unsigned long long)-error;
	trace(PTRACE_SETREGSET, p, NT_PRSTATUS, &v);
#endif
}

static void hear_witness(uint64_t word)
{
	int layer = (int)(word >> 8 & 0xff);

	if ((word & WITNESS_MASK) != WITNESS_CALL)
		return;
	if (layer == WITNESS_START)
		it.is_started = true;
	else if (layer == WITNESS_END)
		it.is_done = true;
	else if (layer < WITNESS_LAYERS)
		*(word & 1 ? &it.held : &it.missing) |= (int64_t)1 << layer;
}

static bool is_meant(const struct process *p, int number)
{
	unsigned count = it.number < 0 ? p->calls : p->by_number[number];

	/* The witness looks for itself and must not be lied to. */
	if (strcmp(p->name, "witness") == 0)
		return false;
	if (!it.has_begun || !it.label || it.call == 0 || strcmp(p->label, it.label) != 0)
		return false;
	/* Those after the first are of its number, whichever way it was found. */
	if (it.hits > 0)
		return number == it.hit_number && (it.times == 0 || it.hits < it.times);
	return (it.number < 0 || number == it.number) && count == it.call;
}

void bury(struct process *p, int status)
{
	p->is_ended = true;
	if (p == &it.processes[0]) {
		it.result = status;
		it.ended = now();
	}
}

static void kill_victim(void)
{
	for (int i = 0; i < it.count; i++) {
		struct process *p = &it.processes[i];
		int status = 0;

		if (p->is_ended || strcmp(p->label, it.victim) != 0)
			continue;
		kill(p->pid, SIGKILL);
		while (waitpid(p->pid, &status, __WALL) == p->pid && WIFSTOPPED(status))
			;
		bury(p, status);
	}
}

/*
 * The process stands still in front of its call; the others run on until they need us. The command
 * is not traced, and finds the id of the process in $STOPPED.
 */
static void change_host(const struct process *stopped)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		err(2, "fork");
	if (pid == 0) {
		char id[16];

		snprintf(id, sizeof(id), "%d", stopped->pid);
		setenv("STOPPED", id, 1);
		execl("/bin/sh", "sh", "-c", it.meanwhile, (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		if (it.is_late)
			kill(pid, SIGKILL);
	if (WIFEXITED(status))
		it.meanwhile_status = WEXITSTATUS(status);
}

void at_birth(const struct process *p)
{
	if (!it.victim || it.call != 0 || strcmp(p->label, it.label) != 0)
		return;
	it.hits++;
	kill_victim();
}

static void enter_call(struct process *p, const struct ptrace_syscall_info *info)
{
	int number = (int)info->entry.nr;

	if (number < 0 || number >= NUMBER_MAX)
		return;
	if (p->log && p->calls < CALLS_MAX)
		p->log[p->calls] = (uint16_t)number;
	p->calls++;
	p->by_number[number]++;
	if (number == SYS_close)
		hear_witness(info->entry.args[0]);
	if (!is_meant(p, number))
		return;
	if (it.hits++ == 0) {
		it.hit_number = number;
		it.was_started_before = it.is_started;
	}
	if (it.victim) {
		kill_victim();
		return;
	}
	if (it.meanwhile) {
		change_host(p);
		return;
	}
	if (it.is_kill) {
		kill(p->pid, SIGKILL);
		return;
	}
	/* A close that fails has closed all the same, and one that did not would be no fault. */
	if (number != SYS_close)
		skip_call(p);
	p->is_failing = true;
}

void at_call(struct process *p)
{
	struct ptrace_syscall_info info = { 0 };

	if (trace(PTRACE_GET_SYSCALL_INFO, p, sizeof(info), &info) < 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		enter_call(p, &info);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && p->is_failing) {
		p->is_failing = false;
		set_answer(p, it.error);
	}
}
