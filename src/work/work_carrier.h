#pragma once

#include "work/work_put.h"

/* Everything that one call of work_apply knows. */
struct work_carrier {
	struct work_job job;
	struct work_batch batch;
	struct work_applied *ret;
	struct work_turn *turns;
	size_t count;
	uint8_t *choices, *verdicts; /* one for each effect */
	struct work_repositories repositories;
	const struct work_effect **moved; /* in a dry run: those with an old name, sorted by it */
	size_t moved_count;
	uint64_t done;
	int failure;
	struct err *e;
};

void work_carrier_done(struct work_carrier *c);

static inline const struct work_effect *work_carrier_effect(
	const struct work_carrier *c, const struct work_turn *t)
{
	return &c->job.x->items[t->index];
}

/* The verdict on an effect that needs no look, unless it has one. */
void work_carrier_decide(
	struct work_carrier *c, const struct work_effect *x, enum work_verdict v, const char *why);

/* Before a dry run: fills c->moved. 0 or -ENOMEM. */
int work_foresee_init(struct work_carrier *c);

/* In a dry run: it lies in a folder that would be made; it is a folder that would not be empty. */
void work_foresee_folder(const struct work_carrier *c, struct work_put *p);
void work_foresee_removal(const struct work_carrier *c, struct work_put *p);

/* All turns, in their order. 0 or -errno. */
int work_carrier_run(struct work_carrier *c);
