/*
 * keeper_snapshot - reads what the kernel says of a process.
 *
 * Runs as:  the keeper.
 * Must not: believe a /proc that is not the kernel's, or read half of a file as the whole.
 */
#include "keeper/inspect/keeper_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"

#define MAX_FILE ((size_t)16 * 1024 * 1024)

const char *const keeper_namespace_names[KEEPER_NS_COUNT] = {
	[KEEPER_NS_USER] = "user",
	[KEEPER_NS_MOUNT] = "mount",
	[KEEPER_NS_PID] = "pid",
	[KEEPER_NS_NET] = "net",
	[KEEPER_NS_IPC] = "ipc",
	[KEEPER_NS_UTS] = "uts",
	[KEEPER_NS_CGROUP] = "cgroup",
};

bool keeper_has_option(const char *options, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = options; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, word, n) == 0 && (!at[n] || at[n] == ','))
			return true;
	return false;
}

/* --- status --- */

static bool parse_ids(const char *text, uint32_t ret[static 4])
{
	uint64_t ids[4];

	if (!num_scan(text, 10, ids, 4))
		return false;
	for (int i = 0; i < 4; i++)
		ret[i] = (uint32_t)ids[i];
	return true;
}

static bool parse_int(const char *text, int *ret)
{
	uint64_t n;

	if (!num_scan(text, 10, &n, 1) || n > INT_MAX)
		return false;
	*ret = (int)n;
	return true;
}

/* The groups without the own one, which a login puts into the list too. */
static unsigned count_groups(const char *text, uint32_t own)
{
	unsigned n = 0;

	while (*(text += strspn(text, " \t")) && *text != '\n') {
		n += strtoul(text, NULL, 10) != own;
		text += strcspn(text, " \t\n");
	}
	return n;
}

/* One line of status into its place; false where it is not as the kernel writes it. */
static bool parse_status_line(struct keeper_snapshot *v, const char *key, const char *value)
{
	static const char *const sets[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };

	for (size_t i = 0; i < COUNT_OF(sets); i++)
		if (str_starts(key, sets[i]))
			return num_scan(value, 16, &v->capabilities[i], 1);
	if (str_starts(key, "Uid:"))
		return parse_ids(value, v->uids);
	if (str_starts(key, "Gid:"))
		return parse_ids(value, v->gids);
	if (str_starts(key, "NoNewPrivs:"))
		return parse_int(value, &v->no_new_privileges);
	if (str_starts(key, "Seccomp:"))
		return parse_int(value, &v->seccomp);
	if (str_starts(key, "Seccomp_filters:"))
		return parse_int(value, &v->filter_count);
	if (str_starts(key, "SigIgn:"))
		return num_scan(value, 16, &v->ignored, 1);
	if (str_starts(key, "Groups:"))
		v->group_count = count_groups(value, v->gids[1]);
	return true;
}

int keeper_snapshot_parse_status(struct keeper_snapshot *v, const char *text)
{
	v->filter_count = v->no_new_privileges = v->seccomp = -1;
	memset(v->capabilities, 0xff, sizeof(v->capabilities));
	while (text && *text) {
		const char *value = strchr(text, ':');

		if (!value || !parse_status_line(v, text, value + 1))
			return -EBADMSG;
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	/* A line that is missing left a value behind that is no good one. */
	return v->no_new_privileges < 0 || v->seccomp < 0 || v->filter_count < 0 ? -EBADMSG : 0;
}

/* --- mounts --- */

/* id parent device root place options [more…] - type source super; a source may be empty. */
static bool parse_mount(struct keeper_mount *m, char *line)
{
	char *rest = strstr(line, " - "), *words[6], *last[3];

	if (!rest)
		return false;
	*rest = '\0';
	rest += strlen(" - ");
	for (int i = 0; i < 6; i++)
		words[i] = strsep(&line, " ");
	for (int i = 0; i < 3; i++)
		last[i] = strsep(&rest, " ");
	if (!words[5] || !last[2] || !parse_int(words[0], &m->id))
		return false;
	str_unescape_octal(words[3]);
	str_unescape_octal(words[4]);
	m->device = words[2];
	m->root = words[3];
	m->place = words[4];
	m->options = words[5];
	m->type = last[0];
	m->super = last[2];
	return true;
}

int keeper_snapshot_parse_mounts(struct keeper_snapshot *v, char *text, struct arena *arena)
{
	char *save = NULL;
	size_t lines = 0;

	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	v->mounts = arena_array(arena, lines + 1, sizeof(*v->mounts));
	v->mount_count = 0;
	if (!v->mounts)
		return -ENOMEM;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!parse_mount(&v->mounts[v->mount_count++], line))
			return -EBADMSG;
	return 0;
}

