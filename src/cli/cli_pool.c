/* Cages that wait for their session, and sessions that wait for their next run. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli_exec.h"
#include "keep/keep.h"

static void put_first(struct exec_pool *pool, struct keep_warm *cage)
{
	size_t last = EXEC_POOL_SIZE - 1;

	if (pool->cages[last])
		keep_warm_free(pool->cages[last]);
	memmove(pool->cages + 1, pool->cages, last * sizeof(*pool->cages));
	pool->cages[0] = cage;
}

static struct keep_warm **find(struct exec_pool *pool, const struct plan *p)
{
	for (size_t i = 0; i < EXEC_POOL_SIZE; i++)
		if (pool->cages[i] && keep_warm_fits(pool->cages[i], p))
			return &pool->cages[i];
	return NULL;
}

struct keep_warm *exec_pool_take(struct exec_pool *pool, const struct plan *p)
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

void exec_pool_fill(struct exec_pool *pool, const struct keep_request *q)
{
	struct keep_warm *cage = NULL;
	struct err e = { 0 };

	/* Without one the next run is made as any other is, and says itself what is wrong. */
	if (!find(pool, q->plan) && keep_warm_make(q, &cage, &e) == 0)
		put_first(pool, cage);
}

/* --- sessions --- */

static void let_go(struct exec_held *h)
{
	if (h->fd >= 0)
		close(h->fd);
	*h = (struct exec_held){ .fd = -1 };
}

int *exec_pool_hold(struct exec_pool *pool, const char *session)
{
	struct exec_held found = { .fd = -1 };
	size_t i = 0;

	while (i < EXEC_HELD - 1 && !str_eq(pool->held[i].session, session))
		i++;
	if (str_eq(pool->held[i].session, session))
		found = pool->held[i];
	else
		let_go(&pool->held[i]);
	memmove(pool->held + 1, pool->held, i * sizeof(*pool->held));
	snprintf(found.session, sizeof(found.session), "%s", session);
	pool->held[0] = found;
	return &pool->held[0].fd;
}

void exec_pool_forget(struct exec_pool *pool, const char *session)
{
	for (size_t i = 0; i < EXEC_HELD; i++)
		if (str_eq(pool->held[i].session, session))
			let_go(&pool->held[i]);
}

void exec_pool_want(const struct exec_pool *pool, struct pollfd *ret)
{
	for (size_t i = 0; i < EXEC_HELD; i++)
		ret[i] = (struct pollfd){ .fd = pool->held[i].fd, .events = POLLIN };
}

void exec_pool_hear(struct exec_pool *pool, const struct pollfd *seen)
{
	for (size_t i = 0; i < EXEC_HELD; i++)
		if (seen[i].revents && seen[i].fd == pool->held[i].fd)
			let_go(&pool->held[i]);
}

void exec_pool_init(struct exec_pool *pool)
{
	*pool = (struct exec_pool){ 0 };
	for (size_t i = 0; i < EXEC_HELD; i++)
		pool->held[i].fd = -1;
}

void exec_pool_done(struct exec_pool *pool)
{
	for (size_t i = 0; i < EXEC_HELD; i++)
		let_go(&pool->held[i]);
	for (size_t i = 0; i < EXEC_POOL_SIZE; i++) {
		keep_warm_free(pool->cages[i]);
		pool->cages[i] = NULL;
	}
}
