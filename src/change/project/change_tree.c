/*
 * change_tree - the digest of a tree, from memory where nothing has changed.
 *
 * Runs as:  the operator.
 * Leaves:   one small file for each tree in the folder of what is known, which is the operator's
 *           alone: DEVICE-INODE, with fingerprint, digest and counts; of a project DEVICE-INODE-p,
 *           with its list behind them.
 * Must not: give a digest from memory for a tree that may have changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/project/change_tree.h"

#define MOST_KNOWN 256 /* trees; beyond them all are forgotten */
#define FORM       "%s %s %020" PRIu64 " %020" PRIu64 "\n"
#define FORM_SIZE  (64 + 1 + 64 + 1 + 20 + 1 + 20 + 1)

struct hashing {
	const struct change_tree *q;
	struct tree_counts counts;
	uint64_t total;
};

static int tree_tell(void *of)
{
	const struct hashing *h = of;

	if (h->q->progress.tell && h->total)
		h->q->progress.tell(
			h->q->progress.of, h->q->what, h->counts.bytes >> 20, h->total >> 20);
	return h->q->step ? h->q->step(h->q->of) : 0;
}

/* --- fingerprints: whether a tree is still the same, without reading its files --- */

/*
 * Names, and of each entry type, mode, size, device, inode and times, as git's index has them. A
 * change of an entry sets its ctime to now: while no ctime is younger than the coarse clock, no
 * change is missed.
 */
struct fingerprint {
	char sha256[SHA256_HEX_SIZE];
	int64_t newest_ns;         /* the latest ctime */
	struct tree_counts counts; /* bytes: about what a digest reads */
};

struct walk {
	const struct tree_options *options; /* step, of; or NULL */
	struct fingerprint *ret;
	struct sha256 sum;
	unsigned depth;
	size_t names_size; /* of the folders that are open */
	struct tree_path path;
};

/* What is hashed of an entry, before its name; no byte of it is padding. */
struct fingerprint_line {
	uint64_t mode, size, device, inode, special;
	int64_t modified_s, modified_ns, changed_s, changed_ns;
};

