#include "bench_run.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"

static char folder_made[BENCH_MAX_PATH];
static volatile sig_atomic_t is_stopped;
static int said_fd = -1, null_fd = -1;

double bench_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void bench_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("bench: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

char *bench_print(const char *fmt, ...)
{
	char *ret = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&ret, fmt, args) < 0)
		bench_fail("no memory");
	va_end(args);
	return ret;
}

void *bench_alloc(size_t n, size_t size)
{
	void *ret = calloc(n, size);

	if (!ret)
		bench_fail("no memory");
	return ret;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	if (remove(path) < 0)
		fprintf(stderr, "bench: cannot remove %s: %s\n", path, strerror(errno));
	return 0;
}

static void remove_folder(void)
{
	nftw(folder_made, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void stop(int signal_number)
{
	(void)signal_number;
	is_stopped = 1;
}

bool bench_is_stopped(void)
{
	return is_stopped;
}

const char *bench_make_folder(void)
{
	struct sigaction on_stop = { .sa_handler = stop, .sa_flags = SA_RESTART };

	snprintf(folder_made, sizeof(folder_made), "/tmp/bawn-bench.XXXXXX");
	if (!mkdtemp(folder_made))
		bench_fail("cannot make a folder in /tmp: %s", strerror(errno));
	atexit(remove_folder);
	sigaction(SIGINT, &on_stop, NULL);
	sigaction(SIGTERM, &on_stop, NULL);
	said_fd = memfd_create("said", MFD_CLOEXEC);
	null_fd = file_open("/dev/null", O_RDWR);
	if (chmod(folder_made, 0755) < 0 || said_fd < 0 || null_fd < 0)
		bench_fail("cannot prepare %s", folder_made);
	return folder_made;
}

static void make_dir_of(const struct bench_who *who, const char *path, mode_t mode)
{
	if (mkdir(path, mode) < 0 || chmod(path, mode) < 0 || chown(path, who->id, who->id) < 0)
		bench_fail("cannot make %s: %s", path, strerror(errno));
}

static void make_user(const char *folder, const char *name, uid_t id, struct bench_who *ret)
{
	size_t n = 0;

	*ret = (struct bench_who){ .name = name, .id = id };
	snprintf(ret->home, sizeof(ret->home), "%s/%s", folder, name);
	snprintf(ret->project, sizeof(ret->project), "%s/%s/project", folder, name);
	snprintf(ret->runtime, sizeof(ret->runtime), "%s/%s/run", folder, name);
	make_dir_of(ret, ret->home, 0755);
	make_dir_of(ret, ret->project, 0755);
	make_dir_of(ret, ret->runtime, 0700);
	ret->env[n++] = bench_print("PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
	ret->env[n++] = bench_print("HOME=%s", ret->home);
	ret->env[n++] = bench_print("XDG_STATE_HOME=%s/state", ret->home);
	ret->env[n++] = bench_print("XDG_RUNTIME_DIR=%s", ret->runtime);
	ret->env[n++] = bench_print("LANG=C.UTF-8");
}

size_t bench_make_users(const char *folder, struct bench_who ret[2])
{
	bool is_root = geteuid() == 0;

	make_user(folder, is_root ? "root" : "user", geteuid(), &ret[0]);
	if (is_root)
		make_user(folder, "user", BENCH_USER_ID, &ret[1]);
	return is_root ? 2 : 1;
}

#define MAX_PROGRAM_SIZE (64 * 1024 * 1024)

const char *bench_copy_program(const char *folder, const char *path)
{
	char *copy = bench_print("%s/bawn", folder);
	own_free char *bytes = NULL;
	size_t n = 0;
	int fd;

	if (file_read_path(path, MAX_PROGRAM_SIZE, &bytes, &n) < 0)
		bench_fail("cannot read %s", path);
	fd = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd < 0 || file_write_all(fd, bytes, n) < 0 || fchmod(fd, 0755) < 0 || close(fd) < 0)
		bench_fail("cannot write %s", copy);
	return copy;
}

const char *bench_find_program(const char *name)
{
	static const char *const folders[] = { "/usr/local/bin", "/usr/bin", "/bin",
		"/usr/local/sbin", "/usr/sbin", "/sbin" };

	for (size_t i = 0; i < COUNT_OF(folders); i++) {
		char *path = bench_print("%s/%s", folders[i], name);

		if (access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

void bench_add_arg(struct bench_command *c, const char *arg)
{
	if (c->n_args + 1 >= BENCH_MAX_ARGS)
		bench_fail("%s: too many arguments", c->name);
	c->argv[c->n_args++] = arg;
}

void bench_add_args(struct bench_command *c, const char *const *args)
{
	for (; *args; args++)
		bench_add_arg(c, *args);
}

/* In the child, which still shares our memory: bare calls, and nothing that is left changed. */
static void become(const struct bench_command *c)
{
	const struct bench_who *who = c->who;

	if (c->mount_ns >= 0 && setns(c->mount_ns, CLONE_NEWNS) < 0)
		_exit(126);
	if (who->id != geteuid() && (syscall(SYS_setgroups, 1, &who->id) < 0 ||
					    syscall(SYS_setresgid, who->id, who->id, who->id) < 0 ||
					    syscall(SYS_setresuid, who->id, who->id, who->id) < 0))
		_exit(126);
	if (chdir(who->project) < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 ||
		dup2(said_fd, 2) < 0)
		_exit(126);
}

pid_t bench_spawn(const struct bench_command *c)
{
	pid_t pid = vfork();

	if (pid == 0) {
		become(c);
		execve(c->argv[0], (char *const *)(uintptr_t)c->argv, c->who->env);
		_exit(127);
	}
	if (pid < 0)
		bench_fail("cannot start a process: %s", strerror(errno));
	return pid;
}

/* Waits for the end of a process: its status as wait(2) has it. */
static int wait_for(pid_t pid, struct rusage *ret)
{
	int status = 0;

	while (wait4(pid, &status, 0, ret) < 0)
		if (errno != EINTR)
			bench_fail("cannot wait: %s", strerror(errno));
	return status;
}

static pid_t opened;

FILE *bench_open(const struct bench_command *c)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 || (opened = fork()) < 0)
		bench_fail("cannot start a process: %s", strerror(errno));
	if (opened == 0) {
		if ((c->mount_ns >= 0 && setns(c->mount_ns, CLONE_NEWNS) < 0) ||
			chdir(c->who->project) < 0 || dup2(ends[1], 1) < 0 || dup2(said_fd, 2) < 0)
			_exit(126);
		execve(c->argv[0], (char *const *)(uintptr_t)c->argv, c->who->env);
		_exit(127);
	}
	close(ends[1]);
	return fdopen(ends[0], "r");
}

int bench_close(FILE *lines)
{
	struct rusage used;

	fclose(lines);
	return wait_for(opened, &used);
}

double bench_start_once(struct bench_command *c)
{
	double start = bench_now_us();
	struct rusage used;
	int status = wait_for(bench_spawn(c), &used);
	double us = bench_now_us() - start;

	if (status != 0)
		bench_fail_start(c, status);
	if (used.ru_maxrss > c->peak_kb)
		c->peak_kb = used.ru_maxrss;
	return us;
}

/* The last line that was said since the last call, as plain text. */
static const char *what_was_said(void)
{
	static char said[512];
	off_t end = lseek(said_fd, 0, SEEK_END);
	off_t from = end > (off_t)sizeof(said) - 1 ? end - (off_t)sizeof(said) + 1 : 0;
	ssize_t n = pread(said_fd, said, sizeof(said) - 1, from);
	char *line;

	if (n < 0 || ftruncate(said_fd, 0) < 0 || lseek(said_fd, 0, SEEK_SET) < 0)
		n = 0;
	while (n > 0 && said[n - 1] == '\n')
		n--;
	said[n] = '\0';
	line = strrchr(said, '\n');
	line = line ? line + 1 : said;
	for (char *p = line; *p; p++)
		if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
			*p = '\'';
	return *line ? line : "it says nothing";
}

void bench_fail_start(const struct bench_command *c, int status)
{
	if (is_stopped)
		bench_fail("stopped");
	bench_fail("%s, as %s, ended by %s %d: %s", c->name, c->who->name,
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), what_was_said());
}

void bench_warm_up(struct bench_command *c, int times)
{
	struct rusage used;

	if (!c->missing && !c->is_ours && wait_for(bench_spawn(c), &used) != 0)
		c->missing = bench_print("does not run here: %s", what_was_said());
	for (int i = 0; i < times && !c->missing; i++)
		bench_start_once(c);
}
