#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "change/apply/change_put.h"

bool change_is_path(const char *path)
{
	for (;; path++) {
		const char *end = strchrnul(path, '/');
		size_t n = (size_t)(end - path);

		if (n == 0 || (path[0] == '.' && (n == 1 || (n == 2 && path[1] == '.'))))
			return false;
		if (!*end)
			return true;
		path = end;
	}
}

/* The later one of the kinds of its names; a new folder comes before all that may be put into it.
 */
static struct change_turn turn_of(const struct change_effects *x, uint32_t index)
{
	const struct change_effect *effect = &x->items[index];
	struct change_git_place place = change_git_place_of(effect->path), from;

	if (place.kind != CHANGE_GIT_NOT && effect->after.type == CHANGE_FOLDER &&
		effect->before.type == CHANGE_NOTHING)
		return (struct change_turn){ .index = index, .kind = CHANGE_GIT_OBJECT };
	if (effect->from) {
		from = change_git_place_of(effect->from);
		if (from.kind > place.kind && from.kind < CHANGE_GIT_CACHE)
			place = from;
	}
	return (struct change_turn){
		.index = index,
		.kind = (uint8_t)place.kind,
		.order = (uint8_t)place.order,
	};
}

/* Which repository a path belongs to, in an order among them. */
static int compare_repositories(const char *a, const char *b)
{
	struct change_git_place in_a = change_git_place_of(a), in_b = change_git_place_of(b);
	size_t n = in_a.folder < in_b.folder ? in_a.folder : in_b.folder;
	int r = memcmp(a, b, n);

	if (r == 0 && in_a.folder != in_b.folder)
		r = in_a.folder < in_b.folder ? -1 : 1;
	return r;
}

static int turns_compare(const void *left, const void *right, void *of)
{
	const struct change_turn *a = left, *b = right;
	const struct change_effects *const *effects = of, *x = *effects;
	int r = (int)a->kind - (int)b->kind;

	if (r == 0 && a->kind == CHANGE_GIT_STATE)
		r = compare_repositories(x->items[a->index].path, x->items[b->index].path);
	if (r == 0)
		r = (int)a->order - (int)b->order;
	if (r == 0)
		r = a->index < b->index ? -1 : 1;
	return r;
}

void change_turns_sort(const struct change_effects *x, struct change_turn *turns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		turns[i] = turn_of(x, turns[i].index);
	qsort_r(turns, count, sizeof(*turns), turns_compare, &x);
}

size_t change_turns_group(
	const struct change_effects *x, const struct change_turn *turns, size_t count)
{
	size_t n = 1;

	while (n < count && turns[n].kind == turns->kind &&
		(turns->kind != CHANGE_GIT_STATE ||
			compare_repositories(
				x->items[turns[n].index].path, x->items[turns->index].path) == 0))
		n++;
	return n;
}
