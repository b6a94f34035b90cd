/*
 * work_foresee - what would come of effects.
 *
 * Runs as:  part of work_apply, in a dry run.
 * Must not: change anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "work/work_carrier.h"
#include "work/work_scanner.h"

/* --- one by itself --- */

static bool can_merge(struct work_job *j, struct work_put *p)
{
	own(buf) struct buf merged = { .max = 3 * WORK_MAX_TEXT };
	own_fd int layer =
		work_put_open_layer(j, p->x->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	int r = layer < 0 ? 0 : work_put_open_old(j, p);

	if (layer < 0)
		work_put_fail_layer(p, -layer);
	else if (r < 0)
		work_put_fail_host(p, -r);
	return layer >= 0 && r == 0 && work_put_merge(j, p, layer, &merged);
}

void work_put_foresee(struct work_job *j, struct work_put *p)
{
	bool is_merge = p->step == WORK_STEP_MERGE;

	if (p->step == WORK_STEP_NONE || (is_merge && !can_merge(j, p)))
		return;
	p->verdict = is_merge ? WORK_MERGED : WORK_APPLIED;
	p->step = WORK_STEP_NONE;
}

/* --- with what was foreseen of others --- */

static bool is_applied(const struct work_carrier *c, const struct work_effect *x)
{
	uint8_t verdict = c->verdicts[x - c->job.x->items];

	return verdict == WORK_APPLIED || verdict == WORK_MERGED || verdict == WORK_THERE;
}

void work_foresee_folder(const struct work_carrier *c, struct work_put *p)
{
	const struct work_effect *folder;

	if (p->verdict != WORK_UNDECIDED || p->folder->fd >= 0)
		return;
	folder = work_effect_find(c->job.x, p->path, p->folder->len);
	if (folder && folder->after.type == WORK_FOLDER && is_applied(c, folder))
		p->verdict = WORK_APPLIED;
}

static int compare_old(const void *a, const void *b)
{
	const struct work_effect *const *x = a, *const *y = b;

	return strcmp((*x)->from, (*y)->from);
}

int work_foresee_init(struct work_carrier *c)
{
	const struct work_effects *x = c->job.x;

	c->moved = calloc(x->count + 1, sizeof(*c->moved));
	if (!c->moved)
		return -ENOMEM;
	for (size_t i = 0; i < x->count; i++)
		if (x->items[i].from)
			c->moved[c->moved_count++] = &x->items[i];
	qsort(c->moved, c->moved_count, sizeof(const struct work_effect *), compare_old);
	return 0;
}

/* Would nothing have this name any more? */
static bool would_go(const struct work_carrier *c, const char *path)
{
	const struct work_effect key = { .from = path }, *wanted = &key;
	const struct work_effect *found = work_effect_find(c->job.x, path, strlen(path));
	const struct work_effect *const *moved;

	if (found && found->change == WORK_DELETED)
		return is_applied(c, found);
	moved = bsearch(
		&wanted, c->moved, c->moved_count, sizeof(const struct work_effect *), compare_old);
	return moved && is_applied(c, *moved);
}

void work_foresee_removal(const struct work_carrier *c, struct work_put *p)
{
	own(buf) struct buf path = { .max = WORK_MAX_PATH };
	own_fd int folder = -1;
	struct file_entries entries = { .fd = -1 };
	const struct file_entry *entry;

	if (p->verdict != WORK_UNDECIDED || p->folder->fd < 0)
		return;
	folder = file_open_same_mount(p->folder->fd, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	entries.fd = folder;
	while (folder >= 0 && p->verdict == WORK_UNDECIDED && (entry = file_next_entry(&entries))) {
		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		path.len = 0;
		buf_printf(&path, "%s/%s", p->path, entry->name);
		if (path.failed || !would_go(c, path.data))
			work_put_decide(p, WORK_CONFLICT, "it is not empty");
	}
}
