/*
 * host_probe_cgroup - which limits a cgroup of our own could have.
 *
 * Runs as:     the operator, in the process that asked.
 * Enters with: a place in a cgroup of each hierarchy.
 * Leaves:      no cgroup: each one it makes is empty and removed at once.
 * Must not:    change a cgroup that exists, a file in one, or a process's place.
 *
 * A scope of the user's manager counts: it is made when a run needs it.
 *
 * With version 1 each controller has a tree of its own, and a new cgroup has its controller's files
 * always. With version 2 it has those its parent hands down.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cgroup/cgroup_place.h"
#include "cgroup/cgroup_scope.h"
#include "host/host_probe.h"

static const struct {
	enum host_ability ability;
	const char *file_v1, *file_v2;
} controllers[CGROUP_COUNT] = {
	[CGROUP_MEMORY] = { HOST_CGROUP_MEMORY, "memory.limit_in_bytes", "memory.max" },
	[CGROUP_CPU] = { HOST_CGROUP_CPU, "cpu.cfs_quota_us", "cpu.max" },
	[CGROUP_PIDS] = { HOST_CGROUP_PIDS, "pids.max", "pids.max" },
};

/*
 * Makes a cgroup below dir_fd; ret[i] says whether it has files[i]; removes it. Where nothing is to
 * be tried, it is taken to have them if it could be made. 0 or an errno.
 */
static int try_child(int dir_fd, const char *const files[], bool ret[], int count, bool tries)
{
	char name[32], path[64];

	for (int i = 0; i < count && !tries; i++)
		ret[i] = true;
	if (!tries)
		return faccessat(dir_fd, ".", W_OK, AT_EACCESS) < 0 ? errno : 0;
	snprintf(name, sizeof(name), "bawn-probe-%d", getpid());
	if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
		return errno;
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", name, files[i]);
		ret[i] = faccessat(dir_fd, path, W_OK, AT_EACCESS) == 0;
	}
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? errno : 0;
}

static void try_v1(struct host *h, int i, const struct cgroup_place *place, bool tries)
{
	own_fd int fd = cgroup_place_open(place->dir, CGROUP_SUPER_MAGIC);
	bool has_file = false;
	int num = fd < 0 ? -fd : try_child(fd, &controllers[i].file_v1, &has_file, 1, tries);
	enum host_cause missing = has_file ? HOST_CAUSE_NONE : HOST_CAUSE_NO_CGROUP;

	host_set(h, controllers[i].ability, num ? HOST_CAUSE_CGROUP_V1 : missing, num);
}

/* What is known of the version 2 tree, from our place up to the level looked at. */
struct climb {
	bool found[CGROUP_COUNT];
	bool undivided[CGROUP_COUNT]; /* a level that may be divided keeps it to itself */
	bool exists[CGROUP_COUNT];
	int refusal; /* the first errno */
	bool tries;  /* or only looks */
};

static void look_at_level(struct climb *climb, const struct cgroup_level *level)
{
	const char *files[CGROUP_COUNT];
	bool has_file[CGROUP_COUNT] = { 0 }, hands_down = false;
	int num = level->refusal;

	for (int i = 0; i < CGROUP_COUNT; i++) {
		files[i] = controllers[i].file_v2;
		hands_down |= !climb->found[i] && level->hands_down[i];
		climb->exists[i] |= level->has[i];
	}
	if (num == 0 && hands_down)
		num = try_child(level->fd, files, has_file, CGROUP_COUNT, climb->tries);
	for (int i = 0; i < CGROUP_COUNT; i++) {
		climb->found[i] |= num == 0 && level->hands_down[i] && has_file[i];
		climb->undivided[i] |= num == 0 && level->has[i];
	}
	if (climb->refusal == 0)
		climb->refusal = num;
}

/* Looks at each level from our place to the top of the mount, until nothing is left to find. */
static void climb_v2(struct climb *climb, const struct cgroup_place *place)
{
	own(cgroup_level) struct cgroup_level level;

	cgroup_level_init(&level, place);
	while (cgroup_level_next(&level)) {
		look_at_level(climb, &level);
		if (climb->found[0] && climb->found[1] && climb->found[2])
			return;
	}
}

static void set_v2(struct host *h, int i, const struct climb *climb)
{
	enum host_ability ability = controllers[i].ability;

	if (climb->found[i])
		host_set(h, ability, HOST_CAUSE_NONE, 0);
	else if (climb->undivided[i])
		host_set(h, ability, HOST_CAUSE_UNDIVIDED, 0);
	else if (climb->exists[i])
		host_set(h, ability, HOST_CAUSE_NO_DELEGATION, climb->refusal);
	else
		host_set(h, ability, HOST_CAUSE_NO_CGROUP, 0);
}

/* Where a place of our own may not be divided, a scope of the user's manager may have it. */
static void ask_manager(struct host *h, const struct cgroup_places *places)
{
	bool offered[CGROUP_COUNT] = { 0 };
	bool has_systemd = access("/run/systemd/system", F_OK) == 0;
	int asked = 1;

	for (int i = 0; i < CGROUP_COUNT; i++) {
		enum host_ability ability = controllers[i].ability;
		enum host_cause cause = h->abilities[ability].cause;

		if (places->v1[i].dir[0] ||
			(cause != HOST_CAUSE_NO_DELEGATION && cause != HOST_CAUSE_UNDIVIDED))
			continue;
		if (asked > 0)
			asked = cgroup_scope_offers(offered);
		if (asked == 0)
			host_set(h, ability,
				offered[i] ? HOST_CAUSE_NONE : HOST_CAUSE_MANAGER_LACKS, 0);
		else if (has_systemd && cause == HOST_CAUSE_NO_DELEGATION)
			host_set(h, ability, HOST_CAUSE_NO_MANAGER, -asked);
	}
}

void host_probe_cgroups(struct host *h, bool tries)
{
	struct cgroup_places places;
	struct climb climb = { .tries = tries };
	bool needs_v2 = false;

	cgroup_place_find(&places);
	for (int i = 0; i < CGROUP_COUNT; i++) {
		bool has_v1 = places.v1[i].dir[0] != '\0';

		if (has_v1)
			try_v1(h, i, &places.v1[i], tries);
		h->cgroup_version |= has_v1;
		needs_v2 |= !has_v1;
	}
	if (needs_v2 && places.v2.dir[0])
		climb_v2(&climb, &places.v2);
	for (int i = 0; i < CGROUP_COUNT; i++)
		if (!places.v1[i].dir[0])
			set_v2(h, i, &climb);
	ask_manager(h, &places);
	if (h->cgroup_version == 0 && places.v2.dir[0])
		h->cgroup_version = 2;
}
