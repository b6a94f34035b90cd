/*
 * cli_kept_there - which effects the host has already.
 *
 * Runs as:  the operator.
 * Must not: change anything.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "change/apply/change_apply.h"
#include "cli/cli_kept.h"

static void note_there(
	void *of, const struct change_effect *x, enum change_verdict v, const char *why)
{
	struct cli_there *f = of;
	struct cli_kept *k = f->k;

	k->is_there[x - k->effects.items] = v == CHANGE_THERE;
	if (v == CHANGE_FAILED && f->unknown++ == 0) {
		f->example = x;
		snprintf(f->why, sizeof(f->why), ": %s", why ? why : "for no known reason");
	}
}

void cli_kept_find_there(struct cli_there *ret)
{
	struct cli_kept *k = ret->k;
	struct change_apply q = {
		.run = k->id,
		.folder = k->folder,
		.layer = k->layer,
		.below = k->below,
		.git = cli_kept_git(k),
		.is_dry = true,
		.takes_held = true,
		.paths = k->paths,
		.path_count = k->path_count,
		.tell = note_there,
		.of = ret,
	};
	struct change_applied result;
	int r;

	if (k->is_going_on)
		return;
	k->is_there = arena_array(&k->arena, k->effects.count, sizeof(*k->is_there));
	if (k->below < 0)
		r = err_sys(&ret->e, k->below_failure, "cannot open '%s'",
			k->unopened ? k->unopened : "the project");
	else if (!k->is_there)
		r = err_set(
			&ret->e, ERR_SYS, ENOMEM, "cannot find out what is applied: out of memory");
	else
		r = change_apply(&q, &k->effects, &result, &ret->e);
	ret->has_failed = r < 0;
	if (r < 0)
		k->is_there = NULL;
}

size_t cli_kept_count_there(const struct cli_kept *k)
{
	size_t n = 0;

	for (size_t i = 0; k->is_there && i < k->effects.count; i++)
		n += k->is_there[i] && !k->effects.items[i].is_implied;
	return n;
}
