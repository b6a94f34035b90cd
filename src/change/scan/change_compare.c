/*
 * change_compare - one name in the layer and in the tree: does it differ, and in what?
 *
 * Runs as:     part of change_scan.
 * Enters with: what both sides have under the name, both a stranger's.
 * Leaves:      an effect where they differ; what a changed text was in q->base.
 * Must not:    wait for a pipe or a device; fail because the host's file cannot be read, which the
 *              effect says instead; take longer than what the run really wrote is worth: a hole may
 *              have any length, a file any number of names, and each name is an effect.
 *
 * Owner and times do not count: the layer's owner is the cage's user, and reading changes times.
 *
 * Holes are hashed, and files with several names are read again to count their lines, only until
 * CHANGE_MAX_UNSTORED bytes are spent. Such files are compared last, in the order of their paths,
 * so that every scan of a layer runs out of these bytes at the same file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/git/change_git.h"
#include "change/scan/change_open.h"
#include "change/scan/change_scanner.h"
#include "change/text/change_text.h"

/* What is in a file or a link. */
struct change_content {
	char *bytes; /* where it is not too large to be a text; else NULL */
	size_t size;
	uint64_t length; /* as it was read */
	uint8_t hash[SHA256_SIZE];
	bool is_unread;        /* bytes are missing because they were read too often */
	uint64_t unread_holes; /* not 0: there is no hash either, for these are too many */
};

/* --- content --- */

/* How much smaller a file system's compression makes a file at most. */
#define MOST_COMPRESSED 64

/* A file with several names. Of the layer nobody changes one; the host's may become another. */
struct linked {
	uint64_t device, inode, size;
	struct timespec modified;
	uint8_t hash[SHA256_SIZE];
};

static void change_content_done(struct change_content *c)
{
	free(c->bytes);
}

static void change_content_hash(struct change_content *c, const char *bytes, size_t n)
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

	if (size < CHANGE_SMALL || stored >= size)
		return 0;
	holes = told_holes(fd, st->st_size);
	/* Looking for them has moved it. */
	lseek(fd, 0, SEEK_SET);
	if (size / MOST_COMPRESSED > stored && holes < size - stored * MOST_COMPRESSED)
		holes = size - stored * MOST_COMPRESSED;
	return holes;
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

static int change_content_read(
	struct change_scanner *s, int fd, size_t max, struct change_content *ret)
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
	is_linked = st.st_nlink > 1 && size >= CHANGE_SMALL;
	is_all = is_linked && content_find_linked(s, &st, ret->hash)
			 ? take_linked(s, size, max, ret)
			 : leave_holes(s, fd, &st, ret);
	if (is_all)
		return 0;
	r = content_read_bytes(fd, max, ret);
	return r == 0 && is_linked && ret->length == size ? keep_linked(s, &st, ret->hash) : r;
}

/* --- attributes --- */

/* user.…, sorted by name. */
struct change_attributes {
	struct change_attribute *items;
	size_t count;
	char *names;
};

/* Attributes that users may set. Those of overlays belong to no tree and are never an effect. */

/* An overlay would take content or a whole folder from elsewhere. */
static const char *const forged[] = { "user.overlay.redirect", "user.overlay.metacopy" };

static bool attributes_is_ours(const char *name)
{
	return str_starts(name, "user.") && !str_starts(name, "user.overlay.");
}

