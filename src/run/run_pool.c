/* Cages that wait for their session. */
#include <string.h>

#include "run/run_session.h"

static void put_first(struct run_pool *pool, struct keep_warm *cage)
{
	size_t last = RUN_POOL_SIZE - 1;

	if (pool->cages[last])
		keep_warm_free(pool->cages[last]);
	memmove(pool->cages + 1, pool->cages, last * sizeof(*pool->cages));
	pool->cages[0] = cage;
}

/* One that has ended, or shows what is elsewhere by now, is of no use to anybody. */
static struct keep_warm **find(struct run_pool *pool, const struct plan *p)
{
	for (size_t i = 0; i < RUN_POOL_SIZE; i++) {
		struct keep_warm **cage = &pool->cages[i];

		if (!*cage || !keep_warm_is_for(*cage, p))
			continue;
		if (keep_warm_waits(*cage))
			return cage;
		keep_warm_free(*cage);
		*cage = NULL;
	}
	return NULL;
}

struct keep_warm *run_pool_take(struct run_pool *pool, const struct plan *p)
{
	struct keep_warm **found = find(pool, p), *cage = found ? *found : NULL;

	if (found) {
		*found = NULL;
		pool->hits++;
	} else {
		pool->misses++;
	}
	return cage;
}

void run_pool_fill(struct run_pool *pool, const struct keep_request *q)
{
	struct keep_warm *cage = NULL;
	struct err e = { 0 };

	/* Without one the next run is made as any other is, and says itself what is wrong. */
	if (!find(pool, q->plan) && keep_warm_make(q, &cage, &e) == 0)
		put_first(pool, cage);
}

void run_pool_done(struct run_pool *pool)
{
	for (size_t i = 0; i < RUN_POOL_SIZE; i++) {
		keep_warm_free(pool->cages[i]);
		pool->cages[i] = NULL;
	}
}
