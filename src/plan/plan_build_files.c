#include "plan/plan_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"

/*
 * The tree of a cage, from the root down: the system read-only, what the cage makes for itself,
 * the project, the declared binds. Nothing of the host is in it that is not in this file or in
 * the spec.
 */

static const char *const etc_passwd =
	"root:x:0:0:root:/root:/usr/sbin/nologin\n"
	"agent:x:1000:1000:agent:/home/agent:/bin/sh\n"
	"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char *const etc_passwd_fakeroot =
	"root:x:0:0:root:/home/agent:/bin/sh\n"
	"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char *const etc_group = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n";
static const char *const etc_hosts = "127.0.0.1 localhost bawn\n::1 localhost bawn\n";
/*
 * Git remembers who owned each file. In the cage that is somebody else, and so git would read the
 * whole project to find out that nothing changed.
 */
static const char *const etc_gitconfig[] = {
	[SPEC_GIT_AUTO] = "[core]\n\tcheckStat = minimal\n" PLAN_IDENTITY,
	[SPEC_GIT_NONE] = "[core]\n\tcheckStat = minimal\n",
};
static const char *const etc_nsswitch = "passwd: files\ngroup: files\nhosts: files dns\n";

#define READ_ONLY_TREE (PLAN_READ_ONLY | PLAN_NO_DEV)

static void add_image(struct plan_builder *b, const char *image)
{
	static const enum plan_op_kind kinds[] = { PLAN_IMAGE, PLAN_IMAGE_OCI, PLAN_IMAGE_SIF };
	enum plan_op_kind kind = PLAN_IMAGE_NAMED;
	uint16_t flags = PLAN_READ_ONLY;

	for (size_t i = 0; i < COUNT_OF(kinds) && kind == PLAN_IMAGE_NAMED; i++) {
		const char *prefix = plan_op_defs[kinds[i]].prefix;

		if (str_starts(image, prefix)) {
			kind = kinds[i];
			image += strlen(prefix);
		}
	}
	if (kind == PLAN_IMAGE && b->host->is_root)
		flags |= PLAN_IDMAPPED;
	plan_add(b, kind, image, "/",
		PLAN_OP(.flags = flags, .n = spec_number(b->spec, SPEC_LIMITS_DISK)));
}

static void add_system(struct plan_builder *b)
{
	const char *image = spec_text(b->spec, SPEC_ROOT_IMAGE);

	if (!str_eq(image, "host")) {
		add_image(b, image);
		return;
	}
	plan_add(b, PLAN_TMPFS, "", "/",
		PLAN_OP(.mode = 0755, .flags = PLAN_NO_DEV,
			.n = spec_number(b->spec, SPEC_LIMITS_DISK)));
	plan_add(b, PLAN_TMPFS, "", "/etc",
		PLAN_OP(.mode = 0755, .flags = PLAN_READ_ONLY | PLAN_NO_DEV));
	for (size_t i = 0; i < HOST_SYSTEM_COUNT; i++) {
		const char *path = host_system_paths[i];

		if (b->host->system[i].kind == HOST_PATH_LINK)
			plan_add(b, PLAN_SYMLINK, b->host->system[i].target, path, PLAN_OP());
		else if (b->host->system[i].kind != HOST_PATH_ABSENT)
			plan_add(b, PLAN_BIND, path, path, PLAN_OP(.flags = READ_ONLY_TREE));
	}
}

/*
 * A layer that outlives the run takes the writes to the root; otherwise they vanish with it. It
 * comes first, because the root is made of it.
 */
static void add_overlay(struct plan_builder *b)
{
	const char *overlay = spec_text(b->spec, SPEC_ROOT_OVERLAY);
	bool may_create = spec_bool(b->spec, SPEC_ROOT_OVERLAY_CREATE);

	if (!str_eq(overlay, "ephemeral"))
		plan_add(b, PLAN_OVERLAY, overlay, "/",
			PLAN_OP(.n = spec_number(b->spec, SPEC_ROOT_OVERLAY_SIZE),
				.flags = may_create ? PLAN_CREATE : 0));
}