static int attributes_compare_names(const void *a, const void *b)
{
	const struct change_attribute *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* The names, each ended by a NUL, in new memory; how many bytes, or -errno. */
static ssize_t attributes_read_names(int fd, char **ret)
{
	ssize_t n = flistxattr(fd, NULL, 0);

	if (n <= 0)
		return n < 0 && errno != ENOTSUP ? -errno : 0;
	*ret = malloc((size_t)n);
	if (!*ret)
		return -ENOMEM;
	n = flistxattr(fd, *ret, (size_t)n);
	return n < 0 ? -errno : n;
}

static int attributes_hash_value(int fd, const char *name, uint8_t ret[static SHA256_SIZE])
{
	own_free char *value = NULL;
	struct sha256 s;
	ssize_t n = fgetxattr(fd, name, NULL, 0);

	if (n > 0) {
		value = malloc((size_t)n);
		if (!value)
			return -ENOMEM;
		n = fgetxattr(fd, name, value, (size_t)n);
	}
	if (n < 0)
		return -errno;
	sha256_init(&s);
	sha256_add(&s, value, (size_t)n);
	sha256_finish(&s, ret);
	return 0;
}

static int change_attributes_read(int fd, struct change_attributes *ret, const char **ret_forged)
{
	ssize_t n = attributes_read_names(fd, &ret->names);
	size_t room = 0;

	if (n < 0)
		return (int)n;
	for (const char *name = ret->names; name < ret->names + n; name += strlen(name) + 1) {
		for (size_t i = 0; ret_forged && i < COUNT_OF(forged); i++)
			if (str_eq(name, forged[i]))
				*ret_forged = forged[i];
		room += attributes_is_ours(name);
	}
	ret->items = room ? calloc(room, sizeof(ret->items[0])) : NULL;
	if (room && !ret->items)
		return -ENOMEM;
	for (const char *name = ret->names; room && name < ret->names + n;
		name += strlen(name) + 1) {
		struct change_attribute *item = &ret->items[ret->count];
		int r = attributes_is_ours(name) ? attributes_hash_value(fd, name, item->hash)
						 : -ENODATA;

		if (r < 0 && r != -ENODATA) /* the host may have taken it away meanwhile */
			return r;
		if (r == 0) {
			item->name = name;
			ret->count++;
		}
	}
	if (ret->items)
		qsort(ret->items, ret->count, sizeof(ret->items[0]), attributes_compare_names);
	return 0;
}

static void change_attributes_done(struct change_attributes *a)
{
	free(a->items);
	free(a->names);
	*a = (struct change_attributes){ 0 };
}

static bool attributes_add(struct change_attribute *list, struct change_effect *x,
	const struct change_attribute *like, enum change_change change, struct arena *arena)
{
	struct change_attribute *item = &list[x->attribute_count++];

	*item = (struct change_attribute){
		.name = arena_copy(arena, like->name, strlen(like->name)),
		.change = change,
	};
	if (change != CHANGE_DELETED)
		memcpy(item->hash, like->hash, SHA256_SIZE);
	return item->name;
}

static int change_attributes_compare(const struct change_attributes *before,
	const struct change_attributes *now, struct arena *arena, struct change_effect *ret)
{
	static const struct change_attributes none;
	const struct change_attributes *old = before ? before : &none;
	struct change_attribute *list;
	bool is_good = true;

	ret->attribute_count = 0;
	if (old->count + now->count == 0)
		return 0;
	list = calloc(old->count + now->count, sizeof(*list));
	is_good = list;
	for (size_t i = 0, k = 0; is_good && (i < old->count || k < now->count);) {
		int order = i == old->count ? 1 : k == now->count ? -1 : 0;

		if (order == 0)
			/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): both go on */
			order = strcmp(old->items[i].name, now->items[k].name);
		if (order < 0)
			is_good = attributes_add(list, ret, &old->items[i], CHANGE_DELETED, arena);
		else if (order > 0)
			is_good = attributes_add(list, ret, &now->items[k], CHANGE_ADDED, arena);
		else if (memcmp(old->items[i].hash, now->items[k].hash, SHA256_SIZE) != 0)
			is_good = attributes_add(list, ret, &now->items[k], CHANGE_CHANGED, arena);
		i += order <= 0;
		k += order >= 0;
	}
	if (is_good && ret->attribute_count) {
		size_t size = ret->attribute_count * sizeof(*list);
		struct change_attribute *kept = arena_alloc(arena, size);

		if (kept)
			memcpy(kept, list, size);
		ret->attributes = kept;
		is_good = kept;
	}
	free(list);
	return is_good ? 0 : -ENOMEM;
}

/* --- both sides --- */

/* Pipes do not make us wait, terminals do not become ours. */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY)

/* One side, with what was read of it. */
struct side {
	struct change_attributes attributes;
	size_t max; /* larger files are only hashed */
	struct change_content content;
	const char *forged;
};

static void side_done(struct side *s)
{
	change_attributes_done(&s->attributes);
	change_content_done(&s->content);
}

static int compare_read_link(int folder, const char *name, struct side *ret)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlinkat(folder, name, target, sizeof(target));

	if (n < 0)
		return -errno;
	change_content_hash(&ret->content, target, (size_t)n);
	return 0;
}

static int compare_read_side(
	struct change_scanner *s, const struct change_pair *p, bool is_layer, struct side *ret)
{
	enum change_type type = is_layer ? p->now.type : p->before.type;
	int folder = is_layer ? p->layer : p->below;
	own(change_right) struct change_right right = CHANGE_NO_RIGHT;
	int flags = type == CHANGE_FOLDER ? READ_FLAGS | O_DIRECTORY : READ_FLAGS;
	own_fd int fd = -1;
	int r;

