#pragma once

#include "change/apply/change_put.h"

/* Everything that one call of change_apply knows. */
struct change_carrier {
	struct change_job job;
	struct change_batch batch;
	struct change_applied *ret;
	struct change_turn *turns;
	size_t count;
	uint8_t *choices, *verdicts; /* one for each effect */
	struct change_repositories repositories;
	const struct change_effect **moved; /* in a dry run: those with an old name, sorted by it */
	size_t moved_count;
	uint64_t done;
	int failure;
	struct err *e;
};

void change_carrier_done(struct change_carrier *c);

static inline const struct change_effect *change_carrier_effect(
	const struct change_carrier *c, const struct change_turn *t)
{
	return &c->job.x->items[t->index];
}

/* Before a dry run: fills c->moved. 0 or -ENOMEM. */
int change_foresee_init(struct change_carrier *c);

/* In a dry run: it lies in a folder that would be made; it is a folder that would not be empty. */
void change_foresee_folder(const struct change_carrier *c, struct change_put *p);
void change_foresee_removal(const struct change_carrier *c, struct change_put *p);
