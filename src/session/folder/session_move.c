/*
 * session_move - hands a session's workspace from one lease to the next.
 *
 * Runs as:  a worker that has taken the session.
 * Leaves:   the new workspace, whole; of those before it only what somebody still has locked.
 * Must not: touch a workspace that is newer: it belongs to whoever took the session after us.
 *
 * One whose lease is over may not know it yet, and write for a while. It has its workspace locked
 * as long as it can, so what it has is left to it, and the next one works on a copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "session/folder/session.h"
#include "session/folder/session_inside.h"

#define DRAFT ".new" /* after its number: a copy that is being made */

struct move {
	const char *id;
	int workspaces;
	char from[SESSION_NAME_SIZE], to[SESSION_NAME_SIZE];
};

static int move_fail(const struct move *m, int num, struct err *e)
{
	return err_sys(
		e, num, "cannot move workspace %s of session %s to %s", m->from, m->id, m->to);
}

/* --- the one before --- */

static int choose(struct move *m, uint64_t from, uint64_t to, struct err *e)
{
	struct stat st;
	int r = 0;

	snprintf(m->to, sizeof(m->to), "%" PRIu64, to);
	snprintf(m->from, sizeof(m->from), "%" PRIu64, from);
	if (fstatat(m->workspaces, m->to, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return move_fail(m, EEXIST, e);
	if (fstatat(m->workspaces, m->from, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (errno == ENOENT)
		from = session_find_newest(m->workspaces, to, &r);
	else
		r = -errno;
	if (r < 0 || !from)
		return move_fail(m, r < 0 ? -r : ENOENT, e);
	snprintf(m->from, sizeof(m->from), "%" PRIu64, from);
	return 0;
}

/* --- by a copy --- */

static int copy_into(const struct move *m, const char *draft, struct err *e)
{
	/* A stranger's: what may act for somebody else does not come along. */
	struct tree_options o = { .opens_up = true, .drops_ids = true };
	own_fd int from = file_open_same_mount(m->workspaces, m->from, O_RDONLY | O_DIRECTORY);
	own_fd int to = -1;
	int r;

	if (from < 0)
		return move_fail(m, -from, e);
	if (mkdirat(m->workspaces, draft, 0700) < 0)
		return move_fail(m, errno, e);
	to = file_open_same_mount(m->workspaces, draft, O_RDONLY | O_DIRECTORY);
	if (to < 0)
		return move_fail(m, -to, e);
	r = tree_copy(from, to, &o, e);
	if (r < 0)
		err_prefix(e, "cannot copy workspace %s of session %s", m->from, m->id);
	return r;
}

static int move_copy(const struct move *m, struct err *e)
{
	char draft[SESSION_NAME_SIZE + sizeof(DRAFT)];
	int r;

	snprintf(draft, sizeof(draft), "%s" DRAFT, m->to);
	tree_remove(m->workspaces, draft, NULL);
	r = copy_into(m, draft, e);
	if (r == 0 && renameat(m->workspaces, draft, m->workspaces, m->to) < 0)
		r = move_fail(m, errno, e);
	if (r < 0)
		tree_remove(m->workspaces, draft, NULL);
	return r;
}

/* --- what is left of earlier ones --- */

static void remove_older(const struct move *m, uint64_t to)
{
	int failure;

	for (uint64_t number = session_find_newest(m->workspaces, to, &failure); number;
		number = session_find_newest(m->workspaces, number, &failure)) {
		char name[SESSION_NAME_SIZE];
		own_fd int lock = -1, folder = -1;

		snprintf(name, sizeof(name), "%" PRIu64, number);
		lock = session_lock_workspace(m->workspaces, name);
		if (lock < 0 && lock != -ENOENT)
			continue;
		folder = file_open_same_mount(m->workspaces, name, O_RDONLY | O_DIRECTORY);
		/* What stays is removed with the session, and named then. */
		if (folder >= 0)
			session_remove_opened(m->workspaces, name, folder, NULL);
	}
}

static int session_move_move(const struct move *m, bool *ret_is_copied, struct err *e)
{
	own_fd int lock = session_lock_workspace(m->workspaces, m->from);

	*ret_is_copied = lock == -EBUSY;
	if (lock == -EBUSY)
		return move_copy(m, e);
	/* Without a lock somebody began to remove it: half of it is not a workspace. */
	if (lock < 0)
		return move_fail(m, -lock, e);
	return renameat(m->workspaces, m->from, m->workspaces, m->to) < 0 ? move_fail(m, errno, e)
									  : 0;
}

int session_move_workspace(
	int root, const char *id, uint64_t from, uint64_t to, bool *ret_is_copied, struct err *e)
{
	struct move m = { .id = id, .workspaces = -1 };
	own_fd int folder = session_open_folder(root, id, e), workspaces = -1;
	int r;

	if (folder == -ENOENT)
		return err_set(e, ERR_REFUSED, ENOENT,
			"cannot move session %s: its folder is not here", id);
	workspaces = folder < 0 ? folder : session_open_workspaces(folder, e);
	if (workspaces == -ENOENT)
		return err_set(e, ERR_REFUSED, ENOENT,
			"cannot move session %s: it has no workspace here", id);
	if (workspaces < 0)
		return workspaces;
	m.workspaces = workspaces;
	r = choose(&m, from, to, e);
	if (r == 0)
		r = session_move_move(&m, ret_is_copied, e);
	if (r == 0)
		remove_older(&m, to);
	return r;
}
