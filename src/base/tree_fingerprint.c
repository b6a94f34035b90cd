/*
 * tree_fingerprint - is a tree still what it was? Looks at every entry, and reads none.
 *
 * Runs as:  the operator.
 * Must not: follow a link, open anything but folders.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/own.h"
#include "base/tree.h"

struct walk {
	const struct tree_options *options; /* step, of; or NULL */
	struct tree_fingerprint *ret;
	struct sha256 sum;
	unsigned depth;
	size_t names_size; /* of the folders that are open */
	struct tree_path path;
};

/* What is hashed of an entry, before its name; no byte of it is padding. */
struct line {
	uint64_t mode, size, device, inode, special;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
};

static int tree_fingerprint_look_at(
	struct walk *w, int at, const char *name, struct stat *st, struct err *e)
{
	struct line l;
	int64_t changed;
	int r = 0;

	if (fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_fail(&w->path, name, errno, "read", e);
	l = (struct line){
		.mode = st->st_mode,
		.size = (uint64_t)st->st_size,
		.device = st->st_dev,
		.inode = st->st_ino,
		.special = st->st_rdev,
		.modified_s = st->st_mtim.tv_sec,
		.modified_ns = st->st_mtim.tv_nsec,
		.changed_s = st->st_ctim.tv_sec,
		.changed_ns = st->st_ctim.tv_nsec,
	};
	sha256_add(&w->sum, &l, sizeof(l));
	sha256_add(&w->sum, name, strlen(name) + 1);
	changed = l.changed_s * 1000000000 + l.changed_ns;
	if (changed > w->ret->newest_ns)
		w->ret->newest_ns = changed;
	tree_count(&w->ret->counts, st->st_mode);
	/* A hole is not read. */
	if (S_ISREG(st->st_mode))
		w->ret->counts.bytes +=
			(uint64_t)(st->st_size < st->st_blocks * 512 ? st->st_size
								     : st->st_blocks * 512);
	if (w->options && w->options->step)
		r = w->options->step(w->options->of);
	return r < 0 ? tree_fail(&w->path, name, -r, "read", e) : 0;
}

static int walk_folder(struct walk *w, int at, const char *name, struct err *e);

static int walk_names(struct walk *w, int fd, struct err *e)
{
	own(tree_names) struct tree_names names = { 0 };
	struct stat st;
	int r = tree_names_read(fd, TREE_MAX_NAMES - w->names_size, &names);

	if (r < 0)
		return tree_fail(&w->path, "", -r, "list", e);
	w->names_size += names.bytes.len;
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		r = tree_fingerprint_look_at(w, fd, names.sorted[i], &st, e);
		if (r == 0 && S_ISDIR(st.st_mode))
			r = walk_folder(w, fd, names.sorted[i], e);
	}
	w->names_size -= names.bytes.len;
	/* Where a folder ends counts too: no name is empty. */
	sha256_add(&w->sum, "", 1);
	return r;
}

static int walk_folder(struct walk *w, int at, const char *name, struct err *e)
{
	own_fd int fd = file_open_same_mount(at, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	size_t before;
	int r;

	if (fd < 0 || w->depth == TREE_MAX_DEPTH)
		return tree_fail(&w->path, name, fd < 0 ? -fd : ELOOP, "read", e);
	before = tree_path_enter(&w->path, name);
	w->depth++;
	r = walk_names(w, fd, e);
	w->depth--;
	tree_path_leave(&w->path, before);
	return r;
}

int tree_fingerprint(
	int fd, const struct tree_options *o, struct tree_fingerprint *ret, struct err *e)
{
	struct walk w = { .options = o, .ret = ret };
	uint8_t digest[SHA256_SIZE];
	struct stat st;
	int r;

	*ret = (struct tree_fingerprint){ 0 };
	sha256_init(&w.sum);
	r = tree_fingerprint_look_at(&w, fd, ".", &st, e);
	if (r == 0)
		r = walk_folder(&w, fd, ".", e);
	if (r < 0)
		return r;
	sha256_finish(&w.sum, digest);
	sha256_print(digest, ret->sha256);
	return 0;
}
