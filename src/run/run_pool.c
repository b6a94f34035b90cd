/* Cages that wait for their session. */
#include <string.h>

#include "keeper/keeper.h"
#include "run/run_session.h"

static void put_first(struct run_pool *pool, struct keeper *cage)
{
	size_t last = RUN_POOL_SIZE - 1;

	if (pool->cages[last])
		keeper_free(pool->cages[last]);
	memmove(pool->cages + 1, pool->cages, last * sizeof(*pool->cages));
	pool->cages[0] = cage;
}

/* One that has ended, or shows what is elsewhere by now, is of no use to anybody. */
static struct keeper **pool_find(struct run_pool *pool, const struct plan *p)
{
	for (size_t i = 0; i < RUN_POOL_SIZE; i++) {
		struct keeper **cage = &pool->cages[i];

		if (!*cage || !keeper_warm_is_for(*cage, p))
			continue;
		if (keeper_warm_waits(*cage))
			return cage;
		keeper_free(*cage);
		*cage = NULL;
	}
	return NULL;
}

struct keeper *run_pool_take(struct run_pool *pool, const struct plan *p)
{
	struct keeper **found = pool_find(pool, p), *cage = found ? *found : NULL;

	if (found) {
		*found = NULL;
		pool->hits++;
	} else {
		pool->misses++;
	}
	return cage;
}

void run_pool_fill(struct run_pool *pool, struct run *r)
{
	struct keeper *cage = NULL;
	struct err e = { 0 };

	if (pool_find(pool, r->plan) || keeper_new_warm(&cage, &r->request, &e) < 0)
		return;
	/* Without one the next run is made as any other is, and says itself what is wrong. */
	if (run_start_cage(r, cage, &e) == 0)
		put_first(pool, cage);
	else
		keeper_free(cage);
}

void run_pool_done(struct run_pool *pool)
{
	for (size_t i = 0; i < RUN_POOL_SIZE; i++) {
		keeper_free(pool->cages[i]);
		pool->cages[i] = NULL;
	}
}
