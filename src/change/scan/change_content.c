/*
 * change_content - what is in a file of either side, in a time that the disk bounds.
 *
 * Runs as:     part of change_scan.
 * Must not:    take longer than what the run really wrote is worth: a hole may be as long as a
 *              number can say, a file may have any number of names, and each is an effect.
 *
 * Holes are hashed, and files with several names are read again for their lines (their hash is
 * known), only as long as CHANGE_MAX_UNSTORED lasts. So that this ends at the same file wherever
 * the effects are looked for, such files are looked at last, in the order of their paths.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "change/scan/change_scanner.h"

/* Reading less takes no longer than opening it. */
#define SMALL ((uint64_t)64 << 10)

/* How much smaller a file system's compression makes a file at most. */
#define MOST_COMPRESSED 64

/* A file with several names. Of the layer nobody changes one; the host's may become another. */
struct linked {
	uint64_t device, inode, size;
	struct timespec modified;
	uint8_t hash[SHA256_SIZE];
};

void change_content_done(struct change_content *c)
{
	free(c->bytes);
}

void change_content_hash(struct change_content *c, const char *bytes, size_t n)
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes, n);
	sha256_finish(&s, c->hash);
	c->length = n;
}

/* --- what is not on the disk --- */

/* May so much be read that takes no room there? */
static bool spend(struct change_scanner *s, uint64_t n)
{
	uint64_t most = s->q->max_unstored ? s->q->max_unstored : CHANGE_MAX_UNSTORED;

	if (n > most - s->unstored)
		return false;
	s->unstored += n;
	return true;
}

static bool is_costly(const struct change_entry *entry)
{
	const struct statx *st = &entry->st;

	return entry->type == CHANGE_FILE && st->stx_size >= SMALL &&
	       (st->stx_nlink > 1 || st->stx_blocks * 512 < st->stx_size);
}

/* As the file system tells them, which may know none. */
static uint64_t told_holes(int fd, off_t size)
{
	uint64_t holes = 0;

	for (off_t at = 0, data; at < size; at = lseek(fd, data, SEEK_HOLE)) {
		data = at < 0 ? -1 : lseek(fd, at, SEEK_DATA);
		if (data < 0 && (at < 0 || errno != ENXIO))
			break;
		if (data < 0 || data > size)
			data = size;
		holes += (uint64_t)(data - at);
		if (data == size)
			break;
	}
	return holes;
}

static uint64_t count_holes(int fd, const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size, stored = (uint64_t)st->st_blocks * 512, holes;

	if (size < SMALL || stored >= size)
		return 0;
	holes = told_holes(fd, st->st_size);
	if (size / MOST_COMPRESSED > stored && holes < size - stored * MOST_COMPRESSED)
		holes = size - stored * MOST_COMPRESSED;
	return holes;
}

bool change_content_is_late(const struct change_pair *p)
{
	/* What is in a folder is told with the folder's effect. */
	return p->before.type != CHANGE_FOLDER && (is_costly(&p->now) || is_costly(&p->before));
}

/* --- files with several names --- */

static int content_compare(const void *a, const void *b)
{
	const struct linked *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static struct linked linked_of(const struct stat *st)
{
	return (struct linked){ .device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.modified = st->st_mtim };
}

/* Its hash, if another name of it was read. */
static bool content_find_linked(const struct change_scanner *s, const struct stat *st, uint8_t *ret)
{
	const struct linked key = linked_of(st);
	void *const *node = tfind(&key, &s->linked, content_compare);
	const struct linked *found = node ? *node : NULL;

	if (!found || found->size != key.size || found->modified.tv_sec != key.modified.tv_sec ||
		found->modified.tv_nsec != key.modified.tv_nsec)
		return false;
	memcpy(ret, found->hash, SHA256_SIZE);
	return true;
}

static int keep_linked(struct change_scanner *s, const struct stat *st, const uint8_t *hash)
{
	struct linked key = linked_of(st), *one;
	void *const *node = tfind(&key, &s->linked, content_compare);

	memcpy(key.hash, hash, SHA256_SIZE);
	/* The host's file has changed since: what it was is of no use. */
	one = node ? *node : arena_alloc(&s->ret->arena, sizeof(*one));
	if (!one)
		return -ENOMEM;
	*one = key;
	return node || tsearch(one, &s->linked, content_compare) ? 0 : -ENOMEM;
}

/* They are in the arena. */
static void content_leave(void *one)
{
	(void)one;
}

void change_content_forget(struct change_scanner *s)
{
	tdestroy(s->linked, content_leave);
	s->linked = NULL;
}

/* --- all of it --- */

static int content_read_bytes(int fd, size_t max, struct change_content *ret)
{
	int r = file_read_all(fd, max, &ret->bytes, &ret->size);

	if (r == -EFBIG)
		return sha256_file(fd, ret->hash, &ret->length);
	if (r == 0)
		change_content_hash(ret, ret->bytes, ret->size);
	return r;
}

/* Its hash is known: is that all that can be had of it? */
static bool take_linked(
	struct change_scanner *s, uint64_t size, size_t max, struct change_content *ret)
{
	ret->length = size;
	ret->is_unread = size <= max && !spend(s, size);
	return size > max || ret->is_unread;
}

/* Are there too many of them? */
static bool leave_holes(
	struct change_scanner *s, int fd, const struct stat *st, struct change_content *ret)
{
	uint64_t holes = count_holes(fd, st);

	if (spend(s, holes))
		return false;
	ret->length = (uint64_t)st->st_size;
	ret->unread_holes = holes;
	return true;
}

int change_content_read(struct change_scanner *s, int fd, size_t max, struct change_content *ret)
{
	struct stat st;
	uint64_t size;
	bool is_linked, is_all;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADF; /* it was one a moment ago */
	size = (uint64_t)st.st_size;
	is_linked = st.st_nlink > 1 && size >= SMALL;
	is_all = is_linked && content_find_linked(s, &st, ret->hash)
			 ? take_linked(s, size, max, ret)
			 : leave_holes(s, fd, &st, ret);
	if (is_all)
		return 0;
	/* Looking for holes has moved it. */
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = content_read_bytes(fd, max, ret);
	return r == 0 && is_linked && ret->length == size ? keep_linked(s, &st, ret->hash) : r;
}
