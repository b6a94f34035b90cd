/*
 * change_clear - empties a layer that is of no use any more, by several threads.
 *
 * Runs as:     the operator, when all of a run is applied or discarded.
 * Enters with: a layer with a name by which nobody takes it for what the run did.
 * Leaves:      less of it. What cannot be removed stays: whoever removes the layer says why.
 * Must not:    follow a link, leave the layer.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "base/tree.h"
#include "change/apply/change_put.h"

#define FOLDERS_MIN 8 /* fewer are not worth a thread */
#define DEEPEST     64
#define NAMES_MAX   ((size_t)64 << 20)

/* The folders in one. */
struct clearing {
	int at;
	struct arena arena; /* of the names */
	struct name {
		struct name *next;
		const char *text;
	} * names;
	size_t count;
	_Atomic(struct name *) next; /* for the threads */
};

static void *clear_some(void *of)
{
	struct clearing *c = of;
	struct name *name = atomic_load(&c->next);

	while (name)
		if (atomic_compare_exchange_weak(&c->next, &name, name->next)) {
			tree_remove(c->at, name->text, NULL);
			name = atomic_load(&c->next);
		}
	return NULL;
}

/* False: it has something else too, or cannot be listed. */
static bool clear_list(struct clearing *c)
{
	struct file_entries entries = { .fd = c->at };
	const struct file_entry *entry;
	bool has_more = false;

	while ((entry = file_next_entry(&entries))) {
		struct name *name;

		if (str_eq(entry->name, ".") || str_eq(entry->name, ".."))
			continue;
		has_more |= entry->type != DT_DIR;
		name = entry->type == DT_DIR ? arena_alloc(&c->arena, sizeof(*name)) : NULL;
		if (!name)
			continue;
		*name = (struct name){ .next = c->names,
			.text = arena_copy(&c->arena, entry->name, strlen(entry->name)) };
		if (!name->text)
			break;
		c->names = name;
		c->count++;
	}
	atomic_store(&c->next, c->names);
	return !has_more && !entries.failure;
}

/* What has one folder alone is not worth threads, but that folder may be. A descriptor, or -1. */
static int clear_open(int folder, const char *layer, struct clearing *c)
{
	own_fd int at = file_open_beneath(folder, layer, O_RDONLY | O_DIRECTORY, 0);

	for (int depth = 0; at >= 0 && depth < DEEPEST; depth++) {
		own_fd int above = take_fd(&at);

		arena_done(&c->arena);
		*c = (struct clearing){ .at = above };
		arena_init(&c->arena, NAMES_MAX);
		if (!clear_list(c) || c->count != 1)
			return take_fd(&above);
		at = file_open_name(above, c->names->text, O_RDONLY | O_DIRECTORY);
	}
	return -1;
}

void change_clear(int folder, const char *layer)
{
	struct clearing c = { .at = -1 };
	own_fd int at = clear_open(folder, layer, &c);

	if (at >= 0 && c.count >= FOLDERS_MIN)
		change_run_threads(c.count, clear_some, &c);
	arena_done(&c.arena);
}