	if (type == CHANGE_LINK)
		return compare_read_link(folder, p->name, ret);
	if (type == CHANGE_SPECIAL)
		return 0;
	fd = is_layer ? change_open(folder, p->name, flags, &right)
		      : file_open_beneath(folder, p->name, flags, 0);
	r = fd < 0 || type == CHANGE_FOLDER ? fd
					    : change_content_read(s, fd, ret->max, &ret->content);
	return r < 0 ? r : change_attributes_read(fd, &ret->attributes, &ret->forged);
}

/* --- lines --- */

static struct change_text text_of(const struct side *s)
{
	return (struct change_text){ .bytes = s->content.bytes, .size = s->content.size };
}

static int compare_count_lines(
	const struct side *old, const struct side *now, struct change_effect *x)
{
	struct change_text a = text_of(old), b = text_of(now);
	bool has_old = x->before.type == CHANGE_FILE;

	if (x->after.type != CHANGE_FILE || !now->content.bytes ||
		(has_old && !old->content.bytes) || a.size > CHANGE_MAX_TEXT ||
		b.size > CHANGE_MAX_TEXT)
		return 0;
	x->is_text = change_is_text(&a) && change_is_text(&b);
	return x->is_text ? change_text_count(&a, &b, &x->lines_added, &x->lines_removed) : 0;
}

/* What was hashed is what is kept: the host may be writing to its file. */
static int keep_base(struct change_scanner *s, const struct side *old, struct change_found *found)
{
	int r;

	if (s->q->base < 0 || found->x.before.type != CHANGE_FILE || !old->content.bytes ||
		found->x.after.type != CHANGE_FILE)
		return 0;
	if (old->max == CHANGE_MAX_TEXT &&
		(!found->x.is_text || old->content.size > CHANGE_MAX_BASE))
		return 0;
	r = change_base_add(&s->base, old->content.bytes, old->content.size, &found->base_at);
	if (r < 0)
		return err_sys(s->e, -r, "cannot keep what '%.200s' was", s->path);
	found->x.has_base = true;
	return 0;
}

/* --- differences --- */

static bool compare_is_same(
	const struct change_pair *p, const struct side *old, const struct side *now)
{
	const struct statx *a = &p->before.st, *b = &p->now.st;

	if (a->stx_mode != b->stx_mode) /* type and permissions */
		return false;
	if (p->now.type == CHANGE_SPECIAL)
		return a->stx_rdev_major == b->stx_rdev_major &&
		       a->stx_rdev_minor == b->stx_rdev_minor;
	return !old->content.unread_holes && !now->content.unread_holes &&
	       old->content.length == now->content.length &&
	       memcmp(old->content.hash, now->content.hash, SHA256_SIZE) == 0;
}

static void set_hash(const struct side *side, struct change_state *ret)
{
	if (ret->type != CHANGE_FILE && ret->type != CHANGE_LINK)
		return;
	ret->size = side->content.length;
	ret->has_hash = !side->content.unread_holes;
	if (ret->has_hash)
		memcpy(ret->hash, side->content.hash, SHA256_SIZE);
}

/*
 * What the attributes are compared with. A folder that cannot be read on the host is in the layer
 * because of what is in it: its attributes are taken to be the same.
 */
static const struct change_attributes *old_attributes(const struct change_pair *p,
	const struct side *old, const struct side *now, bool is_old_read)
{
	if (p->before.type != p->now.type)
		return NULL;
	if (is_old_read)
		return &old->attributes;
	return p->now.type == CHANGE_FOLDER ? &now->attributes : NULL;
}

/* What was too much to be read is said in the effect; that of the layer is never applied. */
static int compare_note_unread(struct change_scanner *s, const struct side *old,
	const struct side *now, struct change_effect *x)
{
	const struct change_content *which =
		now->content.unread_holes ? &now->content : &old->content;

	if (which->unread_holes)
		x->note = arena_printf(&s->ret->arena,
			"%s %" PRIu64 " bytes, of which %" PRIu64 " are holes: it was not read%s",
			which == &now->content ? "a file of" : "it was a file of", which->length,
			which->unread_holes, which == &now->content ? ", and is not applied" : "");
	else if (!x->note && (now->content.is_unread || old->content.is_unread))
		x->note = "its lines are not counted: too many files have several names";
	return which->unread_holes && !x->note ? -ENOMEM : 0;
}

