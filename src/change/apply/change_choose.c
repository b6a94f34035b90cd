/* Which effects are chosen, in which order they are carried out, and which belong together. Pure.
 */
#include "change/apply/change_put.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "change/scan/change_scanner.h"

/* --- which effects --- */

static bool choose_is_within(const char *inner, const char *outer)
{
	return str_eq(outer, ".") || str_path_within(inner, outer);
}

bool change_effect_is_within(const struct change_effect *x, const char *path)
{
	return choose_is_within(x->path, path) || (x->from && choose_is_within(x->from, path));
}

/*
 * Is it the old name alone that makes this effect, a renaming, one that runs on the host? What the
 * new one is by its place, as in a bare repository, only the note tells.
 */
static bool is_held_by_old(const struct change_apply *q, const struct change_effect *x)
{
	struct change_effect now = *x;

	now.from = NULL;
	return !x->note && change_mark_of(x->from, q->held, q->held_count) == CHANGE_HELD &&
	       change_mark_effect(&now, q->held, q->held_count) != CHANGE_HELD;
}

/*
 * Is this effect, which runs on the host, meant by this path? By its own, or one that runs too; who
 * says the old name of something does not say what runs under the new one.
 */
static bool choose_is_named(
	const struct change_apply *q, const struct change_effect *x, const char *path)
{
	const struct change_effect folder = {
		.path = path, .before.type = CHANGE_FOLDER, .after.type = CHANGE_FOLDER
	};

	if (!choose_is_within(x->path, path) && !is_held_by_old(q, x))
		return false;
	if (str_eq(path, x->path) || (x->from && str_eq(path, x->from)))
		return true;
	return change_mark_effect(&folder, q->held, q->held_count) == CHANGE_HELD;
}

enum change_choice change_choose_one(const struct change_apply *q, const struct change_effect *x)
{
	enum change_choice choice = q->path_count ? CHANGE_NOT_CHOSEN : CHANGE_CHOSEN;
	bool is_held = x->mark == CHANGE_HELD && !q->takes_held;

	if (choice == CHANGE_CHOSEN && is_held)
		return CHANGE_CHOSEN_HELD;
	for (size_t i = 0; i < q->path_count; i++) {
		if (!change_effect_is_within(x, q->paths[i]))
			continue;
		if (!is_held || choose_is_named(q, x, q->paths[i]))
			return CHANGE_CHOSEN;
		choice = CHANGE_CHOSEN_HELD;
	}
	return choice;
}

/* The new folders that the effect at `index` lies in. */
static void choose_folders(const struct change_effects *x, size_t index, uint8_t *choices)
{
	const char *path = x->items[index].path;

	for (const char *slash = strrchr(path, '/'); slash;
		slash = memrchr(path, '/', (size_t)(slash - path))) {
		const struct change_effect *folder =
			change_effect_find(x, path, (size_t)(slash - path));

		if (!folder)
			continue;
		if (folder->change != CHANGE_ADDED || folder->after.type != CHANGE_FOLDER ||
			choices[folder - x->items] == CHANGE_CHOSEN)
			return;
		choices[folder - x->items] = CHANGE_CHOSEN;
	}
}

/* A ref is worth nothing without its objects: who chooses the one takes the others along. */
static void choose_objects(
	const struct change_effects *x, struct change_repositories *r, uint8_t *choices)
{
	for (size_t i = 0; i < x->count; i++)
		if (choices[i] == CHANGE_CHOSEN && r->of[i] &&
			change_git_place_of(x->items[i].path).kind == CHANGE_GIT_STATE)
			r->has_state[r->of[i]] = true;
	for (size_t i = 0; i < x->count; i++)
		if (r->has_state[r->of[i]] && x->items[i].change == CHANGE_ADDED &&
			choices[i] != CHANGE_CHOSEN_HELD &&
			change_git_place_of(x->items[i].path).kind == CHANGE_GIT_OBJECT)
			choices[i] = CHANGE_CHOSEN;
}

void change_choose(const struct change_apply *q, const struct change_effects *x,
	struct change_repositories *repositories, uint8_t *choices)
{
	bool is_all = true;

	for (size_t i = 0; i < x->count; i++) {
		choices[i] = (uint8_t)change_choose_one(q, &x->items[i]);
		is_all &= choices[i] == CHANGE_CHOSEN;
	}
	if (is_all)
		return;
	choose_objects(x, repositories, choices);
	for (size_t i = 0; i < x->count; i++)
		if (choices[i] == CHANGE_CHOSEN && x->items[i].after.type != CHANGE_NOTHING)
			choose_folders(x, i, choices);
}

/* --- in which order --- */

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

/* --- which belong together --- */

/* Found once for all effects: there may be many effects and many repositories. */

/* One effect, and how much of its path is the folder. */
struct member {
	const char *path;
	size_t folder;
	size_t index;
};

static int repositories_compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	size_t n = x->folder < y->folder ? x->folder : y->folder;
	int order = memcmp(x->path, y->path, n);

	return order ? order : (x->folder > y->folder) - (x->folder < y->folder);
}

static void number_all(
	const struct change_effects *x, struct member *members, struct change_repositories *ret)
{
	uint32_t number = 0;
	size_t count = 0;

	for (size_t i = 0; i < x->count; i++) {
		const char *path = x->items[i].path;
		size_t folder = change_git_place_of(path).folder;

		if (folder)
			members[count++] = (struct member){ path, folder, i };
	}
	if (count)
		qsort(members, count, sizeof(*members), repositories_compare);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || repositories_compare(&members[i - 1], &members[i]) != 0)
			number++;
		ret->of[members[i].index] = number;
	}
}

int change_repositories_init(struct change_repositories *r, const struct change_effects *x)
{
	struct member *members = calloc(x->count + 1, sizeof(*members));

	*r = (struct change_repositories){
		.of = calloc(x->count + 1, sizeof(*r->of)),
		.has_state = calloc(x->count + 1, sizeof(*r->has_state)),
		.is_left = calloc(x->count + 1, sizeof(*r->is_left)),
	};
	if (members && r->of && r->has_state && r->is_left)
		number_all(x, members, r);
	free(members);
	return members && r->of && r->has_state && r->is_left ? 0 : -ENOMEM;
}

void change_repositories_done(struct change_repositories *r)
{
	free(r->of);
	free(r->has_state);
	free(r->is_left);
}
