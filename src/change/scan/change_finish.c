/* When all are found: their order, what one means for another, and the names of the bases. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change/scan/change_marks.h"
#include "change/scan/change_scanner.h"

static int compare_found(const void *a, const void *b)
{
	const struct change_found *x = a, *y = b;

	return strcmp(x->x.path, y->x.path);
}

void change_sort(struct change_scanner *s)
{
	if (s->count)
		qsort(s->found, s->count, sizeof(*s->found), compare_found);
}

struct change_effect *change_effect_find(const struct change_effects *x, const char *path, size_t n)
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
static struct change_effect *folder_of(
	const struct change_effects *x, const char *path, size_t n, size_t *ret_size)
{
	const char *slash = memrchr(path, '/', n);

	*ret_size = slash ? (size_t)(slash - path) : 0;
	return slash ? change_effect_find(x, path, *ret_size) : NULL;
}

/* Folders above that come, or go, with it: `is_old` for a path that is there no more. */
static void imply_folders(const struct change_effects *x, const char *path, bool is_old)
{
	size_t n = strlen(path);
	struct change_effect *folder;

	while ((folder = folder_of(x, path, n, &n))) {
		if (folder->change != (is_old ? CHANGE_DELETED : CHANGE_ADDED) ||
			folder->is_implied)
			break;
		folder->is_implied = true;
	}
}

/* A folder that is gone took with it what is held: then it is held itself. */
static void hold_folders(const struct change_effects *x, const char *path)
{
	size_t n = strlen(path);
	struct change_effect *folder;

	while ((folder = folder_of(x, path, n, &n))) {
		if (folder->before.type != CHANGE_FOLDER || folder->after.type == CHANGE_FOLDER)
			break;
		if (folder->mark < CHANGE_HELD)
			folder->mark = CHANGE_HELD;
	}
}

static int mark_all(const struct change_scan *q, struct change_effects *x)
{
	int r;

	for (size_t i = 0; i < x->count; i++) {
		struct change_effect *effect = &x->items[i];

		effect->mark = change_mark_effect(effect, q->held, q->held_count);
		if (effect->after.type == CHANGE_LINK && !effect->note)
			effect->note = change_mark_link_reason(effect->path);
	}
	r = change_mark_bare(q, x);
	if (r == 0)
		r = change_hold_headless(x);
	for (size_t i = 0; i < x->count; i++) {
		struct change_effect *effect = &x->items[i];
		const char *old = effect->from ? effect->from : effect->path;
		bool is_gone = effect->change == CHANGE_DELETED || effect->from;

		if (effect->mark >= CHANGE_HELD && is_gone)
			hold_folders(x, old);
		if (effect->from)
			imply_folders(x, effect->from, true);
		imply_folders(x, effect->path, effect->change == CHANGE_DELETED);
	}
	return r;
}

static int name_base(struct change_scanner *s, uint32_t base, size_t index)
{
	char old[32], new[32];

	snprintf(old, sizeof(old), "new-%u", base);
	snprintf(new, sizeof(new), "%zu", index);
	if (renameat(s->q->base, old, s->q->base, new) == 0)
		return 0;
	return err_sys(s->e, errno, "cannot keep what '%.200s' was", s->ret->items[index].path);
}

int change_finish(struct change_scanner *s)
{
	struct change_effects *x = s->ret;
	int r = 0;

	x->count = 0;
	x->items = arena_array(&x->arena, s->count, sizeof(*x->items));
	if (!x->items)
		return change_refuse_size(s);
	for (size_t i = 0; r == 0 && i < s->count; i++) {
		if (s->found[i].is_dropped)
			continue;
		x->items[x->count++] = s->found[i].x;
		if (s->found[i].base)
			r = name_base(s, s->found[i].base, x->count - 1);
	}
	if (mark_all(s->q, x) < 0)
		return change_refuse_size(s);
	change_digest(x, x->digest);
	return r;
}
