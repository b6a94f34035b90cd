#include "base/tail.h"

#include <stdlib.h>
#include <string.h>

void tail_init(struct tail *t, size_t max)
{
	*t = (struct tail){ .max = max };
}

void tail_done(struct tail *t)
{
	free(t->bytes);
	*t = (struct tail){ 0 };
}

void tail_add(struct tail *t, const void *bytes, size_t n)
{
	const char *from = bytes;
	size_t at, first;

	if (!t->bytes && n && t->max)
		t->bytes = t->total ? NULL : malloc(t->max);
	if (t->bytes && n > t->max) {
		t->total += n - t->max;
		from += n - t->max;
		n = t->max;
	}
	if (t->bytes && n) {
		at = (size_t)(t->total % t->max);
		first = n < t->max - at ? n : t->max - at;
		memcpy(t->bytes + at, from, first);
		memcpy(t->bytes, from + first, n - first);
	}
	t->total += n;
}

/* Returns the number of bytes kept. */
static size_t kept_size(const struct tail *t)
{
	if (!t->bytes)
		return 0;
	return t->total < t->max ? (size_t)t->total : t->max;
}

void tail_print(const struct tail *t, struct buf *out)
{
	size_t at = t->max && t->total > t->max ? (size_t)(t->total % t->max) : 0;
	size_t n = kept_size(t);

	if (n == 0)
		return;
	buf_add(out, t->bytes + at, n - at);
	buf_add(out, t->bytes, at);
}
