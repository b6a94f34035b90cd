/* Other processes: their variables, arguments, memory and programs; signals; what /proc and /sys
 * say. */
#include "probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- what others say of themselves --- */

static int attack_environment(char **args)
{
	for (char **variable = environ; *variable; variable++)
		if (has_canary(*variable, strlen(*variable), args[0]))
			return worked("%.*s", (int)strcspn(*variable, "="), *variable);
	return refused("not among our variables");
}

static const char *file_name;

static bool text_has_canary(const char *path, const char *end)
{
	static char text[256 * 1024];
	ssize_t size = read_text(AT_FDCWD, path, text, sizeof(text));

	return size > 0 && has_canary(text, (size_t)size, end);
}

static bool process_file_has_canary(const char *process, const char *end)
{
	char path[PATH_MAX];
	DIR *tasks;
	bool is_there;

	join(path, process, file_name);
	is_there = text_has_canary(path, end);
	join(path, process, "task");
	tasks = opendir(path);
	for (struct dirent *task; tasks && !is_there && (task = readdir(tasks));) {
		snprintf(path, sizeof(path), "%.32s/task/%.20s/%.32s", process, task->d_name,
			file_name);
		is_there = task->d_name[0] != '.' && text_has_canary(path, end);
	}
	if (tasks)
		closedir(tasks);
	return is_there;
}

static int attack_process_file(char **args)
{
	file_name = args[0];
	return each_process(process_file_has_canary, args[1])
		       ? worked("in a process's %s", args[0])
		       : refused("in no process's %s", args[0]);
}

static bool range_has_canary(int memory, unsigned long from, unsigned long to, const char *end)
{
	static char bytes[64 * 1024 + 256];

	for (unsigned long at = from; at < to; at += 64 * 1024) {
		ssize_t size = pread(memory, bytes, sizeof(bytes), (off_t)at);

		if (size > 0 && has_canary(bytes, (size_t)size, end))
			return true;
	}
	return false;
}

static bool memory_has_canary(const char *process, const char *end)
{
	char path[PATH_MAX], line[TEXT_MAX];
	bool is_there = false;

	join(path, process, "maps");
	FILE *maps = fopen(path, "re");

	join(path, process, "mem");
	int memory = open(path, O_RDONLY | O_CLOEXEC);

	while (maps && memory >= 0 && !is_there && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;

		is_there = sscanf(line, "%lx-%lx r", &from, &to) == 2 && strstr(line, " rw") &&
			   range_has_canary(memory, from, to, end);
	}
	if (maps)
		fclose(maps);
	if (memory >= 0)
		close(memory);
	return is_there;
}

static int attack_memory(char **args)
{
	return each_process(memory_has_canary, args[0]) ? worked("in a process's memory")
							: refused("in no process's memory");
}

/* Who may read it and is told ETXTBSY has only to wait until the program has ended. */
static bool can_write_program(const char *process, const char *ignored)
{
	char path[PATH_MAX];

	(void)ignored;
	join(path, process, "exe");
	return open(path, O_RDONLY | O_CLOEXEC) >= 0 &&
	       (open(path, O_WRONLY | O_CLOEXEC) >= 0 || errno == ETXTBSY);
}

static int attack_program(char **args)
{
	(void)args;
	return each_process(can_write_program, NULL)
		       ? worked("a process's program can be written")
		       : refused("no process's program can be written");
}

/*
 * In the first moment of a run the first process may still be what made the cage, with everything
 * the operator has in its memory.
 */
static int attack_early(char **args)
{
	static const char *const files[] = { "/proc/1/environ", "/proc/1/cmdline" };

	for (int i = 0; i < 200; i++)
		for (size_t f = 0; f < ELEMENTS(files); f++)
			if (text_has_canary(files[f], args[0]))
				return worked("%s, look %d", files[f], i);
	return memory_has_canary("/proc/1", args[0]) ? worked("/proc/1/mem")
						     : refused("in 200 looks");
}

