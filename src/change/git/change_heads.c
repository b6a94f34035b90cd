/*
 * A folder without its HEAD is no repository to git: what else a run removed from it, or moved, is
 * held with it. Taken over without, it would leave the host a repository that cannot be used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change/scan/change_marks.h"
#include "change/scan/change_scanner.h"

/* The first bytes of a path. */
struct folder {
	const char *path;
	size_t n;
};

static int heads_compare(const void *a, const void *b)
{
	const struct folder *x = a, *y = b;
	size_t n = x->n < y->n ? x->n : y->n;
	int order = memcmp(x->path, y->path, n);

	return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* Where something was that is not there any more; NULL: it still is. */
static const char *gone_path(const struct change_effect *x)
{
	return x->change == CHANGE_DELETED ? x->path : x->from;
}

static bool is_in_one_of(const char *path, const struct folder *folders, size_t count)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		const struct folder folder = { path, (size_t)(slash - path) };

		if (bsearch(&folder, folders, count, sizeof(folder), heads_compare))
			return true;
	}
	return false;
}

int change_hold_headless(struct change_effects *x)
{
	struct folder *folders;
	size_t count = 0;

	for (size_t i = 0; i < x->count; i++)
		count += gone_path(&x->items[i]) && change_is_head(gone_path(&x->items[i]));
	if (count == 0)
		return 0;
	folders = arena_array(&x->arena, count, sizeof(*folders));
	if (!folders)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < x->count; i++) {
		const char *path = gone_path(&x->items[i]);

		if (path && change_is_head(path))
			folders[count++] =
				(struct folder){ path, (size_t)(strrchr(path, '/') - path) };
	}
	qsort(folders, count, sizeof(*folders), heads_compare);
	for (size_t i = 0; i < x->count; i++) {
		const char *path = gone_path(&x->items[i]);

		if (path && x->items[i].mark < CHANGE_HELD && is_in_one_of(path, folders, count))
			x->items[i].mark = CHANGE_HELD;
	}
	return 0;
}
