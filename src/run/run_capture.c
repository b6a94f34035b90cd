/* In which way a project can be shown, as far as that shows before or by trying. */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ids.h"
#include "base/str.h"
#include "cage/cage.h"
#include "run/run_spec.h"

/*
 * In a user's cage there are one user and one group, and an overlay cannot copy up what belongs to
 * others: every change of such a file would fail by itself, as EOVERFLOW. So the group of the cage
 * is the project's, if the operator is in that, and what is left of others is copied into the
 * layer. Only a layer on disk begins with something.
 */
static bool is_of_others(const char *path, struct stat *ret)
{
	return path[0] && stat(path, ret) == 0 &&
	       (ret->st_uid != ids_user() || ret->st_gid != ids_group());
}

bool run_is_of_others(const struct run_place *place)
{
	struct stat unused;

	return is_of_others(place->project, &unused);
}

/* Root's own group opens more than that of a team. */
static bool has_team(const struct stat *project)
{
	return project->st_gid != ids_group() && project->st_gid != 0 &&
	       ids_has_group(project->st_gid) && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
}

void run_look_at_project(struct host *h, const struct run_place *place)
{
	struct stat project, git;
	bool is_others;

	if (h->is_root)
		return;
	is_others = is_of_others(place->project, &project);
	h->has_team = is_others && !h->no_team && has_team(&project);
	if (is_others || is_of_others(place->repository.folder, &git))
		h->no_capture |= h->in_session ? HOST_CAPTURE_ON_DISK | HOST_CAPTURE_IN_POOL
					       : HOST_CAPTURE_IN_POOL;
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
	return op->kind == PLAN_PROTECT || op->flags & PLAN_PROTECTS;
}

bool run_note_failed_way(struct host *h, const struct plan *p, int failed_op, const struct err *e)
{
	const struct plan_op *op = failed_op >= 0 ? &plan_ops(p)[failed_op] : NULL;
	unsigned capture = op ? failed_capture(op) : 0;

	if (op && op->kind == PLAN_IDS) {
		h->no_team = str_eq(plan_str(p, op->a), "team");
		return h->no_team;
	}
	if (op && failed_to_hold(op)) {
		/* Git's folder can be shown for reading; the project has nothing else. */
		if (cage_layer_of(op) == CAGE_LAYER_GIT)
			h->no_git_protect = true;
		else
			h->no_protect = true;
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
