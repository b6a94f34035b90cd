#include "probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct attack *const tables[] = { attacks_files, attacks_mounts, attacks_proc,
	attacks_rights, attacks_calls, attacks_ipc, attacks_net, attacks_tty, attacks_host,
	attacks_memory, attacks_resources };

/* --- saying what came of it --- */

static void __attribute__((format(printf, 2, 0)))
say(const char *verdict, const char *format, va_list args)
{
	printf("probe: %s: ", verdict);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
}

int worked(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("worked", format, args);
	va_end(args);
	return 0;
}

int refused(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("refused", format, args);
	va_end(args);
	return 1;
}

int untried(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("untried", format, args);
	va_end(args);
	return 2;
}

const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "unknown error";
}

int outcome(bool is_done, const char *what)
{
	int error = errno;

	return is_done ? worked("%s", what) : refused("%s: %s", what, error_name(error));
}

/* --- canaries and files --- */

bool has_canary(const void *bytes, size_t size, const char *end)
{
	char text[128];
	int length = snprintf(text, sizeof(text), "%s%s", CANARY, end);
	bool is_there = memmem(bytes, size, text, (size_t)length);

	/* What is searched may be our own memory, the next time. */
	explicit_bzero(text, sizeof(text));
	return is_there;
}

bool fd_has_canary(int fd, const char *end)
{
	char bytes[TEXT_MAX];
	ssize_t size = read(fd, bytes, sizeof(bytes));

	return size > 0 && has_canary(bytes, (size_t)size, end);
}

bool file_has_canary(int dir, const char *path, const char *end)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return false;
	bool is_there = fd_has_canary(fd, end);

	close(fd);
	if (!is_there)
		errno = ENODATA;
	return is_there;
}

ssize_t read_text(int dir, const char *path, char *text, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -1;
	ssize_t length = 0, part;

	while ((part = read(fd, text + length, size - 1 - (size_t)length)) > 0)
		length += part;
	text[length] = 0;
	close(fd);
	return part < 0 && length == 0 ? -1 : length;
}

void join(char *ret, const char *folder, const char *name)
{
	if (snprintf(ret, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
		ret[0] = 0;
}

static pid_t main_process;

bool each_process(bool (*found)(const char *path, const char *arg), const char *arg)
{
	DIR *dir = opendir("/proc");
	bool is_found = false;

	for (struct dirent *entry; dir && !is_found && (entry = readdir(dir));) {
		char path[64];

		if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid() ||
			atoi(entry->d_name) == main_process)
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s", entry->d_name);
		is_found = found(path, arg);
	}
	if (dir)
		closedir(dir);
	return is_found;
}

int run_command(char **command)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		execvp(command[0], command);
		_exit(255);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 255;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --- the command line --- */

static int help(void)
{
	for (size_t t = 0; t < ELEMENTS(tables); t++)
		for (const struct attack *a = tables[t]; a->name; a++)
			printf("%-14s %-22s %s\n", a->name, a->args, a->help);
	return 2;
}

/* As many words as `args` names outside of [], and no more than all of them, unless it ends in … */
static bool is_count_right(const char *args, int count)
{
	int least = 0, most = 0;

	for (const char *p = args; *p; p++) {
		bool is_start = *p != ' ' && (p == args || p[-1] == ' ');

		most += is_start;
		least += is_start && *p != '[' && strncmp(p, "…", strlen("…")) != 0;
	}
	return count >= least && (count <= most || strstr(args, "…"));
}

/* In a child, because a filter may kill. */
static int try_attack(const struct attack *a, char **args)
{
	if (a->is_at_once)
		return a->run(args);
	pid_t pid = fork();
	int status = 0;

	if (pid < 0)
		return untried("fork: %s", error_name(errno));
	if (pid == 0) {
		alarm(SECONDS_MAX);
		exit(a->run(args));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return untried("wait: %s", error_name(errno));
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return refused("killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return help();
	main_process = getpid();
	signal(SIGUSR1, SIG_IGN); /* kill-group */
	for (size_t t = 0; t < ELEMENTS(tables); t++)
		for (const struct attack *a = tables[t]; a->name; a++)
			if (strcmp(a->name, argv[1]) == 0)
				return is_count_right(a->args, argc - 2)
					       ? try_attack(a, argv + 2)
					       : untried("usage: probe %s %s", a->name, a->args);
	return untried("there is no attack '%s'", argv[1]);
}
