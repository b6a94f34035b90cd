/*
 * inject - runs a program, and makes one system call of one of its processes fail, or be the last,
 *          or wait while the host changes something.
 *
 *     inject [OPTION...] -- PROGRAM [ARGUMENT...]
 *       --process LABEL     of this process: "k" is the program itself, "k.2" its second child
 *       --call N            at its N-th system call, counted from 1 after it was started;
 *       --number NR         with this, at the N-th of its calls with this number
 *       --error ERRNO       the call is not made and answers this,
 *       --times N           also the next ones with this number, N in all; 0: for ever
 *       --kill              or the process is killed instead of making the call,
 *       --victim LABEL      or this one is, and has ended before the call is made; with --call 0,
 *                           as soon as the process is born
 *       --meanwhile COMMAND or the process stops before the call, a shell runs this to its end, and
 *                           then the call is made; its status is "meanwhile" in the report
 *       --seconds N         the program and all it started end within this time (10)
 *       --log               the report has every call
 *       --report FD         where the report goes: one line of JSON
 *
 * strace does the same to all processes at once; here one is meant, because a keeper and its cage
 * make the same calls. Needs no rights but over its own children, and follows them into namespaces.
 * Everything the program started is waited for, orphans too; what does not end is reported and
 * killed.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject.h"

#define TRACE_OPTIONS                                                                              \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |  \
		PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

/* --- the processes --- */

static struct process *find(pid_t pid)
{
	for (int i = it.count - 1; i >= 0; i--)
		if (it.processes[i].pid == pid && !it.processes[i].is_ended)
			return &it.processes[i];
	return NULL;
}

static struct process *add(pid_t pid)
{
	struct process *p = &it.processes[it.count];

	if (it.count == PROCESS_MAX)
		errx(2, "more than %d processes", PROCESS_MAX);
	it.count++;
	*p = (struct process){ .pid = pid };
	if (it.has_log)
		p->log = calloc(CALLS_MAX, sizeof(*p->log));
	return p;
}

/* A child's first stop and its parent's word of it come in any order. */
static struct process *introduce(pid_t pid, struct process *parent)
{
	struct process *p = find(pid);

	if (!p)
		p = add(pid);
	snprintf(p->label, sizeof(p->label), "%.32s.%d", parent->label, ++parent->children);
	p->is_known = true;
	return p;
}

static void read_name(struct process *p)
{
	char path[48];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", p->pid);
	f = fopen(path, "re");
	if (f && fgets(p->name, sizeof(p->name), f))
		p->name[strcspn(p->name, "\n\"\\")] = '\0';
	if (f)
		fclose(f);
}

/* The calls of the others are theirs; to stop at each would take most of the time. */
static bool has_our_eye(const struct process *p)
{
	return it.has_log || (it.label && strcmp(p->label, it.label) == 0) ||
	       strcmp(p->name, "witness") == 0;
}

static void go_on(struct process *p, int sig)
{
	long how = has_our_eye(p) ? PTRACE_SYSCALL : PTRACE_CONT;

	if (trace(how, p, 0, (void *)(intptr_t)sig) < 0 && errno != ESRCH)
		err(2, "cannot let %s go on", p->label);
}

/* --- all calls --- */

static void at_event(struct process *p, int event, int sig)
{
	unsigned long message = 0;

	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) {
		trace(PTRACE_LISTEN, p, 0, NULL);
		return;
	}
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
		event == PTRACE_EVENT_CLONE) {
		struct process *child;

		trace(PTRACE_GETEVENTMSG, p, 0, &message);
		child = introduce((pid_t)message, p);
		at_birth(child);
		if (child->is_held) {
			child->is_held = false;
			go_on(child, 0);
		}
	}
	if (event == PTRACE_EVENT_EXEC)
		read_name(p);
	/* What we did ourselves before the program was there does not count. */
	if (event == PTRACE_EVENT_EXEC && !it.has_begun) {
		it.has_begun = true;
		p->calls = 0;
		memset(p->by_number, 0, sizeof(p->by_number));
	}
	go_on(p, 0);
}

static void at_stop(struct process *p, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (!p->is_known) {
		p->is_held = true;
		return;
	}
	if (p->name[0] == '\0')
		read_name(p);
	if (sig == (SIGTRAP | 0x80)) {
		at_call(p);
		go_on(p, 0);
	} else if (event) {
		at_event(p, event, sig);
	} else {
		go_on(p, sig);
	}
}

/* Its parent was killed before it could speak of it. */
static void adopt_orphans(void)
{
	for (int i = 0; i < it.count; i++) {
		struct process *p = &it.processes[i];
		char path[48], line[256];
		int parent = 0;
		FILE *f;

		if (p->is_known || p->is_ended || !p->is_held)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/status", p->pid);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			sscanf(line, "PPid: %d", &parent);
		if (f)
			fclose(f);
		if (parent != getpid())
			continue;
		snprintf(p->label, sizeof(p->label), "?");
		p->is_known = true;
		p->is_held = false;
		go_on(p, 0);
	}
}

static void on_alarm(int sig)
{
	(void)sig;
	it.is_late = true;
}

static void kill_all(void)
{
	for (int i = 0; i < it.count; i++)
		if (!it.processes[i].is_ended)
			kill(it.processes[i].pid, SIGKILL);
}