/* The files a program looks for, made for the cage; the host's are never seen. */
static void add_etc(struct plan_builder *b)
{
	bool is_root = spec_bool(b->spec, SPEC_FAKEROOT);
	bool has_names = spec_choice(b->spec, SPEC_NETWORK_MODE) == SPEC_NET_ALLOWLIST;
	const struct {
		const char *path, *content;
	} files[] = {
		{ "/etc/group", etc_group },
		{ "/etc/hostname", "bawn\n" },
		{ "/etc/hosts", etc_hosts },
		{ "/etc/nsswitch.conf", etc_nsswitch },
		{ "/etc/passwd", is_root ? etc_passwd_fakeroot : etc_passwd },
		{ "/etc/resolv.conf", has_names ? "nameserver 127.0.0.1\n" : "" },
	};

	for (size_t i = 0; i < COUNT_OF(files); i++)
		plan_add(b, PLAN_FILE, files[i].content, files[i].path, PLAN_OP(.mode = 0444));
	plan_add(b, PLAN_SYMLINK, "/proc/self/mounts", "/etc/mtab", PLAN_OP());
	/* An image has its own; of the host's system it is where the standard puts it. */
	if (!str_eq(spec_text(b->spec, SPEC_ROOT_IMAGE), "host"))
		return;
	plan_add(b, PLAN_SYMLINK, "../usr/lib/os-release", "/etc/os-release", PLAN_OP());
	/*
	 * The zone that there is without one, said: whoever looks for its name (as node, bun and
	 * Java do) would else compare all files of all zones, which takes 50 ms.
	 */
	plan_add(b, PLAN_SYMLINK, "/usr/share/zoneinfo/Etc/UTC", "/etc/localtime", PLAN_OP());
	plan_add(b, PLAN_FILE, etc_gitconfig[spec_choice(b->spec, SPEC_PROJECT_GIT)],
		"/etc/gitconfig", PLAN_OP(.mode = 0444));
}

/*
 * A fresh /proc in which everything that is not a process is covered, but for the few files that
 * programs need. Where a container forbids a whole /proc, one of processes only has to do.
 */
static void add_proc(struct plan_builder *b)
{
	static const char *const kept[] = { "/proc/cpuinfo", "/proc/loadavg", "/proc/meminfo",
		"/proc/stat", "/proc/uptime" };
	bool is_whole = host_can(b->host, HOST_PROC);

	if (!is_whole && !host_can(b->host, HOST_PROC_SUBSET))
		return;
	plan_add(b, PLAN_PROC, "", "/proc",
		PLAN_OP(.flags = PLAN_NO_DEV | PLAN_NO_EXEC | (is_whole ? 0 : PLAN_SUBSET)));
	for (size_t i = 0; is_whole && i < COUNT_OF(kept); i++)
		plan_add(b, PLAN_PROC_FILE, "", kept[i],
			PLAN_OP_NEED(PLAN_MAY, .flags = PLAN_READ_ONLY));
}

static void add_dev(struct plan_builder *b)
{
	static const char *const devices[] = { "/dev/full", "/dev/null", "/dev/random", "/dev/tty",
		"/dev/urandom", "/dev/zero" };
	static const char *const links[][2] = { { "/proc/self/fd", "/dev/fd" },
		{ "pts/ptmx", "/dev/ptmx" }, { "/run/shm", "/dev/shm" },
		{ "/proc/self/fd/2", "/dev/stderr" }, { "/proc/self/fd/0", "/dev/stdin" },
		{ "/proc/self/fd/1", "/dev/stdout" } };

	plan_add(b, PLAN_TMPFS, "", "/dev",
		PLAN_OP(.mode = 0755, .flags = PLAN_READ_ONLY | PLAN_NO_EXEC));
	for (size_t i = 0; i < COUNT_OF(devices); i++)
		plan_add(b, PLAN_DEVICE, "", devices[i], PLAN_OP());
	plan_add(b, PLAN_DEVPTS, "", "/dev/pts", PLAN_OP(.flags = PLAN_NO_EXEC));
	for (size_t i = 0; i < COUNT_OF(links); i++)
		plan_add(b, PLAN_SYMLINK, links[i][0], links[i][1], PLAN_OP());
}

/* The cage's own places to write, all in the root's file system: one quota holds for them all. */
static void add_scratch(struct plan_builder *b)
{
	static const struct {
		const char *path;
		uint16_t mode;
	} places[] = {
		{ "/home/agent", 0700 },
		{ "/mnt", 0755 },
		{ "/opt", 0755 },
		{ "/run", 0755 },
		{ "/run/shm", 01777 },
		{ "/srv", 0755 },
		{ "/tmp", 01777 },
		{ "/var", 0755 },
		{ "/var/tmp", 01777 },
	};

	for (size_t i = 0; i < COUNT_OF(places); i++)
		plan_add(b, PLAN_DIR, "", places[i].path, PLAN_OP(.mode = places[i].mode));
}

/* --- binds --- */

static int compare_targets(const void *a, const void *b)
{
	const struct spec_item *x = *(const struct spec_item *const *)a;
	const struct spec_item *y = *(const struct spec_item *const *)b;
	int order = strcmp(x->bind.to, y->bind.to);

	return order ? order : strcmp(x->text, y->text);
}

const struct spec_item **plan_sorted_binds(const struct spec *s, size_t *ret_count)
{
	const struct spec_item **sorted =
		spec_ordered(SPEC_BINDS, spec_list(s, SPEC_BINDS), ret_count);

	if (sorted)
		qsort(sorted, *ret_count, sizeof(const struct spec_item *), compare_targets);
	return sorted;
}

