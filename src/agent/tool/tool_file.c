/*
 * tool_file - the tools read, write and edit: single files by their paths.
 *
 * Runs as:  a command in a cage, or anywhere, with the rights of who runs it.
 * Leaves:   a file with its old content or its new one. Where its folder cannot be written to, it
 *           has more than one name, or it is mounted by itself, it is written in place, and may be
 *           left half written by a full disk.
 * Must not: wait for a pipe, use a device.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/tool/tool_cage.h"
#include "agent/tool/tool_edit.h"
#include "agent/tool/tool_inside.h"
#include "agent/tool/tool_lines.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"

#define LOCK_MS      5000 /* for the others that change a file of the same folder */
#define LOCK_LOOK_MS 5    /* how often it is looked whether they have */

/* --- reading --- */

static int say_no_file(const char *verb, const char *path, mode_t mode, struct err *e)
{
	char shown[256];
	const char *what = S_ISDIR(mode)    ? "a folder; the tool glob lists what is in it"
			   : S_ISFIFO(mode) ? "a pipe, not a file"
			   : S_ISSOCK(mode) ? "a socket, not a file"
					    : "a device, not a file";

	return err_set(e, ERR_SYS, S_ISDIR(mode) ? EISDIR : ENXIO, "cannot %s '%s': it is %s", verb,
		tool_shown(path, shown), what);
}

int tool_open_file(const char *verb, const char *path, struct err *e)
{
	own_fd int fd = file_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 && fd != -ENXIO)
		return tool_fail(verb, false, path, -fd, e);
	if ((fd < 0 ? stat(path, &st) : fstat(fd, &st)) < 0)
		return tool_fail(verb, false, path, errno, e);
	if (!S_ISREG(st.st_mode))
		return say_no_file(verb, path, st.st_mode, e);
	return take_fd(&fd);
}

/* The whole of it, at most TOOL_MAX_FILE. The caller owns *ret. */
static int tool_load_file(
	const char *verb, const char *path, char **ret, size_t *ret_size, struct err *e)
{
	own_fd int fd = tool_open_file(verb, path, e);
	char shown[256];
	int r = fd < 0 ? fd : file_read_all(fd, TOOL_MAX_FILE, ret, ret_size);

	if (fd >= 0 && r == -EFBIG)
		return err_set(e, ERR_SYS, EFBIG, "cannot %s '%s': it is larger than %zu MiB", verb,
			tool_shown(path, shown), TOOL_MAX_FILE >> 20);
	return fd >= 0 && r < 0 ? tool_fail(verb, false, path, -r, e) : r;
}

/* --- writing --- */

/* A file that is to be written: its real path, cut into folder and name. */
struct target {
	char folder[PATH_MAX];
	char name[NAME_MAX + 1];
	bool exists;
	struct stat st;
};

static int file_make_folders(const char *path)
{
	char part[PATH_MAX];
	int r;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);

		if (n >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, path, n);
		part[n] = '\0';
		if (mkdir(part, 0777) == 0 || errno == EEXIST)
			continue;
		r = -errno;
		/* The folder may exist nevertheless; opening the file will show. */
		if (access(part, F_OK) < 0)
			return r;
	}
	return 0;
}

/* Follows symlinks; a dangling one leads to the path where the file will be made. */
static int find_target(const char *path, struct target *ret)
{
	char real[PATH_MAX], *slash;

	ret->exists = stat(path, &ret->st) == 0;
	if (ret->exists ? !realpath(path, real) : errno != ENOENT)
		return -errno;
	if (!ret->exists && snprintf(real, sizeof(real), "%s", path) >= (int)sizeof(real))
		return -ENAMETOOLONG;
	slash = strrchr(real, '/');
	if (strlen(slash ? slash + 1 : real) > NAME_MAX)
		return -ENAMETOOLONG;
	snprintf(ret->name, sizeof(ret->name), "%s", slash ? slash + 1 : real);
	if (slash == real)
		slash++;
	snprintf(ret->folder, sizeof(ret->folder), "%.*s", slash ? (int)(slash - real) : 1,
		slash ? real : ".");
	return ret->name[0] ? 0 : -EISDIR;
}

/* Makes the folders that lead to a file. */
static int tool_make_folders(const char *verb, const char *path, struct err *e)
{
	int r = str_ends(path, "/") ? -EISDIR : file_make_folders(path);

	return r < 0 ? tool_fail(verb, true, path, -r, e) : 0;
}

