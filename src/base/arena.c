#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)32 * 1024)

struct arena_block {
	struct arena_block *next;
	size_t size, used;
	bool is_zero;
	alignas(max_align_t) unsigned char bytes[];
};

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){ .max = max };
}

void arena_done(struct arena *a)
{
	for (struct arena_block *b = a->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	*a = (struct arena){ 0 };
}

static struct arena_block *arena_grow(struct arena *a, size_t size)
{
	size_t want = size > BLOCK_SIZE / 4 ? size : BLOCK_SIZE;
	/* What of a block is never used need not be touched: a large piece may be a table with a
	 * long end, and calloc knows memory that is zero already. */
	struct arena_block *b =
		want == size ? calloc(1, sizeof(*b) + want) : malloc(sizeof(*b) + want);

	if (!b)
		return NULL;
	b->size = want;
	b->used = 0;
	b->is_zero = want == size;
	/* A large piece gets a block of its own, behind the one that still has room. */
	if (want == size && a->blocks) {
		b->next = a->blocks->next;
		a->blocks->next = b;
	} else {
		b->next = a->blocks;
		a->blocks = b;
	}
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b = a->blocks;
	void *p;

	if (size > a->max || size > SIZE_MAX - alignof(max_align_t))
		return NULL;
	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (size == 0)
		size = alignof(max_align_t);
	if (size > a->max - a->used)
		return NULL;
	if (!b || b->size - b->used < size)
		b = arena_grow(a, size);
	if (!b)
		return NULL;
	p = b->bytes + b->used;
	b->used += size;
	a->used += size;
	return b->is_zero ? p : memset(p, 0, size);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / size)
		return NULL;
	return arena_alloc(a, count * size);
}

char *arena_copy(struct arena *a, const char *text, size_t n)
{
	char *p = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;

	if (p && n)
		memcpy(p, text, n);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list args;
	char *p;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(args, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, args);
	va_end(args);
	return p;
}
