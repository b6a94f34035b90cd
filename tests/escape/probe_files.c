/* Reading and changing files that were not given, by every name the kernel has for them. */
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FD_MAX    1024
#define LEVEL_MAX 64

static int attack_read(char **args)
{
	return outcome(file_has_canary(AT_FDCWD, args[0], args[1]), "read");
}

/* With a slash at the end, a folder is made. */
static bool can_write(const char *path)
{
	size_t length = strlen(path);

	if (length && path[length - 1] == '/')
		return mkdir(path, 0777) == 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	bool is_written = fd >= 0 && write(fd, "changed\n", 8) == 8;

	if (fd >= 0)
		close(fd);
	return is_written;
}

static int attack_write(char **args)
{
	int error = 0;
	const char *first = NULL;

	for (char **path = args; *path; path++)
		if (can_write(*path))
			first = first ? first : *path;
		else
			error = errno;
	return first ? worked("wrote %s", first) : refused("write: %s", error_name(error));
}

static int attack_unlink(char **args)
{
	return outcome(unlink(args[0]) == 0, "unlink");
}

static int attack_link(char **args)
{
	return outcome(link(args[0], args[1]) == 0, "hard link");
}

static int attack_rename(char **args)
{
	return outcome(rename(args[0], args[1]) == 0, "rename");
}

static int attack_exchange(char **args)
{
	return outcome(
		syscall(SYS_renameat2, AT_FDCWD, args[0], AT_FDCWD, args[1], 2) == 0, "exchange");
}

/* Something else in the place of a folder, whatever is held in it. */
static int attack_replace(char **args)
{
	char away[4096];

	snprintf(away, sizeof(away), "%s.away", args[0]);
	if (rename(args[0], away) < 0)
		return refused("rename: %s", error_name(errno));
	if (mkdir(args[0], 0755) < 0)
		return refused("mkdir: %s", error_name(errno));
	return attack_write(args + 1);
}

static int attack_symlink(char **args)
{
	return outcome(symlink(args[0], args[1]) == 0, "symlink");
}

static int attack_list(char **args)
{
	DIR *dir = opendir(args[0]);

	return outcome(dir && readdir(dir), "list");
}

static int attack_execute(char **args)
{
	int status = run_command(args);

	return status == 0 ? worked("ran it") : refused("status %d", status);
}

/* Whether the canary at an absolute path is found below a folder, also going up from it. */
static bool is_below(int dir, const char *path, const char *end)
{
	char up[LEVEL_MAX * 3 + PATH_MAX] = "";

	if (file_has_canary(dir, path + 1, end))
		return true;
	for (size_t i = 0; i < LEVEL_MAX; i++)
		memcpy(up + i * 3, "../", 4);
	strncat(up, path + 1, PATH_MAX - 1);
	return file_has_canary(dir, up, end);
}

static int attack_walk(char **args)
{
	char start[PATH_MAX] = "";

	if (is_below(AT_FDCWD, args[0], args[1]))
		return worked("up from the current directory");
	if (!getcwd(start, sizeof(start)))
		return refused("getcwd: %s", error_name(errno));
	if (start[0] != '/')
		return worked("the current directory is outside: %s", start);
	if (chdir("/") == 0 && is_below(AT_FDCWD, args[0], args[1]))
		return worked("up from the root");
	return refused("%s, from %s", error_name(errno), start);
}

/* --- through /proc --- */

struct aim {
	const char *path, *end;
};
static struct aim aim;

/* Follows a link of /proc that leads to a folder or to the canary itself. */
static bool leads_there(const char *link)
{
	int fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return false;
	struct stat st;
	/* Reading a pipe would take from it what is somebody else's. */
	bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	bool is_there = is_file ? fd_has_canary(fd, aim.end) : is_below(fd, aim.path, aim.end);

	close(fd);
	return is_there;
}

static bool entries_lead_there(const char *folder)
{
	DIR *dir = opendir(folder);
	bool is_there = false;

	for (struct dirent *entry; dir && !is_there && (entry = readdir(dir));) {
		char link[PATH_MAX];

		join(link, folder, entry->d_name);
		is_there = entry->d_name[0] != '.' && leads_there(link);
	}
	if (dir)
		closedir(dir);
	return is_there;
}

static bool process_leads_there(const char *process, const char *ignored)
{
	static const char *const links[] = { "root", "cwd" };
	static const char *const folders[] = { "fd", "map_files" };
	char path[PATH_MAX];

	(void)ignored;
	for (size_t i = 0; i < ELEMENTS(links); i++) {
		join(path, process, links[i]);
		if (leads_there(path))
			return true;
	}
	for (size_t i = 0; i < ELEMENTS(folders); i++) {
		join(path, process, folders[i]);
		if (entries_lead_there(path))
			return true;
	}
	return false;
}

static int attack_links(char **args)
{
	aim = (struct aim){ args[0], args[1] };
	if (each_process(process_leads_there, NULL))
		return worked("through a link of another process");
	if (process_leads_there("/proc/self", NULL) ||
		process_leads_there("/proc/thread-self", NULL))
		return worked("through a link of our own");
	return refused("no link of /proc leads there");
}

/* --- through mounts --- */

/* The n-th word of a line of mountinfo, in place. */
static char *nth_word(char *line, int n)
{
	char *rest = line, *word = NULL;

	for (int i = 0; i <= n; i++)
		word = strsep(&rest, " ");
	return word;
}