static void print_process(FILE *f, const struct process *p)
{
	fprintf(f, "{\"label\":\"%s\",\"name\":\"%s\",\"calls\":%u", p->label, p->name, p->calls);
	if (p->log) {
		fputs(",\"log\":[", f);
		for (unsigned i = 0; i < p->calls && i < CALLS_MAX; i++)
			fprintf(f, "%s%d", i ? "," : "", p->log[i]);
		fputs("]", f);
	}
	fputs("}", f);
}

static void print_report(double began, double late, int status)
{
	FILE *f = fdopen(it.report, "w");
	const char *comma = "";

	if (!f)
		err(2, "cannot report");
	fprintf(f, "{\"status\":%d,\"signal\":%d,\"hits\":%u,\"number\":%d,\"ms\":%.1f",
		WIFEXITED(status) ? WEXITSTATUS(status) : -1,
		WIFSIGNALED(status) ? WTERMSIG(status) : 0, it.hits, it.hit_number, now() - began);
	fprintf(f, ",\"after_ms\":%.1f,\"started\":%s,\"started_before\":%s,\"done\":%s", late,
		it.is_started ? "true" : "false", it.was_started_before ? "true" : "false",
		it.is_done ? "true" : "false");
	fprintf(f, ",\"meanwhile\":%d", it.meanwhile_status);
	fprintf(f, ",\"held\":%lld,\"missing\":%lld,\"late\":%s,\"left\":[", (long long)it.held,
		(long long)it.missing, it.is_late ? "true" : "false");
	for (int i = 0; i < it.count; i++) {
		if (it.processes[i].status != -1)
			continue;
		fputs(comma, f);
		print_process(f, &it.processes[i]);
		comma = ",";
	}
	fputs("],\"processes\":[", f);
	for (int i = 0; it.has_log && i < it.count; i++) {
		fputs(i ? "," : "", f);
		print_process(f, &it.processes[i]);
	}
	fputs("]}\n", f);
	fclose(f);
}

/* Until nothing is left. */
static void watch(void)
{
	double began = now();
	int status;

	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL);
		struct process *p = pid > 0 ? find(pid) : NULL;

		if (pid < 0 && errno == ECHILD)
			break;
		if (pid < 0 && errno == EINTR && it.is_late) {
			for (int i = 0; i < it.count; i++)
				if (!it.processes[i].is_ended)
					it.processes[i].status = -1;
			kill_all();
		}
		if (pid < 0)
			continue;
		if (!p)
			p = add(pid); /* not introduced yet */
		if (WIFSTOPPED(status)) {
			at_stop(p, status);
			continue;
		}
		bury(p, status);
		adopt_orphans();
	}
	print_report(began, now() - it.ended, it.result);
}

static struct process *start(char **command)
{
	struct process *p;
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe(ready) < 0)
		err(2, "pipe");
	pid = fork();
	if (pid < 0)
		err(2, "fork");
	if (pid == 0) {
		close(ready[1]);
		if (it.report > 2)
			close(it.report);
		if (read(ready[0], &byte, 1) != 1)
			_exit(2);
		close(ready[0]);
		execv(command[0], command);
		err(2, "%s", command[0]);
	}
	close(ready[0]);
	p = add(pid);
	if (trace(PTRACE_SEIZE, p, 0, (void *)(uintptr_t)TRACE_OPTIONS) < 0)
		err(2, "cannot trace");
	if (write(ready[1], "x", 1) != 1)
		err(2, "write");
	close(ready[1]);
	return p;
}

static char **read_options(int argc, char **argv)
{
	static const struct option options[] = { { "process", 1, NULL, 'p' },
		{ "call", 1, NULL, 'c' }, { "number", 1, NULL, 'n' }, { "error", 1, NULL, 'e' },
		{ "times", 1, NULL, 't' }, { "kill", 0, NULL, 'k' }, { "seconds", 1, NULL, 's' },
		{ "log", 0, NULL, 'l' }, { "victim", 1, NULL, 'v' }, { "report", 1, NULL, 'r' },
		{ "meanwhile", 1, NULL, 'm' }, { NULL, 0, NULL, 0 } };
	int o;

	while ((o = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (o == 'p')
			it.label = optarg;
		else if (o == 'c')
			it.call = (unsigned)atoi(optarg);
		else if (o == 'n')
			it.number = atoi(optarg);
		else if (o == 'e')
			it.error = atoi(optarg);
		else if (o == 't')
			it.times = (unsigned)atoi(optarg);
		else if (o == 'k')
			it.is_kill = true;
		else if (o == 's')
			it.seconds = atoi(optarg);
		else if (o == 'v')
			it.victim = optarg;
		else if (o == 'm')
			it.meanwhile = optarg;
		else if (o == 'l')
			it.has_log = true;
		else if (o == 'r')
			it.report = atoi(optarg);
		else
			exit(2);
	}
	if (optind >= argc)
		errx(2, "which program?");
	return argv + optind;
}

int main(int argc, char **argv)
{
	struct sigaction on = { .sa_handler = on_alarm };
	char **command = read_options(argc, argv);
	/* Again and again: the one alarm might come just before the call it is to end. */
	struct itimerval time = { .it_value = { .tv_sec = it.seconds },
		.it_interval = { .tv_sec = 1 } };
	struct process *p;

	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	sigaction(SIGALRM, &on, NULL);
	p = start(command);
	p->is_known = true;
	snprintf(p->label, sizeof(p->label), "k");
	setitimer(ITIMER_REAL, &time, NULL);
	watch();
	return 0;
}
