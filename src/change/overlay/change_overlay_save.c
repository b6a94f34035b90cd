/*
 * change_overlay_save - what an overlay keeps, replaced as a whole.
 *
 * Runs as:  the operator, with the overlay's lock.
 * Must not: change the kept tree: it is exchanged for another one, which is complete and on disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/tree.h"
#include "change/overlay/change_overlay_inside.h"

int change_overlay_tree(const struct change_overlay *o, struct err *e)
{
	int fd = file_open_name(o->folder, "tree", O_RDONLY | O_DIRECTORY);

	return fd < 0 ? change_overlay_fail(o, "open the tree of", -fd, e) : fd;
}

int change_overlay_digest(
	const struct change_overlay *o, char ret[static SHA256_HEX_SIZE], struct err *e)
{
	own_fd int tree = change_overlay_tree(o, e);
	int r = tree < 0 ? tree : tree_digest(tree, ret, e);

	if (tree >= 0 && r < 0)
		err_prefix(e, "cannot digest the overlay '%s'", o->path);
	return r;
}

static bool overlay_save_has(const struct change_overlay *o, const char *name)
{
	struct stat st;

	return fstatat(o->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int change_overlay_recover(const struct change_overlay *o, struct err *e)
{
	if (overlay_save_has(o, "tree") || !overlay_save_has(o, "tree.old"))
		return 0;
	return renameat(o->folder, "tree.old", o->folder, "tree") < 0
		       ? change_overlay_fail(o, "restore", errno, e)
		       : 0;
}

/* Where two names cannot be exchanged, there is a moment without a tree; recovering knows it. */
static int put_in_place(const struct change_overlay *o)
{
	if (renameat2(o->folder, "tree.new", o->folder, "tree", RENAME_EXCHANGE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (renameat(o->folder, "tree", o->folder, "tree.old") < 0)
		return -errno;
	if (renameat(o->folder, "tree.new", o->folder, "tree") == 0)
		return 0;
	/* As it was. */
	(void)renameat(o->folder, "tree.old", o->folder, "tree");
	return -errno;
}

static int overlay_save_make(const struct change_overlay *o, const char *name)
{
	if (mkdirat(o->folder, name, 0700) < 0)
		return -errno;
	return file_open_name(o->folder, name, O_RDONLY | O_DIRECTORY);
}

struct saving {
	const struct change_progress *progress;
	struct tree_counts counts;
};

static int overlay_save_tell(void *of)
{
	const struct saving *s = of;
	const struct tree_counts *c = &s->counts;

	if (s->progress->tell)
		s->progress->tell(s->progress->of, "saving the overlay",
			c->files + c->folders + c->links + c->others, 0);
	return 0;
}

static int overlay_save_copy(
	int from, int tree, int links, int older, struct saving *s, struct err *e)
{
	/* Set-user-id would mean the operator's own id here; in a cage it never has an effect. */
	const struct tree_options options = { .drops = S_ISUID | S_ISGID,
		.opens_up = true,
		.links = links,
		.older = older,
		.counts = &s->counts,
		.step = overlay_save_tell,
		.of = s };

	return tree_copy(from, tree, &options, e);
}

/* Fills tree.new; from = -1: with nothing. */
static int write_new(struct change_overlay *o, int from, struct saving *s,
	char ret_digest[static SHA256_HEX_SIZE], struct err *e)
{
	own_fd int tree = overlay_save_make(o, "tree.new"),
		   links = overlay_save_make(o, "links.new");
	own_fd int older = file_open_name(o->folder, "tree", O_RDONLY | O_DIRECTORY);
	int r = 0;

	if (tree < 0 || links < 0)
		return change_overlay_fail(o, "write to", tree < 0 ? -tree : -links, e);
	if (from >= 0)
		r = overlay_save_copy(from, tree, links, older, s, e);
	else if (fchmod(tree, 0755) < 0)
		r = change_overlay_fail(o, "write to", errno, e);
	if (r == 0)
		r = tree_digest(tree, ret_digest, e);
	if (r == 0 && syncfs(tree) < 0)
		r = change_overlay_fail(o, "write to", errno, e);
	return r;
}

static int replace(struct change_overlay *o, int from, struct saving *s, struct err *e)
{
	char digest[SHA256_HEX_SIZE] = "";
	unsigned left;
	int r = change_overlay_prune(o, &left, e);

	if (r == 0)
		r = write_new(o, from, s, digest, e);
	if (r == 0) {
		r = put_in_place(o);
		if (r < 0)
			change_overlay_fail(o, "write to", -r, e);
	}
	if (r < 0) {
		/* What cannot be removed now is left for the next one. */
		change_overlay_prune(o, &left, NULL);
		err_prefix(e, "cannot save the overlay '%s', which is as it was before", o->path);
		return r;
	}
	memcpy(o->digest, digest, sizeof(digest));
	r = fsync(o->folder) < 0 ? change_overlay_fail(o, "write to", errno, e) : 0;
	if (r == 0)
		r = change_overlay_note(o, e);
	if (r == 0)
		r = change_overlay_prune(o, &left, e);
	if (r < 0)
		err_prefix(e, "cannot finish saving the overlay '%s'", o->path);
	return r;
}

int change_overlay_save(struct change_overlay *o, int from, const struct change_progress *progress,
	uint64_t *ret_skipped, struct err *e)
{
	struct saving s = { .progress = progress };
	int r = replace(o, from, &s, e);

	*ret_skipped = s.counts.skipped;
	return r;
}

int change_overlay_reset(struct change_overlay *o, struct err *e)
{
	struct saving s = { 0 };

	return replace(o, -1, &s, e);
}

int change_overlay_prune(struct change_overlay *o, unsigned *ret_count, struct err *e)
{
	static const char *const names[] = { "tree.new", "tree.old", "links.new",
		"overlay.json.new" };
	int r = change_overlay_recover(o, e);

	*ret_count = 0;
	for (size_t i = 0; r == 0 && i < COUNT_OF(names); i++) {
		*ret_count += i < 2 && overlay_save_has(o, names[i]);
		r = tree_remove(o->folder, names[i], e);
	}
	return r;
}
