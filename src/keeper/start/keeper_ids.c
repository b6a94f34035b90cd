/*
 * keeper_ids - who a cage's processes are on the host.
 *
 * Runs as: the keeper.
 *
 * A user's cage is the user, with the group of the project where that is another one of the user's:
 * keeper_team.c. Root's cage is an id that belongs to nobody: the number of the
 * keeper's process on top of a reserved base, so that two runs at one time never share it and
 * nothing has to be remembered. Where pids begin anew, in another pid namespace, so do the ids.
 * Runs of sessions share files with others that come later, and are the one that no pid is.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/num.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "keeper/start/keeper_sources.h"

/* Above what systemd, useradd and newuidmap give away, below the sign bit; pids end at 2^22. */
#define RESERVED_BASE 2130706432U
#define RESERVED_SIZE (1U << 22)

/*
 * An id of this user namespace that is nobody's: from the reserved range, or where a container has
 * fewer ids, from the upper half of its largest range; 0 if there is none.
 */
static uint32_t ids_pick_id(const char *path, uint32_t chance)
{
	char text[4096];
	uint64_t best = 0, best_size = 1;

	if (file_read_small(path, text, sizeof(text)) <= 0)
		return 0;
	for (char *line = text; line && *line; line = strchr(line, '\n')) {
		uint64_t range[3]; /* from, outside, how many */

		line += *line == '\n';
		if (!num_scan(line, 10, range, 3))
			break;
		if (range[0] <= RESERVED_BASE &&
			range[0] + range[2] >= (uint64_t)RESERVED_BASE + RESERVED_SIZE)
			return RESERVED_BASE + chance % RESERVED_SIZE;
		if (range[2] > best_size) {
			best = range[0] + range[2] / 2;
			best_size = range[2];
		}
	}
	return best ? (uint32_t)(best + chance % (best_size / 2)) : 0;
}

/* The group of the project, which is one of the operator's others. */
static int choose_team(const char *project, struct cage_ids *ret, struct err *e)
{
	struct stat st;

	if (stat(project, &st) < 0 || st.st_gid == 0 || !ids_has_group(st.st_gid))
		return err_set(e, ERR_REFUSED, EPERM,
			"cannot give the cage the group of '%s': it is not one of yours any more",
			project);
	ret->gid = st.st_gid;
	ret->is_team = true;
	return 0;
}

int keeper_choose_ids(const struct keeper_request *q, struct cage_ids *ret, struct err *e)
{
	bool in_session = q->workspace >= 0 || plan_find(q->plan, PLAN_AWAIT, NULL);
	uint32_t chance = in_session ? 0 : (uint32_t)getpid();
	struct stat pids;

	*ret = (struct cage_ids){ .uid = geteuid(), .gid = getegid() };
	if (plan_find(q->plan, PLAN_IDS, "team"))
		return choose_team(q->project, ret, e);
	if (!plan_find(q->plan, PLAN_IDS, "reserved"))
		return 0;
	ret->is_given = true;
	if (cage_is_broken("ids"))
		return 0;
	if (stat("/proc/self/ns/pid", &pids) == 0)
		chance += (uint32_t)pids.st_ino * 2654435761U;
	ret->uid = ids_pick_id("/proc/self/uid_map", chance);
	ret->gid = ids_pick_id("/proc/self/gid_map", chance);
	if (!ret->uid || !ret->gid)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EPERM,
				"cannot run as root here: a cage of root needs an id of its own, "
				"and this container has none"),
			"run bawn as an ordinary user");
	return 0;
}
