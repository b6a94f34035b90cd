/*
 * ledger - counts what a command does in ways that do not depend on how busy the machine is.
 *
 *     ledger [--user ID] [--steps first|others] COMMAND...
 *
 * Runs as:  whoever calls it; --user needs root.
 * Prints:   one JSON object a line: a program image of a process.
 *
 * Every process is traced from its first instruction. Without --steps each system call stops it
 * twice and is counted. With --steps each instruction in user mode does, of the first process or
 * of all others: a step takes up to 20 us in a virtual machine, so that one run with all of them
 * would outlast the limits of what is counted. valgrind cannot follow into a cage. An instruction
 * with a `rep` prefix counts once for each round. The command's output goes to /dev/null.
 *
 * A grace period is one of the calls that wait for the kernel's RCU: umount2, and the close of a
 * mount tree that was never attached.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"

#define MAX_IMAGES 256
#define MAX_TRACED 128
#define MAX_FDS    256
#define TRACE_FLAGS                                                                                \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |  \
		PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)

/* A process from its birth or exec to its next exec or its end. */
struct image {
	int process; /* in the order of birth, from 1 */
	char name[32];
	uint64_t calls, instructions, faults, made, deleted, bytes, grace_periods, peak_kb;
};

struct traced {
	pid_t pid;
	int process;
	struct image *image;
	uint64_t faults_before;
	bool is_in_call;
	struct __ptrace_syscall_info entry;
	bool is_new;               /* the file that the call names is not there yet */
	bool is_detached[MAX_FDS]; /* a mount tree that nobody attached */
};

static struct image images[MAX_IMAGES];
static struct traced traced[MAX_TRACED];
static int image_count, process_count;
static enum {
	NO_STEPS,
	STEPS_OF_FIRST,
	STEPS_OF_OTHERS
} steps;

/* Does this run count the instructions of the process? */
static bool is_stepped(const struct traced *t)
{
	return steps == STEPS_OF_FIRST ? t->process == 1
				       : steps == STEPS_OF_OTHERS && t->process > 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "ledger: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- processes and their images --- */

static struct traced *find_traced(pid_t pid)
{
	for (size_t i = 0; i < COUNT_OF(traced); i++)
		if (traced[i].pid == pid)
			return &traced[i];
	return NULL;
}

static void read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
}

static uint64_t read_faults(pid_t pid)
{
	char text[1024];
	const char *end;
	uint64_t minor = 0, major = 0;

	read_proc(pid, "stat", text, sizeof(text));
	end = strrchr(text, ')');
	if (end)
		sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64, &minor,
			&major);
	return minor + major;
}

static uint64_t read_peak_kb(pid_t pid)
{
	char text[4096];
	const char *line;
	uint64_t kb = 0;

	read_proc(pid, "status", text, sizeof(text));
	line = strstr(text, "VmHWM:");
	if (line)
		sscanf(line, "VmHWM: %" SCNu64, &kb);
	return kb;
}

static void begin_image(struct traced *t)
{
	if (image_count == MAX_IMAGES) {
		errno = E2BIG;
		fail("too many programs");
	}
	t->image = &images[image_count++];
	t->image->process = t->process;
	t->faults_before = read_faults(t->pid);
	read_proc(t->pid, "comm", t->image->name, sizeof(t->image->name));
	t->image->name[strcspn(t->image->name, "\n\"\\")] = 0;
}

static void end_image(struct traced *t)
{
	t->image->faults = read_faults(t->pid) - t->faults_before;
	t->image->peak_kb = read_peak_kb(t->pid);
}

static struct traced *add_traced(pid_t pid)
{
	struct traced *t = find_traced(0);

	if (!t) {
		errno = E2BIG;
		fail("too many processes");
	}
	*t = (struct traced){ .pid = pid, .process = ++process_count };
	begin_image(t);
	return t;
}

/* --- what a call did --- */

/* The text at an address of the process; empty: it cannot be read. */
static void read_text(pid_t pid, uint64_t at, char *text, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = pread(fd, text, size - 1, (off_t)at);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
}

/* Is there no file yet where an openat with O_CREAT would make one? */
static bool is_missing(pid_t pid, const uint64_t *args)
{
	char name[512], path[640];

	read_text(pid, args[1], name, sizeof(name));
	if (name[0] == '/')
		snprintf(path, sizeof(path), "/proc/%d/root%s", pid, name);
	else if ((int)args[0] == AT_FDCWD)
		snprintf(path, sizeof(path), "/proc/%d/cwd/%s", pid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/fd/%d/%s", pid, (int)args[0], name);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

static bool is_regular(pid_t pid, int fd)
{
	char path[64], target[64] = "";
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	if (readlink(path, target, sizeof(target) - 1) < 0 || stat(path, &st) < 0)
		return false;
	return S_ISREG(st.st_mode) && strncmp(target, "/proc/", 6) != 0 &&
	       strncmp(target, "/memfd:", 7) != 0;
}

static bool *detached_tree(struct traced *t, int64_t fd)
{
	static bool none;

	none = false;
	return fd >= 0 && fd < MAX_FDS ? &t->is_detached[fd] : &none;
}

static void count_entry(struct traced *t)
{
	const uint64_t *args = (const uint64_t *)t->entry.entry.args;

	if (t->entry.entry.nr == SYS_openat && args[2] & O_CREAT)
		t->is_new = is_missing(t->pid, args);
}

static void count_exit(struct traced *t, int64_t result)
{
	const uint64_t *args = (const uint64_t *)t->entry.entry.args;
	struct image *image = t->image;

	if (result < 0)
		return;
	switch (t->entry.entry.nr) {
	case SYS_openat:
		image->made += (args[2] & O_CREAT) && t->is_new ? 1 : 0;
		break;
	case SYS_mkdir:
	case SYS_mkdirat:
	case SYS_mknodat:
	case SYS_symlink:
	case SYS_symlinkat:
	case SYS_link:
	case SYS_linkat:
		image->made++;
		break;
	case SYS_unlink:
	case SYS_rmdir:
	case SYS_unlinkat:
		image->deleted++;
		break;
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_pwritev2:
		image->bytes += is_regular(t->pid, (int)args[0]) ? (uint64_t)result : 0;
		break;
	case SYS_umount2:
		image->grace_periods++;
		break;
	case SYS_fsmount:
		*detached_tree(t, result) = true;
		break;
	case SYS_open_tree:
		*detached_tree(t, result) = args[2] & OPEN_TREE_CLONE;
		break;
	case SYS_move_mount:
		*detached_tree(t, (int)args[0]) = false;
		break;
	case SYS_close:
		image->grace_periods += *detached_tree(t, (int)args[0]) ? 1 : 0;
		*detached_tree(t, (int)args[0]) = false;
		break;
	default:
		break;
	}
}

static void count_call(struct traced *t)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof(info), &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		t->entry = info;
		t->is_in_call = true;
		t->image->calls++;
		count_entry(t);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && t->is_in_call) {
		t->is_in_call = false;
		count_exit(t, info.exit.rval);
	}
}

