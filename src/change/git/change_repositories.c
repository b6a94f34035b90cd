/* Which effects are in one repository's own folder: found once, for they may be many of both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change/apply/change_put.h"

/* One effect, and how much of its path is the folder. */
struct member {
	const char *path;
	size_t folder;
	size_t index;
};

static int repositories_compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	size_t n = x->folder < y->folder ? x->folder : y->folder;
	int order = memcmp(x->path, y->path, n);

	return order ? order : (x->folder > y->folder) - (x->folder < y->folder);
}

static void number_all(
	const struct change_effects *x, struct member *members, struct change_repositories *ret)
{
	uint32_t number = 0;
	size_t count = 0;

	for (size_t i = 0; i < x->count; i++) {
		const char *path = x->items[i].path;
		size_t folder = change_git_place_of(path).folder;

		if (folder)
			members[count++] = (struct member){ path, folder, i };
	}
	if (count)
		qsort(members, count, sizeof(*members), repositories_compare);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || repositories_compare(&members[i - 1], &members[i]) != 0)
			number++;
		ret->of[members[i].index] = number;
	}
}

int change_repositories_init(struct change_repositories *r, const struct change_effects *x)
{
	struct member *members = calloc(x->count + 1, sizeof(*members));

	*r = (struct change_repositories){
		.of = calloc(x->count + 1, sizeof(*r->of)),
		.has_state = calloc(x->count + 1, sizeof(*r->has_state)),
		.is_left = calloc(x->count + 1, sizeof(*r->is_left)),
	};
	if (members && r->of && r->has_state && r->is_left)
		number_all(x, members, r);
	free(members);
	return members && r->of && r->has_state && r->is_left ? 0 : -ENOMEM;
}

void change_repositories_done(struct change_repositories *r)
{
	free(r->of);
	free(r->has_state);
	free(r->is_left);
}
