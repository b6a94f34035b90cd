/* In which way a project can be shown, as far as that shows before or by trying. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cage/cage.h"
#include "cli/cli.h"

/*
 * In a user's cage there are one user and one group, and an overlay cannot copy up what belongs to
 * others: every change of such a file would fail by itself, as EOVERFLOW.
 */
static const char *find_others(const struct host *h, const struct cli_place *place,
	const char **ret_what, struct stat *ret)
{
	const char *const paths[] = { place->project, place->repository.folder };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		*ret_what = i == 0 ? "project" : "folder of its git";
		if (!h->is_root && paths[i][0] && stat(paths[i], ret) == 0 &&
			(ret->st_uid != geteuid() || ret->st_gid != getegid()))
			return paths[i];
	}
	return NULL;
}

void cli_look_at_project(struct host *h, const struct cli_place *place)
{
	const char *what;
	struct stat st;

	if (find_others(h, place, &what, &st))
		h->no_capture |= HOST_CAPTURE_ON_DISK | HOST_CAPTURE_IN_POOL;
}

void cli_say_copied(const struct plan *p, const struct host *h, const struct cli_place *place)
{
	const struct plan_op *op = plan_find_captured(p);
	const char *what, *path;
	struct stat st;

	if (!op || !(op->flags & PLAN_COPIED))
		return;
	path = find_others(h, place, &what, &st);
	if (path && st.st_uid != geteuid())
		cli_complain("the %s belongs to user %u, and no overlay can change it: it is "
			     "copied for this run",
			what, (unsigned)st.st_uid);
	else if (path)
		cli_complain("the %s belongs to group %u, and no overlay can change it: it is "
			     "copied for this run; chgrp -R %u '%s' would spare that",
			what, (unsigned)st.st_gid, (unsigned)getegid(), path);
}

/* The way of capturing that the start failed at; 0: it failed at something else. */
static unsigned failed_capture(const struct plan_op *op)
{
	if ((op->kind != PLAN_PROJECT && op->kind != PLAN_GIT) || !(op->flags & PLAN_CAPTURED))
		return 0;
	if (op->flags & PLAN_COPIED)
		return HOST_CAPTURE_BY_COPY;
	return op->flags & PLAN_IN_POOL ? HOST_CAPTURE_IN_POOL : HOST_CAPTURE_ON_DISK;
}

static bool failed_to_hold(const struct plan_op *op)
{
	return op->kind == PLAN_PROTECT || op->flags & PLAN_HELD;
}

bool cli_note_failed_way(struct host *h, const struct plan *p, int failed_op, const struct err *e)
{
	const struct plan_op *op = failed_op >= 0 ? &plan_ops(p)[failed_op] : NULL;
	unsigned capture = op ? failed_capture(op) : 0;

	if (op && failed_to_hold(op)) {
		/* Git's folder can be shown for reading; the project has nothing else. */
		if (cage_layer_of(p, op) == CAGE_LAYER_GIT)
			h->no_git_hold = true;
		else
			h->no_hold = true;
		return true;
	}
	if (e->kind != ERR_SYS || !capture || capture == HOST_CAPTURE_BY_COPY)
		return false;
	h->no_capture |= capture;
	/* A kernel without overlays has none anywhere. */
	if (e->num == ENODEV)
		h->no_capture |= HOST_CAPTURE_ON_DISK | HOST_CAPTURE_IN_POOL;
	return true;
}