/* As the shell of an image, which a startup command starts. /end names the canary. */
static int attack_as_shell(char **args)
{
	char end[32] = "", name[8] = "environ", other[8] = "cmdline";
	int out = open("/tmp/out", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	(void)args;
	if (read_text(AT_FDCWD, "/end", end, sizeof(end)) > 0 && dup2(out, 1) == 1) {
		end[strcspn(end, "\n")] = 0;
		attack_process_file((char *[]){ name, end });
		attack_process_file((char *[]){ other, end });
		attack_memory((char *[]){ end });
	}
	return 0;
}

/* What another run of this program said, somewhere in the cage. */
static int attack_report(char **args)
{
	char said[TEXT_MAX];

	if (read_text(AT_FDCWD, args[0], said, sizeof(said)) <= 0)
		return untried("%s: %s", args[0], error_name(errno));
	const char *found = strstr(said, "probe: worked: ");

	return found ? worked("%.*s", (int)strcspn(found + 15, "\n"), found + 15)
		     : refused("%.*s", (int)strcspn(said, "\n"), said);
}

/* --- taking hold of one, as a rule of process 1 --- */

static int attack_trace(char **args)
{
	pid_t pid = args[0] ? atoi(args[0]) : 1;
	bool is_held = ptrace(PTRACE_SEIZE, pid, 0, 0) == 0;
	int result = outcome(is_held, "trace");

	if (is_held)
		ptrace(PTRACE_DETACH, pid, 0, 0);
	return result;
}

/* Without a right address the answer is EFAULT, if reading is allowed at all. */
static int attack_copy(char **args)
{
	char bytes[16];
	struct iovec here = { bytes, sizeof(bytes) }, there = { args, sizeof(bytes) };
	ssize_t size = process_vm_readv(args[0] ? atoi(args[0]) : 1, &here, 1, &there, 1, 0);

	return outcome(size > 0 || (size < 0 && errno == EFAULT), "process_vm_readv");
}

static int attack_take(char **args)
{
	int process = (int)syscall(SYS_pidfd_open, args[0] ? atoi(args[0]) : 1, 0);

	if (process < 0)
		return refused("pidfd_open: %s", error_name(errno));
	for (int fd = 0; fd < 64; fd++)
		if (syscall(SYS_pidfd_getfd, process, fd, 0) >= 0)
			return worked("took its descriptor %d", fd);
		else if (errno != EBADF)
			return refused("pidfd_getfd: %s", error_name(errno));
	return worked("pidfd_getfd is allowed, though it had none open");
}

/* --- signals --- */

static int attack_see(char **args)
{
	pid_t pid = atoi(args[0]);
	struct rlimit limit;

	if (kill(pid, 0) == 0 || errno == EPERM)
		return worked("kill: it is there");
	if (getpgid(pid) >= 0 || getsid(pid) >= 0)
		return worked("getpgid: it is there");
	if (prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0 || errno == EPERM)
		return worked("prlimit: it is there");
	return refused("%s", error_name(errno));
}

static int attack_kill(char **args)
{
	return outcome(kill(atoi(args[0]), SIGKILL) == 0, "kill");
}

/* With a signal that nobody notices who does not want to. */
static int attack_kill_all(char **args)
{
	(void)args;
	return outcome(kill(-1, SIGURG) == 0, "signal everybody");
}

/* The members of a group get its signals wherever they are, also outside of our namespace. */
static int attack_kill_group(char **args)
{
	(void)args;
	return outcome(kill(0, SIGUSR1) == 0, "signal our process group");
}

static int attack_nice(char **args)
{
	(void)args;
	return outcome(setpriority(PRIO_PROCESS, 0, -20) == 0, "the highest priority");
}

/* Two forks and a session of its own; for two seconds it adds to a file. */
static int attack_daemon(char **args)
{
	if (fork() == 0) {
		setsid();
		signal(SIGHUP, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		if (fork())
			_exit(0);
		for (int fd = 0; fd < 1024; fd++)
			close(fd);
		for (int i = 0; i < 200; i++) {
			int fd = open(args[0], O_WRONLY | O_APPEND | O_CLOEXEC);

			if (fd < 0 || write(fd, ".", 1) != 1)
				_exit(1);
			close(fd);
			usleep(10000);
		}
		_exit(0);
	}
	usleep(50000);
	return worked("started; the host sees whether it survives");
}

/* --- what is not about processes --- */

static bool is_given(const char *name)
{
	static const char *const given[] = { "self", "thread-self", "mounts", "net", "cpuinfo",
		"loadavg", "meminfo", "stat", "uptime" };

	for (size_t i = 0; i < ELEMENTS(given); i++)
		if (strcmp(name, given[i]) == 0)
			return true;
	return isdigit((unsigned char)name[0]) || name[0] == '.';
}

static char opened[PATH_MAX];

static bool can_open(const char *path, int mode)
{
	char byte;
	int fd = open(path, mode | O_CLOEXEC | O_NONBLOCK);
	/* Writing could do harm, and the answer is known without. */
	bool is_open = fd >= 0 && (mode != O_RDONLY || read(fd, &byte, 1) == 1);

	if (fd >= 0)
		close(fd);
	return is_open;
}

/* The first file below a folder that opens in a mode. */
static bool is_any_open(const char *folder, int mode, int depth, bool (*skip)(const char *))
{
	DIR *dir = depth ? opendir(folder) : NULL;

	for (struct dirent *entry; dir && !opened[0] && (entry = readdir(dir));) {
		char path[PATH_MAX];
		struct stat st;

		if (entry->d_name[0] == '.' || (skip && skip(entry->d_name)))
			continue;
		join(path, folder, entry->d_name);
		if (lstat(path, &st))
			continue;
		if (S_ISDIR(st.st_mode))
			is_any_open(path, mode, depth - 1, NULL);
		else if (S_ISREG(st.st_mode) && can_open(path, mode))
			memcpy(opened, path, sizeof(path));
	}
	if (dir)
		closedir(dir);
	return opened[0];
}

static int attack_proc_read(char **args)
{
	(void)args;
	return is_any_open("/proc", O_RDONLY, 4, is_given)
		       ? worked("%s", opened)
		       : refused("nothing but processes and five files");
}

static int attack_proc_write(char **args)
{
	static const char *const files[] = { "/proc/sysrq-trigger", "/proc/kcore", "/proc/mtrr",
		"/proc/acpi/wakeup", "/proc/irq/default_smp_affinity", "/proc/scsi/scsi",
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
		"/proc/sys/fs/binfmt_misc/register", "/proc/sys/vm/drop_caches" };

	(void)args;
	for (size_t i = 0; i < ELEMENTS(files); i++)
		if (can_open(files[i], O_WRONLY))
			return worked("%s", files[i]);
	return is_any_open("/proc/sys", O_WRONLY, 5, NULL) ? worked("%s", opened)
							   : refused("%s", error_name(errno));
}

static int attack_sys(char **args)
{
	static const char *const files[] = { "/sys/kernel/uevent_helper",
		"/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs",
		"/sys/fs/cgroup/pids/cgroup.procs", "/sys/fs/cgroup/memory/release_agent",
		"/sys/power/state" };

	(void)args;
	for (size_t i = 0; i < ELEMENTS(files); i++)
		if (can_open(files[i], O_WRONLY))
			return worked("%s can be written", files[i]);
	return is_any_open("/sys", O_RDONLY, 3, NULL) ? worked("%s can be read", opened)
						      : refused("%s", error_name(errno));
}

const struct attack attacks_proc[] = {
	{ "environment", "END", attack_environment, "finds the canary among our variables" },
	{ "process-file", "NAME END", attack_process_file, "finds it in /proc/*/{,task/*/}NAME" },
	{ "memory", "END", attack_memory, "finds it in /proc/*/mem" },
	{ "early", "END", attack_early, "the same in the first moment of a run", true },
	{ "-c", "TEXT …", attack_as_shell, "the same as an image's shell, into /tmp/out", true },
	{ "report", "FILE", attack_report, "whether an attack worked that wrote to FILE" },
	{ "program", "", attack_program, "opens /proc/*/exe for writing" },
	{ "trace", "[PID]", attack_trace, "ptrace; process 1 unless told" },
	{ "copy", "[PID]", attack_copy, "process_vm_readv" },
	{ "take", "[PID]", attack_take, "pidfd_getfd" },
	{ "see", "PID", attack_see, "finds a process of the host" },
	{ "kill", "PID", attack_kill, "kills it" },
	{ "kill-all", "", attack_kill_all, "kill(-1, SIGURG)" },
	{ "kill-group", "", attack_kill_group, "kill(0, SIGUSR1)" },
	{ "nice", "", attack_nice, "takes the highest priority" },
	{ "daemon", "FILE", attack_daemon, "outlives the run" },
	{ "proc-read", "", attack_proc_read, "reads what is not about processes" },
	{ "proc-write", "", attack_proc_write, "opens settings of the kernel for writing" },
	{ "sys", "", attack_sys, "opens what is below /sys" },
	{ 0 },
};