static int look_at_entry(struct walk *w, int at, const char *name, struct stat *st, struct err *e)
{
	struct fingerprint_line l;
	int64_t changed;
	int r = 0;

	if (fstatat(at, name, st, AT_SYMLINK_NOFOLLOW) < 0)
		return tree_fail(&w->path, name, errno, "read", e);
	l = (struct fingerprint_line){
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
		r = look_at_entry(w, fd, names.sorted[i], &st, e);
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

/* Nothing that is mounted in the tree is entered. */
static int take_fingerprint(
	int fd, const struct tree_options *o, struct fingerprint *ret, struct err *e)
{
	struct walk w = { .options = o, .ret = ret };
	uint8_t digest[SHA256_SIZE];
	struct stat st;
	int r;

	*ret = (struct fingerprint){ 0 };
	sha256_init(&w.sum);
	r = look_at_entry(&w, fd, ".", &st, e);
	if (r == 0)
		r = walk_folder(&w, fd, ".", e);
	if (r < 0)
		return r;
	sha256_finish(&w.sum, digest);
	sha256_print(digest, ret->sha256);
	return 0;
}

/* --- what is known --- */

/* tmpfs does not note what is written to a mapping; of others nobody has looked at it. */
static bool notes_changes(int fd)
{
	static const unsigned kinds[] = { 0xef53 /* ext4 */, 0x58465342 /* xfs */,
		0x9123683e /* btrfs */ };
	struct statfs fs;

	for (size_t i = 0; fstatfs(fd, &fs) == 0 && i < COUNT_OF(kinds); i++)
		if ((unsigned)fs.f_type == kinds[i])
			return true;
	return false;
}

/* False: it has none by which it could be found again. */
static bool name_tree(const struct change_tree *q, char ret[static 64])
{
	struct stat st;

	/* What is outside of the tree has no part in its fingerprint. */
	if (q->known < 0 || (q->project && q->project->git >= 0) || fstat(q->fd, &st) < 0 ||
		!notes_changes(q->fd))
		return false;
	snprintf(ret, 64, "%" PRIx64 "-%" PRIx64 "%s", (uint64_t)st.st_dev, (uint64_t)st.st_ino,
		q->project ? "-p" : "");
	return true;
}

/* Is it the whole list that the digest is of? An image has none. */
static bool tree_is_whole(
	const struct change_tree *q, const char *list, size_t n, const char *sha256)
{
	char digest[SHA256_HEX_SIZE];

	sha256_hex(list, n, digest);
	return q->project ? str_eq(digest, sha256) : n == 0;
}

static bool recall(const struct change_tree *q, const char *name, const char *fingerprint,
	struct change_tree_digest *ret)
{
	own_fd int fd = file_open_name(q->known, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free char *text = NULL;
	char again[FORM_SIZE + 2];
	uint8_t digest[SHA256_SIZE];
	size_t n = 0;

	if (fd < 0 || file_read_all(fd, FORM_SIZE + CHANGE_PROJECT_MAX_LIST, &text, &n) < 0 ||
		n < FORM_SIZE || memcmp(text, fingerprint, 64) != 0)
		return false;
	memcpy(ret->sha256, text + 65, 64);
	ret->sha256[64] = '\0';
	ret->files = strtoull(text + 130, NULL, 10);
	ret->bytes = strtoull(text + 151, NULL, 10);
	/* What is not exactly what was written is nothing. */
	snprintf(again, sizeof(again), FORM, fingerprint, ret->sha256, ret->files, ret->bytes);
	if (memcmp(text, again, FORM_SIZE) != 0 || sha256_parse(ret->sha256, digest) < 0 ||
		!tree_is_whole(q, text + FORM_SIZE, n - FORM_SIZE, ret->sha256))
		return false;
	ret->list.max = CHANGE_PROJECT_MAX_LIST;
	/* An image has none, and then there is nothing to free either. */
	if (n > FORM_SIZE)
		buf_add(&ret->list, text + FORM_SIZE, n - FORM_SIZE);
	ret->is_remembered = !ret->list.failed;
	return ret->is_remembered;
}

/* Trees come and go; what they leave here must not grow for ever. */
static void tree_make_room(int known)
{
	struct file_entries entries = { .fd = known };
	const struct file_entry *entry;
	size_t count = 0;

	if (lseek(known, 0, SEEK_SET) < 0)
		return;
	while (file_next_entry(&entries))
		count++;
	if (count <= MOST_KNOWN || lseek(known, 0, SEEK_SET) < 0)
		return;
	entries = (struct file_entries){ .fd = known };
	while ((entry = file_next_entry(&entries)))
		if (entry->name[0] != '.')
			unlinkat(known, entry->name, 0);
}

/* Whole or not at all; where it fails, it is hashed again the next time. */
static void tree_remember(int known, const char *name, const char *fingerprint,
	const struct change_tree_digest *found)
{
	char text[FORM_SIZE + 2], new_name[96];
	own_fd int fd = -1;
	int n = snprintf(
		text, sizeof(text), FORM, fingerprint, found->sha256, found->files, found->bytes);

	tree_make_room(known);
	snprintf(new_name, sizeof(new_name), "%s.%d", name, getpid());
	fd = openat(known, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (file_write_all(fd, text, (size_t)n) < 0 ||
		file_write_all(fd, buf_text(&found->list), found->list.len) < 0 ||
		renameat(known, new_name, known, name) < 0)
		unlinkat(known, new_name, 0);
}

/* --- finding it --- */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int tree_hash(
	const struct change_tree *q, uint64_t total, struct change_tree_digest *ret, struct err *e)
{
	struct hashing h = { .q = q, .total = total };
	struct tree_options o = { .stays = true, .counts = &h.counts, .step = tree_tell, .of = &h };
	struct change_project project;
	int r;

	if (q->project) {
		project = *q->project;
		project.options = &o;
		r = change_project_digest(&project, &ret->list, ret->sha256, e);
	} else {
		r = tree_digest(q->fd, &o, ret->sha256, e);
	}
	ret->files = h.counts.files;
	ret->bytes = h.counts.bytes;
	change_progress_end(&q->progress);
	return r;
}

int change_tree_digest(const struct change_tree *q, struct change_tree_digest *ret, struct err *e)
{
	int64_t settled = now_ns() - (int64_t)q->settled_ms * 1000000;
	struct hashing walk = { .q = q };
	struct tree_options o = { .step = tree_tell, .of = &walk };
	struct fingerprint print;
	char name[64];
	int r = take_fingerprint(q->fd, &o, &print, e);
	bool has_name;

	*ret = (struct change_tree_digest){ 0 };
	if (r < 0)
		return r;
	has_name = name_tree(q, name);
	if (has_name && recall(q, name, print.sha256, ret))
		return 0;
	buf_done(&ret->list);
	*ret = (struct change_tree_digest){ 0 };
	r = tree_hash(q, print.counts.bytes, ret, e);
	/* What changed while it was hashed has another fingerprint by now. */
	if (r == 0 && has_name && print.newest_ns < settled &&
		tree_is_whole(q, buf_text(&ret->list), ret->list.len, ret->sha256))
		tree_remember(q->known, name, print.sha256, ret);
	return r;
}