static int add_difference(struct change_scanner *s, const struct change_pair *p,
	const struct side *old, const struct side *now, bool is_old_read)
{
	bool was_there = p->before.type != CHANGE_NOTHING;
	bool is_known = is_old_read || p->before.type == CHANGE_FOLDER;
	struct change_effect like = { 0 };
	struct change_found *found;
	int r = change_attributes_compare(
		old_attributes(p, old, now, is_old_read), &now->attributes, &s->ret->arena, &like);

	if (r < 0)
		return change_refuse_size(s);
	if (is_known && like.attribute_count == 0 && compare_is_same(p, old, now))
		return 0;
	found = change_add(s, was_there ? CHANGE_CHANGED : CHANGE_ADDED, &p->before, &p->now);
	if (!found)
		return -EOVERFLOW;
	found->x.attributes = like.attributes;
	found->x.attribute_count = like.attribute_count;
	found->x.note = p->note;
	set_hash(now, &found->x.after);
	if (was_there && !is_known) {
		found->x.note = "what it was cannot be read on the host";
		return 0;
	}
	set_hash(old, &found->x.before);
	r = compare_note_unread(s, old, now, &found->x);
	if (r == 0)
		r = compare_count_lines(old, now, &found->x);
	return r < 0 ? change_refuse_size(s) : keep_base(s, old, found);
}

int change_compare(struct change_scanner *s, const struct change_pair *p)
{
	/* git rewrites its index without changing what is in it: only by its base is that seen. */
	size_t max = change_git_place_of(s->path).is_index ? CHANGE_GIT_MAX_INDEX : CHANGE_MAX_TEXT;
	own(side) struct side old = { .max = max }, now = { .max = max };
	bool was_there = p->before.type != CHANGE_NOTHING;
	int r = compare_read_side(s, p, true, &now);

	if (r < 0)
		return err_sys(s->e, -r,
			"cannot find out what the run changed: reading '%.200s' of its layer",
			s->path);
	if (now.forged && !s->q->is_copy)
		return err_hint(s->e,
			err_set(s->e, ERR_REFUSED, EBADMSG,
				"cannot find out what the run changed: '%.200s' of its layer has "
				"'%s', which no run leaves, so somebody changed the layer",
				s->path, now.forged),
			"discard it");
	if (was_there)
		r = compare_read_side(s, p, false, &old);
	return add_difference(s, p, &old, &now, was_there && r == 0);
}

/* --- renames --- */

/*
 * A deleted and an added file with the same content, which is not empty, are one renamed file.
 * Among several, files with the same last name are paired first, then the first by path with the
 * first: the same layer always gives the same pairs.
 */

struct candidate {
	struct change_found *found;
	const char *name; /* the last one of the path */
	bool is_added;
};

static const struct change_state *content(const struct candidate *c)
{
	return c->is_added ? &c->found->x.after : &c->found->x.before;
}

static int compare_sizes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int renames_compare_paths(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = memcmp(content(x)->hash, content(y)->hash, SHA256_SIZE);

	return order ? order : strcmp(x->found->x.path, y->found->x.path);
}

static int renames_compare_names(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = memcmp(content(x)->hash, content(y)->hash, SHA256_SIZE);

	if (order == 0)
		order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->found->x.path, y->found->x.path);
}

static bool is_added_file(const struct change_effect *x)
{
	return x->change == CHANGE_ADDED && x->after.type == CHANGE_FILE && x->after.size &&
	       x->after.has_hash;
}

static bool is_deleted_file(const struct change_effect *x)
{
	return x->change == CHANGE_DELETED && x->before.type == CHANGE_FILE && x->before.size &&
	       !x->note;
}

/* Its hash, unless the host has changed it meanwhile or nobody may read it. */
static bool hash_deleted(struct change_scanner *s, struct change_effect *x)
{
	const char *path = x->path;
	int top = change_below_of(s->q->git, s->q->below, &path);
	own_fd int fd = file_open_beneath(top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	own(change_content) struct change_content content = { .bytes = NULL };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != x->below.inode || !S_ISREG(st.st_mode))
		return false;
	if (change_content_read(s, fd, 0, &content) < 0)
		return false;
	if (content.unread_holes)
		x->note = "whether it was renamed is not known: too much of it is holes";
	x->before.has_hash = !content.unread_holes && content.length == x->before.size;
	if (x->before.has_hash)
		memcpy(x->before.hash, content.hash, SHA256_SIZE);
	return x->before.has_hash;
}