/* Like flock with a timeout: any command in the cage may hold the lock. */
static int lock_folder(int folder)
{
	const struct timespec pause = { .tv_nsec = LOCK_LOOK_MS * 1000000L };
	uint64_t end_ns = clock_ns() + (uint64_t)LOCK_MS * 1000000;

	while (flock(folder, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_ns() > end_ns)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/*
 * The folder's and not the file's own: another file takes the place of that. A folder that cannot
 * be listed, or is where nobody can lock anything, is used as it is.
 */
/*
 * Waits until no other of these tools changes a file of the same folder. Until the descriptor *ret
 * is closed, which was -1 and may still be, none of them does.
 */
static int tool_lock_file(const char *verb, const char *path, int *ret, struct err *e)
{
	struct target t = { 0 };
	char shown[256];

	if (find_target(path, &t) < 0)
		return 0; /* whoever uses the file finds out, and says it */
	*ret = file_open(t.folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	if (*ret >= 0 && lock_folder(*ret) == -ETIMEDOUT)
		return err_set(e, ERR_SYS, ETIMEDOUT,
			"cannot %s '%s': something in this cage has kept its folder locked for %d "
			"seconds; try again, or end what holds the lock",
			verb, tool_shown(path, shown), LOCK_MS / 1000);
	return 0;
}

/* True if replacing the file by a new one of its name keeps all that matters. */
static bool may_replace(const struct target *t)
{
	return !t->exists || (t->st.st_nlink == 1 && t->st.st_uid == geteuid());
}

static int write_beside(
	const struct target *t, int folder, const char *name, const char *bytes, size_t n)
{
	own_fd int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		t->exists ? 0600 : 0666);
	int r;

	if (fd < 0)
		return -errno;
	r = file_write_all(fd, bytes, n);
	if (r == 0 && t->exists && fchmod(fd, t->st.st_mode & 0777) < 0)
		r = -errno;
	if (r == 0 && renameat(folder, name, folder, t->name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(folder, name, 0);
	return r;
}

/* Replaces the file by a new one of its name. */
static int replace_file(const struct target *t, const char *bytes, size_t n)
{
	own_fd int folder = file_open(t->folder, O_PATH | O_DIRECTORY);
	uint64_t random;
	char name[64];

	if (folder < 0)
		return folder;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, sizeof(name), ".bawn-%016llx", (unsigned long long)random);
	return write_beside(t, folder, name, bytes, n);
}

static int write_in_place(const char *path, const char *bytes, size_t n)
{
	own_fd int fd = openat(
		AT_FDCWD, path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
	struct stat st = { 0 };
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0)
		r = S_ISREG(st.st_mode) ? file_write_all(fd, bytes, n) : -ENXIO;
	if (r == 0 && ftruncate(fd, (off_t)n) < 0)
		r = -errno;
	return r;
}

/*
 * A refusal to make a file in that folder, or to move one there, says nothing of the file itself.
 */
static bool is_about_folder(int r)
{
	return r == -EACCES || r == -EPERM || r == -EROFS || r == -EBUSY || r == -EXDEV;
}

static int write_target(const char *path, const struct target *t, const char *bytes, size_t n)
{
	struct stat link;
	bool is_link = lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && !t->exists;
	int r = may_replace(t) && !is_link ? replace_file(t, bytes, n) : -EXDEV;

	if (is_about_folder(r) && (t->exists || is_link))
		return write_in_place(path, bytes, n);
	return r;
}

/* Another file could take the place of one that is not to be written to: that is not meant. */
static int check_writable(const char *verb, const char *path, const struct target *t, struct err *e)
{
	char shown[256];

	if (!t->exists || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)
		return 0;
	if (errno == EACCES && !(t->st.st_mode & 0222))
		return err_set(e, ERR_SYS, EACCES,
			"cannot %s '%s': nobody may write to it, by its mode %04o; if it is meant "
			"to change, chmod u+w comes first",
			verb, tool_shown(path, shown), t->st.st_mode & 07777);
	return tool_fail(verb, true, path, errno, e);
}

/*
 * Gives a file a content, whole or not at all where that is possible: a link is followed, a mode is
 * kept. *ret_existed: there was one.
 */
static int tool_store_file(const char *verb, const char *path, const char *bytes, size_t n,
	bool *ret_existed, struct err *e)
{
	struct target t = { 0 };
	int r = find_target(path, &t);

	if (r == 0 && t.exists && !S_ISREG(t.st.st_mode))
		return say_no_file(verb, path, t.st.st_mode, e);
	if (r == 0) {
		int refused = check_writable(verb, path, &t, e);

		if (refused < 0)
			return refused;
		r = write_target(path, &t, bytes, n);
	}
	if (r < 0)
		return tool_fail(verb, true, path, -r, e);
	*ret_existed = t.exists;
	return 0;
}

/* The maximum size of an edited file. */
#define MAX_EDITED (4 * TOOL_MAX_FILE)

/* --- the tool read --- */

static int feed_lines(int fd, struct tool_lines *l)
{
	char bytes[65536] __attribute__((uninitialized));

	for (;;) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			tool_lines_end(l);
		if (n == 0 || !tool_lines_feed(l, bytes, (size_t)n))
			return 0;
	}
}

/* Adds notes about the lines; removes printed lines if the text is not UTF-8. */
static int judge_lines(const struct tool_lines *l, const char *path, struct buf *out, struct err *e)
{
	char shown[256];

	if (l->has_nul || l->is_foreign) {
		out->len = 0;
		return err_set(e, ERR_SYS, EILSEQ, "cannot read '%s': it is %s",
			tool_shown(path, shown),
			l->has_nul ? "binary, not text" : "text in another encoding than UTF-8");
	}
	if (l->printed == 0 && l->line > 0)
		return err_set(e, ERR_SYS, ERANGE,
			"cannot read '%s' from line %" PRIu64 " on: it has %" PRIu64 " line%s",
			tool_shown(path, shown), l->first, l->line, l->line == 1 ? "" : "s");
	return 0;
}

int tool_run_read(const struct tool_args *args, struct buf *out, struct err *e)
{
	struct tool_lines l = { .first = args->offset ? (uint64_t)args->offset : 1,
		.count = args->limit ? (uint64_t)args->limit : TOOL_LINES,
		.out = out };
	own_fd int fd = tool_open_file("read", args->path, e);
	int r;

	if (fd < 0)
		return fd;
	r = feed_lines(fd, &l);
	if (r < 0)
		return tool_fail("read", false, args->path, -r, e);
	r = judge_lines(&l, args->path, out, e);
	if (r < 0)
		return r;
	if (l.has_more)
		buf_printf(out,
			"\n(these are lines %" PRIu64 " to %" PRIu64
			", and there are more: go on with offset %" PRIu64 ")\n",
			l.first, l.first + l.printed - 1, l.first + l.printed);
	else if (l.line == 0)
		buf_puts(out, "(the file is empty)\n");
	return 0;
}

/* --- the tools write and edit --- */

static void run_put_quoted(struct buf *out, const char *path)
{
	buf_putc(out, '\'');
	buf_add_visible(out, path, strlen(path));
	buf_putc(out, '\'');
}

int tool_run_write(const struct tool_args *args, struct buf *out, struct err *e)
{
	size_t n = strlen(args->content);
	own_fd int lock = -1;
	bool existed = false;
	int r = tool_make_folders("write", args->path, e);

	if (r == 0)
		r = tool_lock_file("write", args->path, &lock, e);
	if (r == 0)
		r = tool_store_file("write", args->path, args->content, n, &existed, e);
	if (r < 0)
		return r;
	buf_puts(out, existed ? "replaced " : "created ");
	run_put_quoted(out, args->path);
	buf_printf(out, " (%zu byte%s)\n", n, n == 1 ? "" : "s");
	return 0;
}

static void say_edited(const struct tool_edit *edit, const char *path, struct buf *out)
{
	size_t shown = edit->count < TOOL_EDIT_SHOWN ? edit->count : TOOL_EDIT_SHOWN;

	buf_puts(out, "edited ");
	run_put_quoted(out, path);
	buf_printf(out, " in %zu place%s, at line%s ", edit->count, edit->count == 1 ? "" : "s",
		edit->count == 1 ? "" : "s");
	for (size_t i = 0; i < shown; i++)
		buf_printf(out, "%s%" PRIu64, i ? ", " : "", edit->lines[i]);
	buf_puts(out, shown < edit->count ? " …\n" : "\n");
}

/* Locked from before it is read until it is written: edits beside each other lose nothing. */
int tool_run_edit(const struct tool_args *args, struct buf *out, struct err *e)
{
	own(buf) struct buf edited = { .max = MAX_EDITED };
	own_free char *text = NULL;
	struct tool_edit edit = { .old_text = args->old_text,
		.new_text = args->new_text,
		.replaces_all = args->replaces_all };
	own_fd int lock = -1;
	char shown[256];
	bool existed;
	int r = tool_lock_file("edit", args->path, &lock, e);

	if (r == 0)
		r = tool_load_file("edit", args->path, &text, &edit.size, e);
	if (r < 0)
		return r;
	edit.text = text;
	r = tool_edit_apply(&edit, &edited, e);
	if (r < 0) {
		err_prefix(e, "cannot edit '%s'", tool_shown(args->path, shown));
		return r;
	}
	r = tool_store_file("edit", args->path, buf_text(&edited), edited.len, &existed, e);
	if (r == 0)
		say_edited(&edit, args->path, out);
	return r;
}
