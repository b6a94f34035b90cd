/* When all are found: their order, what one means for another, and the names of the bases. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work/work_marks.h"
#include "work/work_scanner.h"

static int compare_found(const void *a, const void *b)
{
	const struct work_found *x = a, *y = b;

	return strcmp(x->x.path, y->x.path);
}

void work_sort(struct work_scanner *s)
{
	if (s->count)
		qsort(s->found, s->count, sizeof(*s->found), compare_found);
}

struct work_effect *work_effect_find(const struct work_effects *x, const char *path, size_t n)
{
	size_t first = 0, last = x->count;

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		const char *other = x->items[middle].path;
		int order = strncmp(path, other, n);

		if (order == 0)
			order = other[n] ? -1 : 0;
		if (order == 0)
			return &x->items[middle];
		if (order < 0)
			last = middle;
		else
			first = middle + 1;
	}
	return NULL;
}

/* The effect of the folder that a path of n bytes is in; *ret_size is the length of its path. */
static struct work_effect *folder_of(
	const struct work_effects *x, const char *path, size_t n, size_t *ret_size)
{
	const char *slash = memrchr(path, '/', n);

	*ret_size = slash ? (size_t)(slash - path) : 0;
	return slash ? work_effect_find(x, path, *ret_size) : NULL;
}

/* Folders above that come, or go, with it: `is_old` for a path that is there no more. */
static void imply_folders(const struct work_effects *x, const char *path, bool is_old)
{
	size_t n = strlen(path);
	struct work_effect *folder;

	while ((folder = folder_of(x, path, n, &n))) {
		if (folder->change != (is_old ? WORK_DELETED : WORK_ADDED) || folder->is_implied)
			break;
		folder->is_implied = true;
	}
}

/* A folder that is gone took with it what is held: then it is held itself. */
static void hold_folders(const struct work_effects *x, const char *path)
{
	size_t n = strlen(path);
	struct work_effect *folder;

	while ((folder = folder_of(x, path, n, &n))) {
		if (folder->before.type != WORK_FOLDER || folder->after.type == WORK_FOLDER)
			break;
		if (folder->mark < WORK_HELD)
			folder->mark = WORK_HELD;
	}
}

static int mark_all(const struct work_scan *q, struct work_effects *x)
{
	int r;

	for (size_t i = 0; i < x->count; i++) {
		struct work_effect *effect = &x->items[i];

		effect->mark = work_mark_effect(effect, q->held, q->held_count);
		if (effect->after.type == WORK_LINK && !effect->note)
			effect->note = work_mark_link_reason(effect->path);
	}
	r = work_mark_bare(q, x);
	if (r == 0)
		r = work_hold_headless(x);
	for (size_t i = 0; i < x->count; i++) {
		struct work_effect *effect = &x->items[i];
		const char *old = effect->from ? effect->from : effect->path;
		bool is_gone = effect->change == WORK_DELETED || effect->from;

		if (effect->mark >= WORK_HELD && is_gone)
			hold_folders(x, old);
		if (effect->from)
			imply_folders(x, effect->from, true);
		imply_folders(x, effect->path, effect->change == WORK_DELETED);
	}
	return r;
}

static int name_base(struct work_scanner *s, uint32_t base, size_t index)
{
	char old[32], new[32];

	snprintf(old, sizeof(old), "new-%u", base);
	snprintf(new, sizeof(new), "%zu", index);
	if (renameat(s->q->base, old, s->q->base, new) == 0)
		return 0;
	return err_sys(s->e, errno, "cannot keep what '%.200s' was", s->ret->items[index].path);
}

int work_finish(struct work_scanner *s)
{
	struct work_effects *x = s->ret;
	int r = 0;

	x->count = 0;
	x->items = arena_array(&x->arena, s->count, sizeof(*x->items));
	if (!x->items)
		return work_refuse_size(s);
	for (size_t i = 0; r == 0 && i < s->count; i++) {
		if (s->found[i].is_dropped)
			continue;
		x->items[x->count++] = s->found[i].x;
		if (s->found[i].base)
			r = name_base(s, s->found[i].base, x->count - 1);
	}
	if (mark_all(s->q, x) < 0)
		return work_refuse_size(s);
	work_digest(x, x->digest);
	return r;
}
