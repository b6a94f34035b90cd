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
		r = tree_digest_with(q->fd, &o, ret->sha256, e);
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
	struct tree_fingerprint print;
	char name[64];
	int r = tree_fingerprint(q->fd, &o, &print, e);
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
