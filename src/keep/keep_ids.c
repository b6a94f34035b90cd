/*
 * keep_ids - whose files and whose processes a cage's are on the host.
 *
 * Runs as: the keeper; what is done here needs root, and happens for root only.
 * Leaves:  detached trees in which files of the owner of a tree's top are those of the cage's
 *          user, and what the cage writes is that owner's: the operator's files keep their owner.
 *
 * A user's cage is the user. Root's cage is an id that belongs to nobody: the number of the
 * keeper's process on top of a reserved base, so that two runs at one time never share it and
 * nothing has to be remembered.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "cage/cage_break.h"
#include "keep/keep_inside.h"

/* Above what systemd, useradd and newuidmap give away, below the sign bit; pids end at 2^22. */
#define RESERVED_BASE 2130706432U
#define RESERVED_SIZE (1U << 22)

/*
 * An id of this user namespace that is nobody's: from the reserved range, or where a container has
 * fewer ids, from the upper half of its largest range; 0 if there is none.
 */
static uint32_t pick_id(const char *path, uint32_t chance)
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

int keep_choose_ids(const struct plan *p, struct cage_ids *ret, struct err *e)
{
	bool is_reserved = false;

	for (uint32_t i = 0; i < p->op_count; i++)
		if (plan_ops(p)[i].kind == PLAN_IDS)
			is_reserved = str_eq(plan_str(p, plan_ops(p)[i].a), "reserved");
	*ret = (struct cage_ids){ .uid = geteuid(), .gid = getegid() };
	if (!is_reserved)
		return 0;
	ret->is_given = true;
	if (cage_is_broken("ids"))
		return 0;
	ret->uid = pick_id("/proc/self/uid_map", (uint32_t)getpid());
	ret->gid = pick_id("/proc/self/gid_map", (uint32_t)getpid());
	if (!ret->uid || !ret->gid)
		return err_set(e, ERR_REFUSED, EPERM,
			"root's cages run as an id of their own, and this container has none to "
			"give; run bawn as an ordinary user");
	return 0;
}

/* --- trees --- */

struct idmap {
	uid_t uid;
	gid_t gid;
	int fd;
};

static int make_tree(
	const struct cage_start *start, const struct plan_op *op, struct idmap *map, struct err *e)
{
	const char *from = plan_str(start->plan, op->a);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	own_fd int source = cage_open_source(start, from, e);
	own_fd int tree = -1;
	struct stat st;

	if (source < 0)
		return source;
	if (fstat(source, &st) < 0)
		return err_set(e, ERR_SYS, errno, "cannot look at '%s': %s", from, strerror(errno));
	if (map->fd < 0 || map->uid != st.st_uid || map->gid != st.st_gid) {
		if (map->fd >= 0)
			close(map->fd);
		*map = (struct idmap){ st.st_uid, st.st_gid, -1 };
		map->fd = cage_make_idmap(&start->ids, st.st_uid, st.st_gid, e);
	}
	if (map->fd < 0)
		return map->fd;
	attr.userns_fd = (unsigned)map->fd;
	tree = open_tree(
		source, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 ||
		mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return err_set(e, ERR_REFUSED, errno,
			"cannot show '%s' with its owner mapped to the cage's user: %s; its file "
			"system may not support that; as an ordinary user it is not needed",
			from, strerror(errno));
	return take_fd(&tree);
}

int keep_trees_make(struct keep_trees *ret, const struct cage_start *start, struct err *e)
{
	const struct plan *p = start->plan;
	struct idmap map = { .fd = -1 };
	int r = 0;

	*ret = (struct keep_trees){ 0 };
	if (!start->ids.is_given)
		return 0;
	ret->fds = malloc(p->op_count * sizeof(int));
	if (!ret->fds)
		return err_set(e, ERR_SYS, ENOMEM, "not enough memory for the plan's trees");
	for (; r == 0 && ret->count < p->op_count; ret->count++) {
		const struct plan_op *op = &plan_ops(p)[ret->count];
		bool is_mapped = op->flags & PLAN_IDMAPPED;

		ret->fds[ret->count] = is_mapped ? make_tree(start, op, &map, e) : -1;
		r = is_mapped && ret->fds[ret->count] < 0 ? ret->fds[ret->count] : 0;
	}
	if (map.fd >= 0)
		close(map.fd);
	return r;
}

void keep_trees_done(struct keep_trees *trees)
{
	for (uint32_t i = 0; i < trees->count; i++)
		if (trees->fds[i] >= 0)
			close(trees->fds[i]);
	free(trees->fds);
	*trees = (struct keep_trees){ 0 };
}
