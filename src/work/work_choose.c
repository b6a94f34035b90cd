#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "work/work_put.h"
#include "work/work_scanner.h"

static bool is_within(const char *inner, const char *outer)
{
	return str_eq(outer, ".") || str_path_within(inner, outer);
}

bool work_effect_is_within(const struct work_effect *x, const char *path)
{
	return is_within(x->path, path) || (x->from && is_within(x->from, path));
}

/*
 * Is it the old name alone that makes this effect, a renaming, one that runs on the host? What the
 * new one is by its place, as in a bare repository, only the note tells.
 */
static bool is_held_by_old(const struct work_apply *q, const struct work_effect *x)
{
	struct work_effect now = *x;

	now.from = NULL;
	return !x->note && work_mark_of(x->from, q->held, q->held_count) == WORK_HELD &&
	       work_mark_effect(&now, q->held, q->held_count) != WORK_HELD;
}

/*
 * Is this effect, which runs on the host, meant by this path? By its own, or one that runs too; who
 * says the old name of something does not say what runs under the new one.
 */
static bool is_named(const struct work_apply *q, const struct work_effect *x, const char *path)
{
	const struct work_effect folder = {
		.path = path, .before.type = WORK_FOLDER, .after.type = WORK_FOLDER
	};

	if (!is_within(x->path, path) && !is_held_by_old(q, x))
		return false;
	if (str_eq(path, x->path) || (x->from && str_eq(path, x->from)))
		return true;
	return work_mark_effect(&folder, q->held, q->held_count) == WORK_HELD;
}

enum work_choice work_choose_one(const struct work_apply *q, const struct work_effect *x)
{
	enum work_choice choice = q->path_count ? WORK_NOT_CHOSEN : WORK_CHOSEN;
	bool is_held = x->mark == WORK_HELD && !q->takes_held;

	if (choice == WORK_CHOSEN && is_held)
		return WORK_CHOSEN_HELD;
	for (size_t i = 0; i < q->path_count; i++) {
		if (!work_effect_is_within(x, q->paths[i]))
			continue;
		if (!is_held || is_named(q, x, q->paths[i]))
			return WORK_CHOSEN;
		choice = WORK_CHOSEN_HELD;
	}
	return choice;
}

/* The new folders that the effect at `index` lies in. */
static void choose_folders(const struct work_effects *x, size_t index, uint8_t *choices)
{
	const char *path = x->items[index].path;

	for (const char *slash = strrchr(path, '/'); slash;
		slash = memrchr(path, '/', (size_t)(slash - path))) {
		const struct work_effect *folder =
			work_effect_find(x, path, (size_t)(slash - path));

		if (!folder)
			continue;
		if (folder->change != WORK_ADDED || folder->after.type != WORK_FOLDER ||
			choices[folder - x->items] == WORK_CHOSEN)
			return;
		choices[folder - x->items] = WORK_CHOSEN;
	}
}

/* A ref is worth nothing without its objects: who chooses the one takes the others along. */
static void choose_objects(
	const struct work_effects *x, struct work_repositories *r, uint8_t *choices)
{
	for (size_t i = 0; i < x->count; i++)
		if (choices[i] == WORK_CHOSEN && r->of[i] &&
			work_git_place_of(x->items[i].path).kind == WORK_GIT_STATE)
			r->has_state[r->of[i]] = true;
	for (size_t i = 0; i < x->count; i++)
		if (r->has_state[r->of[i]] && x->items[i].change == WORK_ADDED &&
			choices[i] != WORK_CHOSEN_HELD &&
			work_git_place_of(x->items[i].path).kind == WORK_GIT_OBJECT)
			choices[i] = WORK_CHOSEN;
}

void work_choose(const struct work_apply *q, const struct work_effects *x,
	struct work_repositories *repositories, uint8_t *choices)
{
	bool is_all = true;

	for (size_t i = 0; i < x->count; i++) {
		choices[i] = (uint8_t)work_choose_one(q, &x->items[i]);
		is_all &= choices[i] == WORK_CHOSEN;
	}
	if (is_all)
		return;
	choose_objects(x, repositories, choices);
	for (size_t i = 0; i < x->count; i++)
		if (choices[i] == WORK_CHOSEN && x->items[i].after.type != WORK_NOTHING)
			choose_folders(x, i, choices);
}
