/*
 * session_writes - what a session wrote to the project, as far as nobody applied or discarded it.
 *
 * Runs as:  the operator; a worker.
 * Must not: follow a link: the layer is a stranger's.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "session/folder/session.h"

/* Adds the names at the top of one layer; `called`: all of them are told as this. */
static int count_layer(int workspace, const char *path, const char *called, struct buf *names)
{
	own_fd int upper = file_open_same_mount(workspace, path, O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = upper };
	const struct file_entry *entry;
	int count = 0;

	if (upper < 0)
		return upper == -ENOENT ? 0 : upper;
	while ((entry = file_next_entry(&entries))) {
		const char *name = called ? called : entry->name;

		if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
			continue;
		if (names) {
			buf_puts(names, names->len ? ", " : "");
			buf_add_visible(names, name, strlen(name));
		}
		count++;
		if (called)
			break;
	}
	return entries.failure ? -entries.failure : count;
}

int session_count_writes(int root, const char *id, struct buf *names)
{
	uint64_t number = UINT64_MAX;
	struct err e = { 0 };
	own_fd int workspace = session_open_before(root, id, &number, &e);
	int project, git;

	if (workspace < 0)
		return workspace == -ENOENT ? 0 : workspace;
	project = count_layer(workspace, "layer/upper", NULL, names);
	git = project < 0 ? 0 : count_layer(workspace, "git-layer/upper", ".git", names);
	return project < 0 || git < 0 ? -EIO : project + git;
}

#define MOST_DEPTH 100 /* each level has a descriptor; what is deeper counts as written */

static bool is_since(const struct timespec *a, const struct timespec *t)
{
	return a->tv_sec != t->tv_sec ? a->tv_sec > t->tv_sec : a->tv_nsec >= t->tv_nsec;
}

/* What was removed or renamed has changed the folder that it was in. */
static bool was_written(int folder, const struct timespec *t, int depth)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	struct stat st;

	/* Of the top the start of each cage changes the attributes: what counts is in it. */
	if (fstat(folder, &st) < 0 || is_since(&st.st_mtim, t) || depth == MOST_DEPTH)
		return true;
	while ((entry = file_next_entry(&entries))) {
		own_fd int inner = -1;

		if (!strcmp(entry->name, ".") || !strcmp(entry->name, ".."))
			continue;
		if (fstatat(folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			is_since(&st.st_ctim, t))
			return true;
		if (!S_ISDIR(st.st_mode))
			continue;
		inner = file_open_name(folder, entry->name, O_RDONLY | O_DIRECTORY);
		if (inner < 0 || was_written(inner, t, depth + 1))
			return true;
	}
	return entries.failure != 0;
}

bool session_was_written(int workspace, const struct timespec *t)
{
	static const char *const layers[] = { "layer/upper", "git-layer/upper" };

	for (size_t i = 0; i < COUNT_OF(layers); i++) {
		own_fd int upper =
			file_open_same_mount(workspace, layers[i], O_RDONLY | O_DIRECTORY);

		if (upper >= 0 && was_written(upper, t, 0))
			return true;
	}
	return false;
}
