/*
 * keeper_writes - which of the writes that a cage is about to make are to protected paths.
 *
 * Runs as:  the keeper, for a process of the cage that waits for its answer.
 * Reads:    the paths it names, from its memory; where it is, and where a descriptor of its leads.
 * Must not: decide anything, nor open what is named. The kernel refuses the write, whatever is
 *           found here; and what was read may be something else by the time the kernel reads it.
 *
 * Paths are taken as they are written: no link is followed. Who wants to remain unseen can.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/count.h"
#include "base/str.h"
#include "keeper/keeper_inside.h"

/* --- what is named --- */

/* A text in its memory. In two pieces, since nothing may be mapped where the second begins. */
static bool writes_read_text(pid_t pid, uint64_t address, char ret[static PATH_MAX])
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), first = page - address % page;
	struct iovec here = { ret, PATH_MAX }, there[2] = { 0 };
	ssize_t n;

	if (first > PATH_MAX)
		first = PATH_MAX;
	memcpy(&there[0].iov_base, &address, sizeof(address));
	there[0].iov_len = first;
	address += first;
	memcpy(&there[1].iov_base, &address, sizeof(address));
	there[1].iov_len = PATH_MAX - first;
	n = process_vm_readv(pid, &here, 1, there, there[1].iov_len ? 2 : 1, 0);
	return n > 0 && memchr(ret, '\0', (size_t)n);
}

/* The folder that a path begins at: its own, or that of a descriptor. */
static bool read_folder(pid_t pid, int at, char ret[static PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
	if (at != AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, at);
	n = readlink(link, ret, PATH_MAX - 1);
	ret[n < 0 ? 0 : n] = '\0';
	return ret[0] == '/';
}

bool keeper_join_path(const char *folder, const char *path, char ret[static PATH_MAX])
{
	const char *parts[] = { path[0] == '/' ? "" : folder, path };
	size_t len = 0;

	for (size_t i = 0; i < 2; i++) {
		for (const char *s = parts[i]; *s;) {
			size_t n = strcspn(s, "/");

			if (n == 2 && s[0] == '.' && s[1] == '.') {
				while (len > 0 && ret[--len] != '/')
					continue;
			} else if (n > 0 && !(n == 1 && s[0] == '.')) {
				if (len + 1 + n >= PATH_MAX)
					return false;
				ret[len++] = '/';
				memcpy(ret + len, s, n);
				len += n;
			}
			s += n + (s[n] == '/');
		}
	}
	if (len == 0)
		ret[len++] = '/';
	ret[len] = '\0';
	return true;
}

static bool writes_read_path(
	const struct seccomp_notif *call, int at, int path, char ret[static PATH_MAX])
{
	char text[PATH_MAX], folder[PATH_MAX] = "";
	pid_t pid = (pid_t)call->pid;

	if (!writes_read_text(pid, call->data.args[path], text) || !text[0])
		return false;
	if (text[0] != '/' &&
		!read_folder(pid, at < 0 ? AT_FDCWD : (int)call->data.args[at], folder))
		return false;
	return keeper_join_path(folder, text, ret);
}

/* --- whether it is protected --- */

/* What is held and would be touched by a write to `path` of its tree, or NULL. */
static const char *find_held(
	const struct keeper_protect *h, const char *path, const struct filter_watched *w)
{
	for (size_t i = 0; i < h->count; i++) {
		const struct cage_protected *held = &h->items[i];

		if (held->kind == CAGE_HELD_THERE && w->only_makes && str_eq(path, held->path))
			return NULL; /* as on the host */
		if (held->kind != CAGE_HELD_WAY && str_path_within(path, held->path))
			return held->path;
		if (w->takes_away && str_path_within(held->path, path))
			return path;
	}
	return NULL;
}

/* The place of a tree in the cage; false where there is none. */
static bool writes_find_place(const struct keeper *k, size_t which, char ret[static PATH_MAX])
{
	const struct plan *p = k->q->plan;

	for (uint32_t i = 0; i < p->op_count; i++) {
		const struct plan_op *op = &plan_ops(p)[i];

		if ((op->kind == PLAN_PROJECT || op->kind == PLAN_GIT) &&
			cage_layer_of(op) == which)
			return cage_fill_in_place(&k->start, op, ret, PATH_MAX);
	}
	return false;
}

/* Puts what is said of it into `ret`: of git's folder, which is elsewhere, the whole path. */
static bool writes_is_held(const struct keeper *k, const char *path, const struct filter_watched *w,
	char ret[static RECORD_PATH_SIZE])
{
	char place[PATH_MAX];

	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++) {
		const char *inside, *held;
		size_t n;

		if (!k->protects[i].count || !writes_find_place(k, i, place) ||
			!str_path_within(path, place))
			continue;
		n = strlen(place);
		if (!path[n])
			continue;
		inside = path + n + (n > 1);
		held = find_held(&k->protects[i], inside, w);
		if (!held)
			continue;
		if (i == CAGE_LAYER_PROJECT)
			path = strlen(inside) < RECORD_PATH_SIZE ? inside : held;
		snprintf(ret, RECORD_PATH_SIZE, "%.*s", RECORD_PATH_SIZE - 1, path);
		return true;
	}
	return false;
}

bool keeper_writes_see(
	const struct keeper *k, const struct seccomp_notif *call, char ret[static RECORD_PATH_SIZE])
{
	const struct filter_watched *w = filter_find_watched(&call->data);
	char path[PATH_MAX];

	for (size_t i = 0; w && i < COUNT_OF(w->places); i++)
		if (w->places[i].path >= 0 &&
			writes_read_path(call, w->places[i].at, w->places[i].path, path) &&
			writes_is_held(k, path, w, ret))
			return true;
	return false;
}