/* --- the other files --- */

/*
 * The kernel fills at least a page with whole lines before it answers. So a file whose lines are
 * all shorter than half a page has ended when an answer is; lines of mounts can be longer.
 */
#define SHORT_ANSWER ((size_t)2048)

enum lines_size {
	SHORT_LINES,
	LONG_LINES,
};

static int read_whole(int fd, struct arena *arena, char **ret)
{
	own_free char *bytes = NULL;
	size_t n = 0;
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : file_read_all(fd, MAX_FILE, &bytes, &n);

	if (r < 0)
		return r;
	*ret = arena_copy(arena, bytes, n);
	return *ret ? 0 : -ENOMEM;
}

static int read_open(int fd, enum lines_size lines, struct arena *arena, char **ret)
{
	char bytes[16 * 1024] __attribute__((uninitialized));
	ssize_t n, more = 0;

	do
		n = read(fd, bytes, sizeof(bytes));
	while (n < 0 && errno == EINTR);
	if (n > 0 && (lines == LONG_LINES || (size_t)n >= SHORT_ANSWER))
		more = file_read_up_to(fd, bytes + n, sizeof(bytes) - (size_t)n);
	if (n < 0 || more < 0)
		return n < 0 ? -errno : (int)more;
	if ((size_t)(n + more) == sizeof(bytes))
		return read_whole(fd, arena, ret);
	*ret = arena_copy(arena, bytes, (size_t)(n + more));
	return *ret ? 0 : -ENOMEM;
}

static unsigned snapshot_count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static int parse_map(struct keeper_id_map *ret, const char *text)
{
	uint64_t n[3];

	if (!num_scan(text, 10, n, 3))
		return -EBADMSG;
	ret->inside = (uint32_t)n[0];
	ret->outside = (uint32_t)n[1];
	ret->count = (uint32_t)n[2];
	ret->lines = snapshot_count_lines(text);
	return 0;
}

static uint64_t parse_limit(const char *text, const char *name)
{
	const char *line = text ? strstr(text, name) : NULL;
	uint64_t n;

	return line && num_scan(line + strlen(name), 10, &n, 1) ? n : UINT64_MAX;
}

/* Two lines of heading, then one interface each: "    lo: …". */
static void parse_interfaces(struct keeper_snapshot *v, const char *text)
{
	size_t at = 0;

	for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
		const char *name = line + 1 + strspn(line + 1, " ");
		size_t n = strcspn(name, ":\n");

		if (name[n] == ':' && at + n + 2 >= sizeof(v->interfaces)) {
			/* More than can be told is more than there should be. */
			snprintf(v->interfaces, sizeof(v->interfaces), "many ");
			return;
		}
		if (name[n] == ':')
			at += (size_t)snprintf(v->interfaces + at, sizeof(v->interfaces) - at,
				"%.*s ", (int)n, name);
	}
}

static int read_namespaces(struct keeper_snapshot *v, int proc)
{
	static const char *const files[KEEPER_NS_COUNT] = { "ns/user", "ns/mnt", "ns/pid", "ns/net",
		"ns/ipc", "ns/uts", "ns/cgroup" };

	for (int i = 0; i < KEEPER_NS_COUNT; i++) {
		struct stat st;

		if (fstatat(proc, files[i], &st, 0) < 0)
			return -errno;
		v->namespaces[i] = st.st_ino;
	}
	return 0;
}

static bool is_terminal(const char *path)
{
	return str_starts(path, "/dev/pts/") || str_starts(path, "/dev/tty") ||
	       str_starts(path, "/dev/console") || str_starts(path, "/dev/hvc");
}