static int attack_mounts(char **args)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[TEXT_MAX];

	while (file && fgets(line, sizeof(line), file)) {
		char path[TEXT_MAX + PATH_MAX], *point = nth_word(line, 4);

		snprintf(path, sizeof(path), "%s%s", point ? point : "", args[0]);
		if (point && file_has_canary(AT_FDCWD, path, args[1]))
			return worked("the host's tree is at %s", point);
	}
	/* The mount may be hidden from mountinfo by the one above it. */
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "/mnt%.4000s", args[0]);
	return outcome(file_has_canary(AT_FDCWD, path, args[1]), "look below every mount");
}

/* Names of the host's folders: a claim of the cage is that it hides them. */
static int attack_names(char **args)
{
	static const char *const files[] = { "/proc/self/mountinfo", "/proc/self/mounts",
		"/proc/self/mountstats", "/proc/1/mountinfo", "/proc/self/maps",
		"/proc/self/cgroup" };
	static char text[256 * 1024];

	for (size_t i = 0; i < ELEMENTS(files); i++)
		if (read_text(AT_FDCWD, files[i], text, sizeof(text)) > 0 &&
			strstr(text, args[0])) {
			char *from = strstr(text, args[0]), *stop = strchr(from, '\n');

			while (from > text && from[-1] != '\n')
				from--;
			return worked("%s: %.*s", files[i], stop ? (int)(stop - from) : 200, from);
		}
	return refused("no name of the host is shown");
}

/* --- descriptors --- */

/* Names what an open descriptor is, if there is one. */
static const char *what_is_open(int fd)
{
	static char text[PATH_MAX + 64];
	char link[64], name[PATH_MAX] = "?";

	if (fcntl(fd, F_GETFD) < 0)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, name, sizeof(name) - 1) < 0)
		strcpy(name, "?");
	snprintf(text, sizeof(text), "descriptor %d is open: %s", fd, name);
	return text;
}

static int attack_descriptors(char **args)
{
	const char *first = NULL;

	for (int fd = 3; fd < FD_MAX; fd++) {
		const char *what = what_is_open(fd);

		if (what && is_below(fd, args[0], args[1]))
			return worked("%s, and leads to the canary", what);
		first = first ? first : what;
	}
	return first ? worked("%s", first) : refused("none but 0, 1 and 2");
}

/* Standard input is open for reading; its link in /proc may open it once more, for writing. */
static int attack_reopen(char **args)
{
	(void)args;
	for (int fd = 0; fd < 3; fd++) {
		char link[64];

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		bool is_input = (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
		int again = open(
			link, (is_input ? O_WRONLY | O_APPEND : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
		struct stat st;

		if (again < 0 || fstat(again, &st) || !S_ISREG(st.st_mode))
			continue;
		if (!is_input || write(again, "changed\n", 8) == 8)
			return worked("descriptor %d, the other way", fd);
	}
	return refused("%s", error_name(errno));
}

/* Takes a descriptor that waits in a socket. */
static int receive(int from)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space) };
	struct cmsghdr *head;
	int fd = -1;

	if (recvmsg(from, &message, MSG_DONTWAIT) < 0)
		return -1;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

static int attack_receive(char **args)
{
	for (int fd = 0; fd < FD_MAX; fd++) {
		int got = fcntl(fd, F_GETFD) < 0 ? -1 : receive(fd);

		if (got >= 0 && is_below(got, args[0], args[1]))
			return worked("descriptor %d handed over a folder of the host", fd);
	}
	return refused("no descriptor hands anything over");
}

/* --- by number: the root of an ext4 is inode 2 --- */

static int attack_handle(char **args)
{
	struct {
		struct file_handle head;
		unsigned inode[2];
	} handle = { .head = { .handle_bytes = 8, .handle_type = 1 }, .inode = { 2, 0 } };
	int mount = open(args[0], O_RDONLY | O_CLOEXEC | O_DIRECTORY);

	if (mount < 0)
		return untried("%s: %s", args[0], error_name(errno));
	int root = (int)syscall(SYS_open_by_handle_at, mount, &handle, O_RDONLY | O_CLOEXEC);

	return outcome(root >= 0 && is_below(root, args[1], args[2]), "open by handle");
}

const struct attack attacks_files[] = {
	{ "read", "PATH END", attack_read, "reads the canary that ends in END" },
	{ "write", "PATH …", attack_write, "appends to files, or makes them" },
	{ "unlink", "PATH", attack_unlink, "removes a name" },
	{ "link", "FROM TO", attack_link, "makes a hard link" },
	{ "rename", "FROM TO", attack_rename, "moves a file" },
	{ "exchange", "A B", attack_exchange, "swaps two names" },
	{ "replace", "FOLDER PATH …", attack_replace, "moves a folder away and makes another" },
	{ "symlink", "TO PATH", attack_symlink, "makes a symlink" },
	{ "list", "PATH", attack_list, "lists a folder" },
	{ "execute", "FILE …", attack_execute, "starts a program" },
	{ "walk", "PATH END", attack_walk, "goes up, from here and from the root" },
	{ "links", "PATH END", attack_links, "/proc/*/{root,cwd,fd,map_files}" },
	{ "mounts", "PATH END", attack_mounts, "looks for the host's tree below each mount" },
	{ "names", "PART", attack_names, "looks for names of the host's folders" },
	{ "descriptors", "PATH END", attack_descriptors, "uses descriptors that were left open" },
	{ "reopen", "", attack_reopen, "opens 0, 1 and 2 again, the other way" },
	{ "receive", "PATH END", attack_receive, "takes descriptors from inherited sockets" },
	{ "handle", "DIR PATH END", attack_handle, "open_by_handle_at of the file system's root" },
	{ 0 },
};
