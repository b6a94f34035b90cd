/* In which way a project's writes can be captured, as far as that shows before or by trying. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/cli.h"

/*
 * In a user's cage there are one user and one group, and an overlay cannot copy up what belongs to
 * others: every change of such a file would fail by itself, as EOVERFLOW.
 */
static bool is_of_others(const struct host *h, const struct cli_place *place, struct stat *ret)
{
	return !h->is_root && stat(place->project, ret) == 0 &&
	       (ret->st_uid != geteuid() || ret->st_gid != getegid());
}

void cli_look_at_project(struct host *h, const struct cli_place *place)
{
	struct stat st;

	if (is_of_others(h, place, &st))
		h->no_capture |= HOST_CAPTURE_ON_DISK | HOST_CAPTURE_IN_POOL;
}

void cli_say_copied(const struct plan *p, const struct host *h, const struct cli_place *place)
{
	const struct plan_op *op = plan_find_captured(p);
	struct stat st;

	if (!op || !(op->flags & PLAN_COPIED) || !is_of_others(h, place, &st))
		return;
	if (st.st_uid != geteuid())
		cli_complain("the project belongs to user %u, and no overlay can change it: it is "
			     "copied for this run",
			(unsigned)st.st_uid);
	else
		cli_complain("the project belongs to group %u, and no overlay can change it: it is "
			     "copied for this run; chgrp -R %u '%s' would spare that",
			(unsigned)st.st_gid, (unsigned)getegid(), place->project);
}

unsigned cli_failed_capture(const struct plan *p, int failed_op)
{
	const struct plan_op *op = failed_op < 0 ? NULL : &plan_ops(p)[failed_op];

	if (!op || (op->kind != PLAN_PROJECT && op->kind != PLAN_GIT) ||
		!(op->flags & PLAN_CAPTURED))
		return 0;
	if (op->flags & PLAN_COPIED)
		return HOST_CAPTURE_BY_COPY;
	return op->flags & PLAN_IN_POOL ? HOST_CAPTURE_IN_POOL : HOST_CAPTURE_ON_DISK;
}
