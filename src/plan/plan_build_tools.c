#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "plan/plan_builder.h"

/*
 * What bawn has in the cage: its program, a socket at which that is heard, and a description of the
 * wall for whoever lives in it. The description is made from the mounts that are planned, as
 * Landlock's rules are, so that it says what they do.
 */

struct place {
	const char *path;
	size_t order;   /* a later mount covers an earlier one */
	bool is_closed; /* nothing below can be written */
	bool is_held;   /* by name: it is no mount of its own */
};

struct places {
	struct place *items;
	size_t count;
};

static void build_tools_add_place(
	struct places *all, const char *path, bool is_closed, bool is_held)
{
	all->items[all->count] = (struct place){
		.path = path, .order = all->count, .is_closed = is_closed, .is_held = is_held
	};
	all->count++;
}

/* Does writing to the root of an image go into a layer that is kept? */
static bool is_root_closed(const struct plan_builder *b)
{
	return str_eq(spec_text(b->spec, SPEC_ROOT_OVERLAY), "ephemeral");
}

/* What an operation opens; its path is borrowed from the plan, or NULL: it opens none. */
static void add_place_of(struct plan_builder *b, const struct plan_op *op, struct places *all)
{
	const char *to = b->strings.data + op->b;
	const char *top = op->a_root == PLAN_ROOT_GIT ? plan_roots[PLAN_ROOT_GIT].name
						      : plan_project_place(b->spec, b->engine);
	bool is_inside = op->kind == PLAN_PART || op->kind == PLAN_PROTECT;
	bool is_mount = op->kind == PLAN_TMPFS || op->kind == PLAN_BIND || op->kind == PLAN_DIR ||
			op->kind == PLAN_PROC || op->kind == PLAN_GIT || op->kind == PLAN_DEVICE ||
			op->kind == PLAN_DEVPTS ||
			(op->kind == PLAN_PROJECT && !(op->flags & PLAN_PARTS));

	if (is_inside)
		to = arena_printf(&b->spec->arena, "%s/%s", top, to);
	else if (op->b_root != PLAN_ROOT_NONE)
		to = arena_printf(&b->spec->arena, "%s%s", plan_roots[op->b_root].name, to);
	if (!to)
		b->ops.failed = true;
	else if (plan_is_image(op))
		build_tools_add_place(all, to, is_root_closed(b), false);
	else if (is_inside || (is_mount && !str_eq(to, "/")))
		build_tools_add_place(
			all, to, op->flags & PLAN_READ_ONLY, op->kind == PLAN_PROTECT);
}

static int build_tools_compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : x->order < y->order ? -1 : 1;
}

/* In the order of their paths, each once. */
static void sort_places(struct places *all)
{
	size_t n = 0;

	qsort(all->items, all->count, sizeof(*all->items), build_tools_compare_places);
	for (size_t i = 0; i < all->count; i++)
		if (i + 1 == all->count || !str_eq(all->items[i].path, all->items[i + 1].path))
			all->items[n++] = all->items[i];
	all->count = n;
}

/* The nearest place that holds this one: what is above a path comes before it. */
static const struct place *find_above(const struct places *all, size_t i)
{
	for (size_t k = i; k-- > 0;)
		if (str_path_within(all->items[i].path, all->items[k].path))
			return &all->items[k];
	return NULL;
}

enum list {
	READ,
	WRITE,
	PROTECT
};

/* Does a place say anything that the one above it does not? */
static bool build_tools_is_listed(const struct places *all, size_t i, enum list list)
{
	const struct place *place = &all->items[i], *above = find_above(all, i);

	if (list == READ)
		return !above && !place->is_held;
	if (list == WRITE)
		return !place->is_closed && (!above || above->is_closed);
	return place->is_closed && ((above && !above->is_closed) || place->is_held);
}

static void print_places(const struct places *all, enum list list, const char *name, struct json *j)
{
	json_open_list(j, name);
	for (size_t i = 0; i < all->count; i++)
		if (build_tools_is_listed(all, i, list))
			json_text(j, NULL, all->items[i].path);
	json_close_list(j);
}

static void build_tools_print_network(struct plan_builder *b, struct json *j)
{
	unsigned mode = spec_choice(b->spec, SPEC_NETWORK_MODE);
	size_t n = 0;
	own_free const struct spec_item **allowed =
		spec_ordered(SPEC_NETWORK_ALLOW, spec_list(b->spec, SPEC_NETWORK_ALLOW), &n);

	if (!allowed)
		b->ops.failed = true;
	json_text(j, "network", spec_keys[SPEC_NETWORK_MODE].choices[mode]);
	json_open_list(j, "allow");
	for (size_t i = 0; allowed && mode == SPEC_NET_ALLOWLIST && i < n; i++)
		json_text(j, NULL, allowed[i]->text);
	json_close_list(j);
}

static void print_description(struct plan_builder *b, const struct places *all, struct buf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	json_text(&j, "project", plan_project_place(b->spec, b->engine));
	json_text(&j, "home", "/home/agent");
	print_places(all, READ, "read", &j);
	print_places(all, WRITE, "write", &j);
	print_places(all, PROTECT, "protect", &j);
	build_tools_print_network(b, &j);
	json_close_map(&j);
	buf_putc(out, '\n');
}

static void add_description(struct plan_builder *b)
{
	const struct plan_op *ops = (const struct plan_op *)(const void *)b->ops.data;
	size_t count = b->ops.len / sizeof(*ops);
	struct places all = { .items = arena_array(
				      &b->spec->arena, count + 1, sizeof(struct place)) };
	own(buf) struct buf text = { .max = PLAN_MAX_SIZE };

	if (!all.items || b->ops.failed || b->strings.failed) {
		b->ops.failed = true;
		return;
	}
	for (size_t i = 0; i < count; i++)
		add_place_of(b, &ops[i], &all);
	/* It comes later, and then can be written. */
	if (plan_awaits_session(b))
		build_tools_add_place(&all, plan_project_place(b->spec, b->engine), false, false);
	sort_places(&all);
	print_description(b, &all, &text);
	b->ops.failed |= text.failed;
	plan_add(b, PLAN_DESCRIBE, buf_text(&text), "/etc/bawn/cage.json", PLAN_OP(.mode = 0444));
}

/*
 * A folder of their own, so that nobody in the cage can put others there. In a session nobody
 * listens: a cage may wait for whichever one comes, or be that of many commands.
 */
void plan_add_tools(struct plan_builder *b)
{
	const uint16_t flags = PLAN_READ_ONLY | PLAN_NO_DEV;

	if (!spec_bool(b->spec, SPEC_TOOLS))
		return;
	plan_add(b, PLAN_TMPFS, "", "/run/bawn", PLAN_OP(.mode = 0755, .flags = flags));
	plan_add(b, PLAN_BIND, "", "/run/bawn/bawn",
		PLAN_OP(.a_root = PLAN_ROOT_BAWN, .flags = flags));
	if (!b->host->in_session)
		plan_add(b, PLAN_BIND, "", "/run/bawn/told",
			PLAN_OP(.a_root = PLAN_ROOT_TOLD, .flags = flags | PLAN_NO_EXEC));
	add_description(b);
}