/* --- the trace --- */

static int go_on(struct traced *t, int signal_number)
{
	return (int)ptrace(is_stepped(t) ? PTRACE_SINGLESTEP
			   : steps       ? PTRACE_CONT
					 : PTRACE_SYSCALL,
		t->pid, NULL, (void *)(intptr_t)signal_number);
}

/* Returns the signal that the process is to get. */
static int note_stop(struct traced *t, int status)
{
	unsigned long new_pid = 0;
	int stop = WSTOPSIG(status);

	switch (status >> 16) {
	case PTRACE_EVENT_EXEC:
		/* Its memory is gone, and with it the peak; the calls are its own. */
		t->image->faults = read_faults(t->pid) - t->faults_before;
		begin_image(t);
		return 0;
	case PTRACE_EVENT_EXIT:
		end_image(t);
		return 0;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &new_pid);
		if (!find_traced((pid_t)new_pid))
			add_traced((pid_t)new_pid);
		return 0;
	default:
		break;
	}
	if (stop == (SIGTRAP | 0x80)) {
		count_call(t);
		return 0;
	}
	if (stop == SIGTRAP && is_stepped(t)) {
		t->image->instructions++;
		return 0;
	}
	/* A new process begins with a stop of the tracer's. */
	return stop == SIGSTOP || status >> 16 ? 0 : stop;
}

/* Returns the exit status of the first process. */
static int trace(pid_t first)
{
	int status, result = 1;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		struct traced *t = find_traced(pid);

		if (!WIFSTOPPED(status)) {
			if (pid == first)
				result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
			if (t)
				t->pid = 0;
			continue;
		}
		if (!t)
			t = add_traced(pid);
		if (go_on(t, note_stop(t, status)) < 0 && errno != ESRCH)
			fail("ptrace");
	}
	return result;
}

/* A stop is a switch to this program and back, which is fastest on one processor. */
static void stay_on_one_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fail("sched_setaffinity");
}

static void become(uid_t id)
{
	if (id && (setgroups(1, &id) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0))
		fail("cannot become the user");
}

static pid_t start(uid_t id, char **command)
{
	pid_t pid = fork();
	int null_fd;

	if (pid < 0)
		fail("fork");
	if (pid > 0)
		return pid;
	null_fd = open("/dev/null", O_RDWR);
	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0)
		fail("/dev/null");
	become(id);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
		fail("ptrace");
	execvp(command[0], command);
	fail(command[0]);
	return -1;
}

/* What came before the first exec is this program's own. */
static void report(void)
{
	for (const struct image *i = images + 1; i < images + image_count; i++)
		printf("{\"process\": %d, \"name\": \"%s\", \"calls\": %" PRIu64
		       ", \"instructions\": %" PRIu64 ", \"faults\": %" PRIu64
		       ", \"made\": %" PRIu64 ", \"deleted\": %" PRIu64 ", \"bytes\": %" PRIu64
		       ", \"grace_periods\": %" PRIu64 ", \"peak_kb\": %" PRIu64 "}\n",
			i->process, i->name, i->calls, i->instructions, i->faults, i->made,
			i->deleted, i->bytes, i->grace_periods, i->peak_kb);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "user", required_argument, NULL, 'u' },
		{ "steps", required_argument, NULL, 's' }, { 0 } };
	int option, status, result;
	uid_t id = 0;
	pid_t first;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == 's')
			steps = strcmp(optarg, "first") == 0 ? STEPS_OF_FIRST : STEPS_OF_OTHERS;
		if (option == 'u')
			id = (uid_t)strtoul(optarg, NULL, 10);
		if (option == '?')
			return 2;
	}
	if (optind == argc) {
		fputs("usage: ledger [--user ID] [--steps first|others] COMMAND...\n", stderr);
		return 2;
	}
	stay_on_one_processor();
	first = start(id, argv + optind);
	if (waitpid(first, &status, 0) != first || !WIFSTOPPED(status) ||
		ptrace(PTRACE_SETOPTIONS, first, NULL, TRACE_FLAGS) < 0)
		fail("cannot trace");
	if (go_on(add_traced(first), 0) < 0)
		fail("ptrace");
	result = trace(first);
	report();
	return result;
}
