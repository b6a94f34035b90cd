/*
 * keeper_spare - empty layers, handed on from a run that wrote nothing to one that comes later.
 *
 * Runs as:  the keeper.
 * Leaves:   in the state a few layers as new: STATE/layers/0, 1 …
 * Must not: hand on a layer that was written to, or one that a mount still uses; take one for empty
 *           without having looked.
 *
 * To make and delete the folders of a layer is what a run that writes nothing costs a disk: a file
 * system without a journal looks at every inode that was deleted a moment ago before it makes
 * another. A rename makes none. It is also what keeps two keepers from the same layer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "cage/cage_break.h"
#include "keeper/start/keeper_layers.h"

/* As seen from a run's folder, STATE/runs/RUN. */
#define SPARES      "../../layers"
#define MOST_SPARES 4 /* as many runs as mostly go on at a time */
#define PATH_SIZE   (sizeof(SPARES) + 16)
#define LIST_SIZE   256 /* names of attributes */

static void spare_print_path(unsigned n, char ret[static PATH_SIZE])
{
	snprintf(ret, PATH_SIZE, SPARES "/%u", n);
}

/* --- is it as new? --- */

/* Has a folder no entry but those, of which there are so many? */
static bool has_only(int folder, const char *one, const char *other, int *ret_count)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;

	*ret_count = 0;
	while ((entry = file_next_entry(&entries))) {
		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		if (!(one && str_eq(entry->name, one)) && !(other && str_eq(entry->name, other)))
			return false;
		++*ret_count;
	}
	return entries.failure == 0;
}

/* An overlay gives its upper folder a number of its own; the next one is another. */
static const char *const marks[] = { "user.overlay.uuid", "trusted.overlay.uuid" };

/* What is taken for as new: who we are where the owner is -1. */
struct spare_wish {
	uid_t uid;
	gid_t gid;
	mode_t mode; /* of the upper folder */
};

/*
 * Which of those attributes a folder has, as bits; -1: it has another, which does not come from the
 * machine.
 */
static int find_attributes(int folder, const char *const *known, size_t count)
{
	char names[LIST_SIZE];
	ssize_t n = flistxattr(folder, names, sizeof(names));
	int found = 0;

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		size_t i = 0;

		while (i < count && !str_eq(names + at, known[i]))
			i++;
		if (i < count)
			found |= 1 << i;
		else if (!str_eq(names + at, "security.selinux"))
			return -1;
	}
	return n < 0 ? -1 : found;
}

static bool forget_mount(int upper)
{
	int found = find_attributes(upper, marks, COUNT_OF(marks));

	for (size_t i = 0; found > 0 && i < COUNT_OF(marks); i++)
		if (found & 1 << i && fremovexattr(upper, marks[i]) < 0)
			return false;
	return found >= 0;
}

static bool is_of(int folder, const struct spare_wish *wish, struct stat *ret)
{
	return fstat(folder, ret) == 0 && ret->st_uid == wish->uid && ret->st_gid == wish->gid &&
	       !(ret->st_mode & (S_IWGRP | S_IWOTH) & ~wish->mode);
}

/* Nothing in it, the project's mode, and times of now. */
static bool renew_upper(int top, const struct spare_wish *wish)
{
	own_fd int upper = file_open_name(top, "upper", O_RDONLY | O_DIRECTORY);
	struct stat st;
	int count;

	return upper >= 0 && is_of(upper, wish, &st) && has_only(upper, NULL, NULL, &count) &&
	       forget_mount(upper) &&
	       ((st.st_mode & 07777) == wish->mode || fchmod(upper, wish->mode) == 0) &&
	       futimens(upper, NULL) == 0;
}

/* What the overlay made for itself is empty, and goes: it makes its own each time. */
static bool renew_work(int top, const struct spare_wish *wish)
{
	static const char *const tried[] = { KEEPER_LAYER_ATTRIBUTE };
	own_fd int work = file_open_name(top, "work", O_RDONLY | O_DIRECTORY);
	struct stat st;
	int count;

	return work >= 0 && is_of(work, wish, &st) && has_only(work, "work", NULL, &count) &&
	       find_attributes(work, tried, COUNT_OF(tried)) == 1 &&
	       (!count || unlinkat(work, "work", AT_REMOVEDIR) == 0);
}

static bool renew(int top, const struct spare_wish *wish)
{
	struct stat st;
	int count;

	if (cage_is_broken("spare"))
		return true;
	return is_of(top, wish, &st) && has_only(top, "upper", "work", &count) && count == 2 &&
	       renew_upper(top, wish) && renew_work(top, wish);
}

/* --- taking and giving --- */

int keeper_spare_take(int folder, const char *name, const struct stat *owner)
{
	struct spare_wish wish = { owner->st_uid, owner->st_gid, owner->st_mode };
	own_fd int top = -1;
	char path[PATH_SIZE];
	struct err e;
	int r = -ENOENT;

	if (wish.uid == (uid_t)-1)
		wish.uid = geteuid();
	if (wish.gid == (gid_t)-1)
		wish.gid = getegid();
	for (unsigned n = 0; r < 0 && n < MOST_SPARES; n++) {
		spare_print_path(n, path);
		r = renameat(folder, path, folder, name) < 0 ? -errno : 0;
	}
	if (r < 0)
		return -ENOENT;
	top = file_open_name(folder, name, O_RDONLY | O_DIRECTORY);
	if (top >= 0 && renew(top, &wish))
		return take_fd(&top);
	/* Somebody was in it. What cannot be removed is put aside, and the run's own is made anew.
	 */
	if (tree_remove(folder, name, &e) == 0 || renameat(folder, name, folder, "spoiled") == 0)
		return -ENOENT;
	return -errno;
}

bool keeper_spare_give(int folder, const char *name)
{
	char path[PATH_SIZE], inner[64];
	bool is_made = false;

	/* The overlay's own folder, which nobody may enter: du and backups would complain of it.
	 * Where it stays, the one who takes the layer removes it. */
	snprintf(inner, sizeof(inner), "%s/work/work", name);
	(void)unlinkat(folder, inner, AT_REMOVEDIR);
	for (unsigned n = 0; n < MOST_SPARES;) {
		spare_print_path(n, path);
		if (renameat2(folder, name, folder, path, RENAME_NOREPLACE) == 0)
			return true;
		if (errno == EEXIST) {
			n++;
		} else if (errno == ENOENT && !is_made) {
			is_made = true;
			if (mkdirat(folder, SPARES, 0700) < 0 && errno != EEXIST)
				return false;
		} else {
			return false;
		}
	}
	return false;
}
