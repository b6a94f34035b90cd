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

void work_sum_up(const struct work_effects *x, struct work_sum *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < x->count; i++) {
		const struct work_effect *effect = &x->items[i];

		ret->added += effect->change == WORK_ADDED;
		ret->changed += effect->change == WORK_CHANGED;
		ret->deleted += effect->change == WORK_DELETED;
		ret->renamed += effect->change == WORK_RENAMED;
		ret->held += effect->mark == WORK_HELD;
		ret->runs += effect->mark == WORK_RUNS;
	}
}