static void note_terminal(struct keeper_snapshot *v, int dir, const char *number, const char *name)
{
	unsigned i = v->terminal_count++;
	struct stat st = { 0 };

	if (i >= KEEPER_MAX_TERMINALS)
		return;
	/* What the descriptor is, and not what its name is here. One that cannot be asked is
	 * nobody's. */
	(void)!fstatat(dir, number, &st, 0);
	snprintf(v->terminals[i].name, sizeof(v->terminals[i].name), "%.60s", name);
	v->terminals[i].device = st.st_dev;
	v->terminals[i].number = st.st_rdev;
}

static int read_descriptors(struct keeper_snapshot *v, int proc)
{
	own_fd int dir = file_open_name(proc, "fd", O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = dir };
	const struct file_entry *entry;

	while (dir >= 0 && (entry = file_next_entry(&entries))) {
		char target[256];
		ssize_t n = entry->name[0] == '.'
				    ? -1
				    : readlinkat(dir, entry->name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		v->descriptor_count++;
		if (is_terminal(target))
			note_terminal(v, dir, entry->name, target);
	}
	return dir < 0 ? dir : -entries.failure;
}

/* pid (name) state ppid pgrp session tty_nr …; a name may have anything in it. */
static int parse_session(struct keeper_snapshot *v, const char *text)
{
	const char *rest = strrchr(text, ')');
	uint64_t n[4];

	/* A blank, the state, a blank, and then numbers. */
	if (!rest || strlen(rest) < 4 || !num_scan(rest + 3, 10, n, 4))
		return -EBADMSG;
	v->session = (int64_t)n[2];
	v->terminal_number = (int64_t)n[3];
	return 0;
}

static void parse_limits(struct keeper_snapshot *v, const char *text)
{
	v->max_files = parse_limit(text, "Max open files");
	v->max_processes = parse_limit(text, "Max processes");
}

int keeper_snapshot_parse(
	struct keeper_snapshot *v, char *const texts[static KEEPER_TEXT_COUNT], struct arena *arena)
{
	int r = keeper_snapshot_parse_status(v, texts[KEEPER_TEXT_STATUS]);

	if (r == 0)
		r = keeper_snapshot_parse_mounts(v, texts[KEEPER_TEXT_MOUNTS], arena);
	if (r < 0)
		return r;
	parse_limits(v, texts[KEEPER_TEXT_LIMITS]);
	parse_interfaces(v, texts[KEEPER_TEXT_INTERFACES]);
	r = parse_map(&v->uid_map, texts[KEEPER_TEXT_UID_MAP]);
	if (r == 0)
		r = parse_map(&v->gid_map, texts[KEEPER_TEXT_GID_MAP]);
	return r < 0 ? r : parse_session(v, texts[KEEPER_TEXT_STAT]);
}

/* --- reading --- */

/* *ret_fd is left open: all of them are closed by one call. */
static int read_text(int proc, enum keeper_text i, struct arena *arena, char **ret, int *ret_fd)
{
	static const char *const files[KEEPER_TEXT_COUNT] = { "status", "mountinfo", "uid_map",
		"gid_map", "stat", "limits", "net/dev" };
	int fd = *ret_fd = file_open_name(proc, files[i], O_RDONLY);

	return fd < 0 ? fd
		      : read_open(
				fd, i == KEEPER_TEXT_MOUNTS ? LONG_LINES : SHORT_LINES, arena, ret);
}

static int read_all_texts(struct keeper_snapshot *v, int proc, struct arena *arena)
{
	char *texts[KEEPER_TEXT_COUNT] = { NULL };
	int fds[KEEPER_TEXT_COUNT], r = 0;

	memset(fds, -1, sizeof(fds));
	for (enum keeper_text i = 0; r == 0 && i < KEEPER_TEXT_COUNT; i++)
		r = read_text(proc, i, arena, &texts[i], &fds[i]);
	file_close_all(fds, COUNT_OF(fds));
	return r == 0 ? keeper_snapshot_parse(v, texts, arena) : r;
}

static int read_own_texts(struct keeper_snapshot *v, int proc, int filters, struct arena *arena)
{
	char *status = NULL, *mounts = NULL;
	int fds[] = { -1, -1 };
	int r = filters < 0 ? read_text(proc, KEEPER_TEXT_STATUS, arena, &status, &fds[0]) : 0;

	if (r == 0)
		r = read_text(proc, KEEPER_TEXT_MOUNTS, arena, &mounts, &fds[1]);
	file_close_all(fds, COUNT_OF(fds));
	v->filter_count = filters;
	if (r == 0 && status)
		r = keeper_snapshot_parse_status(v, status);
	return r == 0 ? keeper_snapshot_parse_mounts(v, mounts, arena) : r;
}

/* A folder of the kernel's /proc; a descriptor or -errno. */
static int open_proc(const char *path, struct err *e)
{
	own_fd int proc = file_open(path, O_RDONLY | O_DIRECTORY);
	struct statfs fs;

	if (proc < 0 || fstatfs(proc, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return err_set(e, ERR_SYS, proc < 0 ? -proc : EINVAL,
			"cannot inspect the cage from outside: '%s' does not exist or is not the "
			"kernel's",
			path);
	return take_fd(&proc);
}

int keeper_snapshot_read(struct keeper_snapshot *ret, pid_t pid, struct arena *arena, struct err *e)
{
	own_fd int proc = -1;
	char path[32];
	int r;

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc = open_proc(path, e);
	if (proc < 0)
		return proc;
	r = read_all_texts(ret, proc, arena);
	if (r == 0)
		r = read_namespaces(ret, proc);
	if (r == 0)
		r = read_descriptors(ret, proc);
	return r < 0 ? err_sys(e, -r, "cannot inspect the cage from outside: '%s'", path) : 0;
}

/* --- in two parts --- */

void keeper_snapshot_close(struct keeper_snapshot_files *files)
{
	int *const fds[] = { &files->status, &files->limits, &files->descriptors };

	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

int keeper_snapshot_open(struct keeper_snapshot_files *ret, pid_t pid, struct err *e)
{
	char path[32];
	own_fd int proc = -1;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc = file_open(path, O_RDONLY | O_DIRECTORY);
	ret->status = proc < 0 ? proc : file_open_name(proc, "status", O_RDONLY);
	ret->limits = proc < 0 ? proc : file_open_name(proc, "limits", O_RDONLY);
	ret->descriptors = proc < 0 ? proc : file_open_name(proc, "fd", O_RDONLY | O_DIRECTORY);
	if (ret->status < 0 || ret->limits < 0 || ret->descriptors < 0)
		return err_set(e, ERR_SYS, EIO, "cannot inspect the cage from outside: '%s'", path);
	return 0;
}

static unsigned count_descriptors(int folder)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	unsigned n = 0;

	while ((entry = file_next_entry(&entries)))
		n += entry->name[0] != '.';
	return n;
}

int keeper_snapshot_read_again(struct keeper_snapshot *v, const struct keeper_snapshot_files *files,
	struct arena *arena, struct err *e)
{
	char *text = NULL;
	int r = read_open(files->status, SHORT_LINES, arena, &text);

	if (r == 0)
		r = keeper_snapshot_parse_status(v, text);
	if (r == 0)
		r = read_open(files->limits, SHORT_LINES, arena, &text);
	if (r < 0)
		return err_sys(e, -r, "cannot inspect the cage from outside");
	parse_limits(v, text);
	v->descriptor_count = count_descriptors(files->descriptors);
	return 0;
}

int keeper_snapshot_read_own(
	struct keeper_snapshot *ret, int filters, struct arena *arena, struct err *e)
{
	own_fd int proc = open_proc("/proc/self", e);
	int r;

	memset(ret, 0, sizeof(*ret));
	if (proc < 0)
		return proc;
	r = read_own_texts(ret, proc, filters, arena);
	if (r == 0)
		r = read_namespaces(ret, proc);
	return r < 0 ? err_sys(e, -r, "cannot inspect the cage from outside: '/proc/self'") : 0;
}

int keeper_snapshot_read_status(struct keeper_snapshot *v, char *text, size_t size)
{
	own_fd int fd = file_open("/proc/self/status", O_RDONLY);
	/* One line of the kernel's buffer: it comes whole, or there is no room for it. */
	ssize_t n = fd < 0 ? fd : read(fd, text, size);

	if (n <= 0 || (size_t)n == size)
		return -EIO;
	text[n] = '\0';
	return keeper_snapshot_parse_status(v, text);
}
