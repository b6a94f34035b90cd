#include "change/change.h"

#include <string.h>

void change_effects_init(struct change_effects *x)
{
	memset(x, 0, sizeof(*x));
	arena_init(&x->arena, CHANGE_MAX_MEMORY);
}

void change_effects_done(struct change_effects *x)
{
	arena_done(&x->arena);
	x->items = NULL;
	x->count = 0;
}

const char *change_type_word(enum change_type t)
{
	static const char *const words[] = { "nothing", "file", "folder", "link", "special" };

	return words[t];
}

const char *change_change_word(enum change_change c)
{
	static const char *const words[] = { "added", "changed", "deleted", "renamed" };

	return words[c];
}

const char *change_mark_word(enum change_mark m)
{
	static const char *const words[] = { "plain", "runs", "held", "lock" };

	return words[m];
}

void change_sum_up(const struct change_effects *x, struct change_sum *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < x->count; i++) {
		const struct change_effect *effect = &x->items[i];

		if (effect->is_implied)
			continue;
		ret->added += effect->change == CHANGE_ADDED;
		ret->changed += effect->change == CHANGE_CHANGED;
		ret->deleted += effect->change == CHANGE_DELETED;
		ret->renamed += effect->change == CHANGE_RENAMED;
		ret->held += effect->mark == CHANGE_HELD;
		ret->runs += effect->mark == CHANGE_RUNS;
	}
}
