/*
 * Which deleted file is which added one? The same content, not empty. Among several, those with the
 * same last name belong together, then the first with the first by path: always the same pairs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "change/scan/change_open.h"
#include "change/scan/change_scanner.h"

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
