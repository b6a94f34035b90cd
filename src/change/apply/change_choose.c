#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "change/apply/change_put.h"
#include "change/scan/change_scanner.h"

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