/* The files that may be one side of a rename; how many. */
static size_t renames_collect(struct change_scanner *s, struct candidate *ret, uint64_t *sizes)
{
	size_t size_count = 0, count = 0;

	for (size_t i = 0; i < s->count; i++)
		if (is_added_file(&s->found[i].x))
			sizes[size_count++] = s->found[i].x.after.size;
	if (size_count)
		qsort(sizes, size_count, sizeof(*sizes), compare_sizes);
	for (size_t i = 0; size_count && i < s->count; i++) {
		struct change_effect *x = &s->found[i].x;
		const char *slash = strrchr(x->path, '/');
		bool is_added = is_added_file(x);

		if (!is_added && !(is_deleted_file(x) &&
					 bsearch(&x->before.size, sizes, size_count, sizeof(*sizes),
						 compare_sizes) &&
					 hash_deleted(s, x)))
			continue;
		ret[count++] = (struct candidate){ .found = &s->found[i],
			.name = slash ? slash + 1 : x->path,
			.is_added = is_added };
	}
	return count;
}

/* What attributes the file got on its way; those of the added one were told as new. */
static int compare_attributes(struct change_scanner *s, struct change_effect *x)
{
	own(change_attributes) struct change_attributes old = { 0 }, now = { 0 };
	own(change_right) struct change_right right = CHANGE_NO_RIGHT;
	const char *from = x->from, *path = x->path;
	int old_top = change_below_of(s->q->git, s->q->below, &from);
	int new_top = change_layer_of(s->q->git, s->q->layer, &path);
	own_fd int below = file_open_beneath(old_top, from, O_RDONLY | O_NONBLOCK, 0);
	own_fd int layer = change_open(new_top, path, O_RDONLY | O_NONBLOCK, &right);

	if (below < 0 || change_attributes_read(below, &old, NULL) < 0)
		return 0;
	if (layer < 0 || change_attributes_read(layer, &now, NULL) < 0)
		return 0;
	return change_attributes_compare(&old, &now, &s->ret->arena, x);
}

static int renames_join(
	struct change_scanner *s, struct change_found *deleted, struct change_found *added)
{
	struct change_effect *x = &added->x;

	x->change = CHANGE_RENAMED;
	x->from = deleted->x.path;
	x->before = deleted->x.before;
	x->below = deleted->x.below;
	x->has_moved = deleted->x.has_moved;
	x->lines_added = 0;
	deleted->is_dropped = true;
	return compare_attributes(s, x);
}

/*
 * The candidates from `from` on that belong together are in a row. The first deleted one becomes
 * the first added one, and so on.
 */
static int join_row(struct change_scanner *s, struct candidate *row, size_t count)
{
	size_t added = 0, deleted = 0;
	int r = 0;

	while (r == 0) {
		while (added < count && (!row[added].is_added || row[added].found->x.from))
			added++;
		while (deleted < count && (row[deleted].is_added || row[deleted].found->is_dropped))
			deleted++;
		if (added == count || deleted == count)
			break;
		r = renames_join(s, row[deleted].found, row[added].found);
	}
	return r;
}

static int join_rows(struct change_scanner *s, struct candidate *all, size_t count, bool by_name)
{
	size_t first = 0;
	int r = 0;

	qsort(all, count, sizeof(*all), by_name ? renames_compare_names : renames_compare_paths);
	for (size_t i = 1; r == 0 && i <= count; i++) {
		if (i < count &&
			memcmp(content(&all[first])->hash, content(&all[i])->hash, SHA256_SIZE) ==
				0 &&
			(!by_name || strcmp(all[first].name, all[i].name) == 0))
			continue;
		r = join_row(s, all + first, i - first);
		first = i;
	}
	return r;
}

int change_find_renames(struct change_scanner *s)
{
	struct candidate *all = calloc(s->count + 1, sizeof(*all));
	uint64_t *sizes = calloc(s->count + 1, sizeof(*sizes));
	size_t count = all && sizes ? renames_collect(s, all, sizes) : 0;
	int r = all && sizes ? 0 : -ENOMEM;

	if (count)
		r = join_rows(s, all, count, true);
	if (count && r == 0)
		r = join_rows(s, all, count, false);
	free(all);
	free(sizes);
	return r < 0 ? change_refuse_size(s) : 0;
}
