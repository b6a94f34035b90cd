#include "work/work.h"

#include <string.h>

void work_effects_init(struct work_effects *x)
{
	memset(x, 0, sizeof(*x));
	arena_init(&x->arena, WORK_MAX_MEMORY);
}

void work_effects_done(struct work_effects *x)
{
	arena_done(&x->arena);
	x->items = NULL;
	x->count = 0;
}

const char *work_type_word(enum work_type t)
{
	static const char *const words[] = { "nothing", "file", "folder", "link", "special" };

	return words[t];
}

const char *work_change_word(enum work_change c)
{
	static const char *const words[] = { "added", "changed", "deleted", "renamed" };

	return words[c];
}

const char *work_mark_word(enum work_mark m)
{
	static const char *const words[] = { "plain", "runs", "held", "lock" };

	return words[m];
}

void work_sum_up(const struct work_effects *x, struct work_sum *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < x->count; i++) {
		const struct work_effect *effect = &x->items[i];

		if (effect->is_implied)
			continue;
		ret->added += effect->change == WORK_ADDED;
		ret->changed += effect->change == WORK_CHANGED;
		ret->deleted += effect->change == WORK_DELETED;
		ret->renamed += effect->change == WORK_RENAMED;
		ret->held += effect->mark == WORK_HELD;
		ret->runs += effect->mark == WORK_RUNS;
	}
}
