/*
 * change_side - the text of a file before and after a run.
 *
 * Runs as:  the operator.
 * Reads:    single files of the project, the run's layer and its base; no link is followed.
 * Must not: wait for a pipe that lies where a file was; show a file that is not the one that the
 *           effects speak of as what it was.
 */
#include "change/patch/change_patch_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "change/effects/change_base.h"
#include "change/scan/change_open.h"

void change_side_done(struct change_side *s)
{
	free(s->bytes);
	s->bytes = NULL;
}

static int64_t in_ns(const struct timespec *t)
{
	return t->tv_sec * (int64_t)1000000000 + t->tv_nsec;
}

static bool side_is_same(const struct stat *st, const struct change_signature *s)
{
	return st->st_ino == s->inode && (uint64_t)st->st_size == s->size &&
	       in_ns(&st->st_mtim) == s->modified_ns && in_ns(&st->st_ctim) == s->changed_ns;
}

static void side_fail(struct change_side *s, int num)
{
	s->found = num == EFBIG ? CHANGE_SIDE_LARGE : CHANGE_SIDE_FAILED;
	s->failure = num;
}

static void side_read_file(int fd, struct change_side *ret)
{
	int r = file_read_all(fd, CHANGE_MAX_TEXT, &ret->bytes, &ret->size);

	if (r < 0)
		side_fail(ret, -r);
}

static void side_read_link(int fd, struct change_side *ret)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target));

	ret->bytes = n < 0 ? NULL : malloc((size_t)n + 1);
	if (!ret->bytes) {
		side_fail(ret, n < 0 ? errno : ENOMEM);
		return;
	}
	ret->size = (size_t)n;
	memcpy(ret->bytes, target, ret->size);
}

/*
 * Opens a file or a link below `top`; with a signature only the one it is of. -ESTALE: it is
 * another one.
 */
static int open_side(
	int top, const char *path, enum change_type type, const struct change_signature *only)
{
	int how = type == CHANGE_LINK ? O_PATH : O_RDONLY | O_NONBLOCK | O_NOCTTY;
	own_fd int fd = file_open_beneath(top, path, how | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR || fd == -ENXIO ? -ESTALE
										       : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & S_IFMT) != (type == CHANGE_LINK ? S_IFLNK : S_IFREG) ||
		(only && !side_is_same(&st, only)))
		return -ESTALE;
	return take_fd(&fd);
}

static void side_read_side(int fd, enum change_type type, struct change_side *ret)
{
	if (fd == -ESTALE)
		ret->found = CHANGE_SIDE_CHANGED;
	else if (fd < 0)
		side_fail(ret, -fd);
	else if (type == CHANGE_LINK)
		side_read_link(fd, ret);
	else
		side_read_file(fd, ret);
}

/* What the keeper put aside; false: nothing. */
static bool side_read_base(
	const struct change_patch *k, const struct change_effect *x, struct change_side *ret)
{
	int r = x->has_base && k->base >= 0
			? change_base_read(k->base, (size_t)(x - k->effects->items), x->before.hash,
				  CHANGE_MAX_TEXT, &ret->bytes, &ret->size)
			: -ENOENT;

	ret->is_kept = r == 0;
	if (r < 0 && r != -ENOENT)
		side_fail(ret, -r);
	return r != -ENOENT;
}

void change_side_before(
	const struct change_patch *k, const struct change_effect *x, struct change_side *ret)
{
	const char *path = x->from ? x->from : x->path;
	int top = change_below_of(k->git, k->below, &path);
	own_fd int fd = top < 0 ? -ESTALE : open_side(top, path, x->before.type, &x->below);

	*ret = (struct change_side){ 0 };
	if (fd == -ESTALE && x->before.type == CHANGE_FILE && side_read_base(k, x, ret))
		return;
	side_read_side(fd, x->before.type, ret);
}

void change_side_after(
	const struct change_patch *k, const struct change_effect *x, struct change_side *ret)
{
	struct change_right right = CHANGE_NO_RIGHT;
	const char *path = x->path;
	int top = change_layer_of(k->git, k->layer, &path);
	own_fd int fd = -1;

	*ret = (struct change_side){ 0 };
	fd = x->after.type == CHANGE_LINK || k->is_growing
		     ? open_side(top, path, x->after.type, NULL)
		     : change_open(top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &right);
	side_read_side(fd, x->after.type, ret);
	change_right_done(&right);
}
