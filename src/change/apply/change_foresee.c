/*
 * change_foresee - what would come of effects.
 *
 * Runs as:  part of change_apply, in a dry run.
 * Must not: change anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/apply/change_carrier.h"
#include "change/scan/change_scanner.h"

/* --- one by itself --- */

static bool can_merge(struct change_job *j, struct change_put *p)
{
	own(buf) struct buf merged = { .max = 3 * CHANGE_MAX_TEXT };
	own_fd int layer =
		change_put_open_layer(j, p->x->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	int r = layer < 0 ? 0 : change_put_open_old(j, p);

	if (layer < 0)
		change_put_fail_layer(p, -layer);
	else if (r < 0)
		change_put_fail_host(p, -r);
	return layer >= 0 && r == 0 && change_put_merge(j, p, layer, &merged);
}

void change_put_foresee(struct change_job *j, struct change_put *p)
{
	bool is_merge = p->step == CHANGE_STEP_MERGE;

	if (p->step == CHANGE_STEP_NONE || (is_merge && !can_merge(j, p)))
		return;
	p->verdict = is_merge ? CHANGE_MERGED : CHANGE_APPLIED;
	p->step = CHANGE_STEP_NONE;
}

/* --- with what was foreseen of others --- */

static bool is_applied(const struct change_carrier *c, const struct change_effect *x)
{
	uint8_t verdict = c->verdicts[x - c->job.x->items];

	return verdict == CHANGE_APPLIED || verdict == CHANGE_MERGED || verdict == CHANGE_THERE;
}

void change_foresee_folder(const struct change_carrier *c, struct change_put *p)
{
	const struct change_effect *folder;

	if (p->verdict != CHANGE_UNDECIDED || p->folder->fd >= 0)
		return;
	folder = change_effect_find(c->job.x, p->path, p->folder->len);
	if (folder && folder->after.type == CHANGE_FOLDER && is_applied(c, folder))
		p->verdict = CHANGE_APPLIED;
}

static int compare_old(const void *a, const void *b)
{
	const struct change_effect *const *x = a, *const *y = b;

	return strcmp((*x)->from, (*y)->from);
}

int change_foresee_init(struct change_carrier *c)
{
	const struct change_effects *x = c->job.x;

	c->moved = calloc(x->count + 1, sizeof(*c->moved));
	if (!c->moved)
		return -ENOMEM;
	for (size_t i = 0; i < x->count; i++)
		if (x->items[i].from)
			c->moved[c->moved_count++] = &x->items[i];
	qsort(c->moved, c->moved_count, sizeof(const struct change_effect *), compare_old);
	return 0;
}

/* Would nothing have this name any more? */
static bool would_go(const struct change_carrier *c, const char *path)
{
	const struct change_effect key = { .from = path }, *wanted = &key;
	const struct change_effect *found = change_effect_find(c->job.x, path, strlen(path));
	const struct change_effect *const *moved;

	if (found && found->change == CHANGE_DELETED)
		return is_applied(c, found);
	moved = bsearch(&wanted, c->moved, c->moved_count, sizeof(const struct change_effect *),
		compare_old);
	return moved && is_applied(c, *moved);
}

void change_foresee_removal(const struct change_carrier *c, struct change_put *p)
{
	own(buf) struct buf path = { .max = CHANGE_MAX_PATH };
	own_fd int folder = -1;
	struct file_entries entries = { .fd = -1 };
	const struct file_entry *entry;

	if (p->verdict != CHANGE_UNDECIDED || p->folder->fd < 0)
		return;
	folder = file_open_same_mount(p->folder->fd, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	entries.fd = folder;
	while (folder >= 0 && p->verdict == CHANGE_UNDECIDED &&
		(entry = file_next_entry(&entries))) {
		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		path.len = 0;
		buf_printf(&path, "%s/%s", p->path, entry->name);
		if (path.failed || !would_go(c, path.data))
			change_put_decide(p, CHANGE_CONFLICT, "it is not empty");
	}
}