static void add_binds(struct plan_builder *b)
{
	size_t n = 0;
	own_free const struct spec_item **sorted = plan_sorted_binds(b->spec, &n);

	if (!sorted)
		b->ops.failed = true;
	for (size_t i = 0; sorted && i < n; i++) {
		const struct spec_bind *bind = &sorted[i]->bind;
		uint16_t flags = plan_read_only_flags(b);

		if (bind->is_writable)
			flags &= (uint16_t) ~(PLAN_READ_ONLY | PLAN_VIEW);
		plan_add(b, PLAN_BIND, bind->from, bind->to, PLAN_OP(.flags = flags));
	}
}

/* --- what the private home keeps, and files --- */

/* Adds the kept folders of the home. A session keeps the whole home instead. */
static void add_state(struct plan_builder *b)
{
	size_t n = 0;
	own_free const struct spec_item **places =
		spec_ordered(SPEC_STATE, spec_list(b->spec, SPEC_STATE), &n);
	uint16_t flags = PLAN_NO_DEV | (b->host->is_root ? PLAN_IDMAPPED : 0);

	if (!places)
		b->ops.failed = true;
	for (size_t i = 0; places && i < n && !b->host->in_session; i++) {
		const char *inside = places[i]->text + strlen("/home/agent");
		char *from = arena_copy(&b->spec->arena, inside, strlen(inside));

		if (!from) {
			b->ops.failed = true;
			return;
		}
		for (char *p = from + 1; *p; p++)
			if (*p == '/')
				*p = '+';
		plan_add(b, PLAN_BIND, from, places[i]->text,
			PLAN_OP(.a_root = PLAN_ROOT_STATE, .flags = flags));
	}
}

static void add_declared_files(struct plan_builder *b, enum spec_key key, uint16_t flags)
{
	size_t n = 0;
	own_free const struct spec_item **files = spec_ordered(key, spec_list(b->spec, key), &n);

	if (!files)
		b->ops.failed = true;
	for (size_t i = 0; files && i < n; i++) {
		const struct spec_var *file = &files[i]->var;
		bool is_own = str_path_within(file->name, "/home/agent");
		bool is_program = str_starts(file->value, "#!");

		plan_add(b, PLAN_FILE, file->value, file->name,
			PLAN_OP(.mode = is_own       ? (is_program ? 0755 : 0644)
					: is_program ? 0555
						     : 0444,
				.flags = flags));
	}
}

/* Makes SPEC_AGENT_PLACE read-only if something is in it: no process in the cage adds files. */
static void add_agent_place(struct plan_builder *b)
{
	const struct spec_value *binds = spec_list(b->spec, SPEC_BINDS);
	const struct spec_value *files = spec_list(b->spec, SPEC_FILES);
	bool is_used = false;

	for (size_t i = 0; i < binds->count; i++)
		is_used |= str_starts(binds->items[i].bind.to, SPEC_AGENT_PLACE "/");
	for (size_t i = 0; i < files->count; i++)
		is_used |= str_starts(files->items[i].var.name, SPEC_AGENT_PLACE "/");
	if (is_used)
		plan_add(b, PLAN_TMPFS, "", SPEC_AGENT_PLACE,
			PLAN_OP(.mode = 0755, .flags = PLAN_READ_ONLY | PLAN_NO_DEV));
}

/* --- bawn in the cage --- */

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

/* True if no layer is kept for writes to the root of an image. */
static bool is_root_closed(const struct plan_builder *b)
{
	return str_eq(spec_text(b->spec, SPEC_ROOT_OVERLAY), "ephemeral");
}

/* Adds the path that an operation makes visible, if it does. */
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

/* Sorts the places by path and removes duplicates. */
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

/* True if the list has to name a place, because that differs from the place above it. */
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
static void add_own_program(struct plan_builder *b)
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

/* --- all of it --- */

void plan_build_files(struct plan_builder *b)
{
	/* These engines leave the host's tree as it is. */
	if (b->engine == SPEC_ENGINE_LOGICAL || b->engine == SPEC_ENGINE_LANDLOCK)
		return;
	add_overlay(b);
	add_system(b);
	add_etc(b);
	add_proc(b);
	add_dev(b);
	add_scratch(b);
	if (!plan_awaits_session(b)) {
		plan_add_project(b);
	}
	add_state(b);
	add_agent_place(b);
	add_binds(b);
	add_declared_files(b, SPEC_FILES, 0);
	add_declared_files(b, SPEC_INITIAL_FILES, PLAN_CREATE);
	add_own_program(b);
	plan_add(b, PLAN_ENTER, "", "", PLAN_OP());
}
