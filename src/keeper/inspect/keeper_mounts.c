/*
 * keeper_mounts - every mount that a plan makes, as it must be seen.
 *
 * Runs as:  the keeper.
 * Must not: take the cage's word for anything: what a source is on the host is asked here again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/count.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/inspect/keeper_mounts.h"

static int mounts_no_memory(struct err *e)
{
	return err_set(e, ERR_SYS, ENOMEM, "cannot inspect the cage's mounts: out of memory");
}

static struct keeper_expected *mounts_add(struct keeper_mounts *m, unsigned kind, const char *place,
	const char *type, const char *root)
{
	struct keeper_expected *x = &m->expected[m->count++];

	*x = (struct keeper_expected){ .kind = kind, .place = place, .type = type, .root = root };
	return x;
}

static const struct keeper_mount *find_by_id(const struct keeper_snapshot *v, int id)
{
	for (size_t i = 0; i < v->mount_count; i++)
		if (v->mounts[i].id == id)
			return &v->mounts[i];
	return NULL;
}

/* Puts the path of an open file together as mountinfo writes it: below its mount's root. */
static const char *root_of(const struct keeper_mount *mount, const char *path, struct arena *arena)
{
	const char *below = str_eq(mount->place, "/") ? path : path + strlen(mount->place);
	const char *root = str_eq(mount->root, "/") ? "" : mount->root;

	if (str_eq(path, mount->place))
		return mount->root;
	return arena_printf(arena, "%s%s", root, below);
}

/* Which part of which mount of the host a source is, whose path has no links. */
static int mounts_locate(struct keeper_expected *x, const char *path, uint64_t mount_id,
	const struct keeper_snapshot *host, struct arena *arena, struct err *e)
{
	const struct keeper_mount *mount = mount_id ? find_by_id(host, (int)mount_id) : NULL;

	if (!mount_id)
		return err_sys(e, ENOSYS, "cannot find the mount of '%s'", x->place);
	if (!mount || !str_path_within(path, mount->place))
		return err_set(e, ERR_SYS, ENOENT, "cannot find the mount of '%s'", path);
	x->device = mount->device;
	x->type = mount->type;
	x->root = root_of(mount, path, arena);
	x->source = arena_copy(arena, path, strlen(path));
	return x->root && x->source ? 0 : mounts_no_memory(e);
}

/* What the expectations are made from. */
struct expecting {
	struct keeper_mounts *m;
	const struct cage_start *start;
	const struct keeper_sources *sources;
	const struct keeper_snapshot *host;
	struct arena *arena;
	struct keeper_expected wholes[CAGE_LAYER_COUNT]; /* the project is out of sight */
};

typedef int expect(struct expecting *x, const struct plan_op *op, struct err *e);

static const char *op_b(const struct expecting *x, const struct plan_op *op)
{
	return plan_str(x->start->plan, op->b);
}

/* Where the source of an operation is on the host, by the descriptor that was approved. */
static int expect_source(const struct expecting *x, struct keeper_expected *mount,
	const struct plan_op *op, struct err *e)
{
	ptrdiff_t i = op - plan_ops(x->start->plan);
	const struct keeper_source_facts *facts = &x->sources->facts[i];

	mount->is_folder = S_ISDIR(facts->mode);
	return mounts_locate(mount, x->sources->items[i].path, facts->mount, x->host, x->arena, e);
}

static int expect_tmpfs(struct expecting *x, const struct plan_op *op, struct err *e)
{
	bool is_root = str_eq(op_b(x, op), "/");
	bool is_kept = is_root && plan_find(x->start->plan, PLAN_OVERLAY, NULL);
	char name[4096];
	const char *root = is_kept ? "/upper" : "/root";
	struct keeper_expected *mount;

	if (!is_root) {
		cage_name_in_pool(op_b(x, op), name, sizeof(name));
		root = arena_printf(x->arena, "/%s", name);
	}
	mount = mounts_add(x->m, op->kind, op_b(x, op), "tmpfs", root);
	mount->is_pool = !is_kept;
	mount->flags = op->flags;
	return root ? 0 : mounts_no_memory(e);
}

static int expect_image(struct expecting *x, const struct plan_op *op, struct err *e)
{
	(void)e;
	mounts_add(x->m, op->kind, op_b(x, op), "overlay", "/")->flags = PLAN_NO_DEV;
	return 0;
}

int keeper_refuse_nested(const struct keeper_snapshot *host, const char *source, struct err *e)
{
	for (size_t i = 0; i < host->mount_count; i++) {
		const char *place = host->mounts[i].place;

		if (!str_eq(place, source) && str_path_within(place, source))
			return err_hint(e,
				err_set(e, ERR_REFUSED, EXDEV,
					"cannot show '%s' in one piece: '%s' is mounted below it",
					source, place),
				"bind folders that have nothing mounted below them");
	}
	return 0;
}

/* What is seen through layers has no place on the host. */
static int expect_overlay(const struct expecting *x, struct keeper_expected *mount, struct err *e)
{
	int r = keeper_refuse_nested(x->host, mount->source, e);

	mount->flags &= ~(unsigned)PLAN_IDMAPPED;
	mount->type = "overlay";
	mount->root = "/";
	mount->device = mount->source = NULL;
	return r;
}

static int expect_bind(struct expecting *x, const struct plan_op *op, struct err *e)
{
	struct keeper_expected *mount = mounts_add(x->m, op->kind, op_b(x, op), NULL, NULL);
	int r;

	mount->flags = op->flags;
	r = expect_source(x, mount, op, e);
	if (r < 0 || !(op->flags & PLAN_VIEW) || !mount->is_folder)
		return r;
	return expect_overlay(x, mount, e);
}

static int expect_device(struct expecting *x, const struct plan_op *op, struct err *e)
{
	const char *path = op_b(x, op);
	struct keeper_expected *mount = mounts_add(x->m, op->kind, path, NULL, NULL);
	struct statx st;

	mount->flags = PLAN_NO_EXEC;
	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MNT_ID, &st) < 0)
		return err_sys(e, errno, "cannot find '%s'", path);
	if (!S_ISCHR(st.stx_mode))
		return err_set(e, ERR_SYS, ENODEV,
			"cannot show '%s' in the cage: it is not a device of this host", path);
	return mounts_locate(
		mount, path, st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0, x->host, x->arena, e);
}

static int expect_devpts(struct expecting *x, const struct plan_op *op, struct err *e)
{
	(void)e;
	mounts_add(x->m, op->kind, op_b(x, op), "devpts", "/")->flags = op->flags;
	return 0;
}

static int expect_cover(struct expecting *x, const struct file_entry *entry, struct err *e)
{
	struct keeper_expected *mount;
	const char *place = arena_printf(x->arena, "/proc/%s", entry->name);

	if (!place || x->m->count == x->m->max)
		return mounts_no_memory(e);
	mount = mounts_add(x->m, PLAN_PROC, place, "tmpfs",
		entry->type == DT_DIR ? "/covers/empty" : "/covers/blank");
	mount->is_pool = true;
	mount->flags = PLAN_READ_ONLY | PLAN_NO_EXEC | PLAN_NO_DEV;
	return 0;
}

/*
 * Our own /proc lists what the cage's has: the same kernel fills both. Processes come last in it,
 * and are of no interest.
 */
static int expect_covers(struct expecting *x, const struct plan_op *op, struct err *e)
{
	own_fd int proc = file_open("/proc", O_RDONLY | O_DIRECTORY);
	/* The kernel looks up each process that it lists. */
	struct file_entries entries = { .fd = proc, .most = 1024 };
	const struct file_entry *entry;
	int r = 0;

	while (r == 0 && (entry = file_next_entry(&entries)) && !str_is_digit(entry->name[0]))
		if (entry->type != DT_LNK && !plan_keeps_in_proc(x->start->plan, op, entry->name))
			r = expect_cover(x, entry, e);
	if (r == 0 && (proc < 0 || entries.failure))
		return err_sys(e, proc < 0 ? -proc : entries.failure, "cannot list '/proc'");
	return r;
}

static int expect_proc(struct expecting *x, const struct plan_op *op, struct err *e)
{
	mounts_add(x->m, op->kind, op_b(x, op), "proc", "/")->flags = op->flags;
	return op->flags & PLAN_SUBSET ? 0 : expect_covers(x, op, e);
}

/* The one that the session has mounted, and no other. */
static int expect_shared(const struct expecting *x, struct keeper_expected *mount, struct err *e)
{
	struct stat st;
	int tree = x->start->layers[mount->layer - 1].tree;

	if (tree < 0 || fstat(tree, &st) < 0)
		return err_set(e, ERR_SYS, errno, "cannot inspect the session's workspace");
	mount->device = arena_printf(x->arena, "%u:%u", major(st.st_dev), minor(st.st_dev));
	return mount->device ? 0 : mounts_no_memory(e);
}

/*
 * The project, or the folder of its git. Captured, held or as a view it is an overlay, and has
 * no place on the host; captured by copying, its source is the copy.
 */
static int expect_whole(const struct expecting *x, const struct plan_op *op,
	struct keeper_expected *ret, struct err *e)
{
	char place[4096];
	int r;

	*ret = (struct keeper_expected){ .kind = PLAN_PROJECT, .flags = op->flags };
	if (!cage_fill_in_place(x->start, op, place, sizeof(place)))
		return mounts_no_memory(e);
	ret->place = arena_copy(x->arena, place, strlen(place));
	if (!ret->place)
		return mounts_no_memory(e);
	r = expect_source(x, ret, op, e);
	if (r < 0 || op->flags & PLAN_COPIED ||
		!(op->flags & (PLAN_CAPTURED | PLAN_VIEW | PLAN_PROTECTS)))
		return r;
	ret->layer = 1 + cage_layer_of(op);
	r = expect_overlay(x, ret, e);
	return r == 0 && op->flags & PLAN_SHARED ? expect_shared(x, ret, e) : r;
}

static int expect_git(struct expecting *x, const struct plan_op *op, struct err *e)
{
	struct keeper_expected *whole = &x->wholes[CAGE_LAYER_GIT];
	int r = expect_whole(x, op, whole, e);

	*mounts_add(x->m, op->kind, NULL, NULL, NULL) = *whole;
	return r;
}

static int expect_project(struct expecting *x, const struct plan_op *op, struct err *e)
{
	struct keeper_expected *whole = &x->wholes[CAGE_LAYER_PROJECT], *mount;
	int r = expect_whole(x, op, whole, e);

	mount = mounts_add(x->m, op->kind, whole->place, "tmpfs", "/view");
	if (op->flags & PLAN_PARTS) {
		mount->is_pool = true;
		mount->flags = PLAN_READ_ONLY | PLAN_NO_DEV;
	} else {
		*mount = *whole;
	}
	return r;
}

/* A part of the project: of the overlay, or of the folder on the host. */
static int expect_part(struct expecting *x, const struct plan_op *op, struct err *e)
{
	const struct keeper_expected *whole = &x->wholes[CAGE_LAYER_PROJECT];
	struct keeper_expected *mount = mounts_add(x->m, PLAN_PROJECT, NULL, whole->type, NULL);
	const char *root = str_eq(whole->root, "/") ? "" : whole->root;

	mount->flags = op->flags | PLAN_NO_DEV;
	mount->device = whole->device;
	mount->layer = whole->layer;
	mount->place = arena_printf(x->arena, "%s/%s", whole->place, op_b(x, op));
	mount->root = arena_printf(x->arena, "%s/%s", root, op_b(x, op));
	if (whole->source)
		mount->source = arena_printf(x->arena, "%s/%s", whole->source, op_b(x, op));
	return mount->place && mount->root ? 0 : mounts_no_memory(e);
}

/* What is protected, and what leads there: each a mount of the project on itself. */
static int expect_held(struct expecting *x, const struct plan_op *op, struct err *e)
{
	enum cage_layer which = cage_layer_of(op);
	const struct cage_protect *h = &x->start->protects[which];
	const struct keeper_expected *whole = &x->wholes[which];

	for (size_t i = 0; i < h->count; i++) {
		const struct cage_protected *item = &h->items[i];
		struct keeper_expected *mount;

		if (item->op != op - plan_ops(x->start->plan))
			continue;
		if (x->m->count == x->m->max)
			return mounts_no_memory(e);
		mount = mounts_add(x->m, PLAN_PROTECT, NULL, whole->type, NULL);
		mount->layer = whole->layer;
		mount->flags = PLAN_NO_DEV | (item->kind == CAGE_HELD_WAY ? 0 : PLAN_READ_ONLY);
		mount->place = arena_printf(x->arena, "%s/%s", whole->place, item->path);
		mount->root = arena_printf(x->arena, "/%s", item->path);
		if (!mount->place || !mount->root)
			return mounts_no_memory(e);
	}
	return 0;
}

#define MOST_COVERS 512 /* names in /proc that are not processes; a kernel has about 60 */

/* Adds what operations make, from the first of them on. */
static int expect_all(
	struct expecting *x, const struct plan_op *first, const struct plan_op *end, struct err *e)
{
	static expect *const expects[PLAN_OP_KIND_COUNT] = {
		[PLAN_TMPFS] = expect_tmpfs,
		[PLAN_IMAGE] = expect_image,
		[PLAN_BIND] = expect_bind,
		[PLAN_DEVICE] = expect_device,
		[PLAN_DEVPTS] = expect_devpts,
		[PLAN_PROC] = expect_proc,
		[PLAN_GIT] = expect_git,
		[PLAN_PROJECT] = expect_project,
		[PLAN_PART] = expect_part,
		[PLAN_PROTECT] = expect_held,
	};
	int r = 0;

	for (const struct plan_op *op = first; r == 0 && op < end && x->m->count < x->m->max; op++)
		if (expects[op->kind])
			r = expects[op->kind](x, op, e);
	return r;
}

/* Where what a session brings begins; the end, where nothing is awaited. */
static const struct plan_op *find_late(const struct plan *p)
{
	const struct plan_op *await = plan_find(p, PLAN_AWAIT, NULL);

	return await ? await : plan_ops(p) + p->op_count;
}

int keeper_mounts_expect(struct keeper_mounts *ret, const struct cage_start *start,
	const struct keeper_sources *sources, const struct keeper_snapshot *host,
	struct arena *arena, struct err *e)
{
	struct expecting x = {
		.m = ret, .start = start, .sources = sources, .host = host, .arena = arena
	};
	const struct plan *p = start->plan;

	*ret = (struct keeper_mounts){ .max = p->op_count + MOST_COVERS };
	for (size_t i = 0; i < CAGE_LAYER_COUNT; i++)
		ret->max += start->protects[i].count;
	ret->expected = arena_array(arena, ret->max, sizeof(*ret->expected));
	if (!ret->expected)
		return mounts_no_memory(e);
	return expect_all(&x, plan_ops(p), find_late(p), e);
}

int keeper_mounts_expect_late(struct keeper_mounts *m, const struct cage_start *start,
	const struct keeper_sources *sources, const struct keeper_snapshot *host,
	struct arena *arena, struct err *e)
{
	struct expecting x = {
		.m = m, .start = start, .sources = sources, .host = host, .arena = arena
	};
	const struct plan *p = start->plan;

	return expect_all(&x, find_late(p), plan_ops(p) + p->op_count, e);
}

/* --- the comparison --- */

/* Every mount of the cage against those that must be there, in both directions. Pure. */

static struct keeper_expected *find_expected(struct keeper_mounts *m, const char *place)
{
	/* The last one at a place is the one that is seen there. */
	for (size_t i = m->count; i > 0; i--)
		if (str_eq(m->expected[i - 1].place, place))
			return &m->expected[i - 1];
	return NULL;
}

/* Something mounted on the host below a source comes along with it. */
static const struct keeper_expected *find_carrier(const struct keeper_mounts *m,
	const struct keeper_mount *mount, const struct keeper_snapshot *host)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct keeper_expected *x = &m->expected[i];
		char source[4096];

		if (!x->source || !str_path_within(mount->place, x->place))
			continue;
		snprintf(source, sizeof(source), "%s%s", str_eq(x->source, "/") ? "" : x->source,
			mount->place + strlen(x->place));
		for (size_t k = 0; k < host->mount_count; k++)
			if (str_eq(host->mounts[k].place, source) &&
				str_eq(host->mounts[k].device, mount->device) &&
				str_eq(host->mounts[k].root, mount->root))
				return x;
	}
	return NULL;
}

/* The first restriction that is missing, or NULL. */
static const char *missing_option(const struct keeper_mount *mount, unsigned flags)
{
	static const struct {
		unsigned flag;
		const char *word;
	} options[] = { { PLAN_READ_ONLY, "ro" }, { PLAN_NO_DEV, "nodev" },
		{ PLAN_NO_EXEC, "noexec" } };

	if (!keeper_has_option(mount->options, "nosuid"))
		return "nosuid";
	for (size_t i = 0; i < COUNT_OF(options); i++)
		if (flags & options[i].flag && !keeper_has_option(mount->options, options[i].word))
			return options[i].word;
	if (flags & PLAN_IDMAPPED && !keeper_has_option(mount->options, "idmapped"))
		return "idmapped";
	return NULL;
}

#define SAY(fault, ...)                                                                            \
	do {                                                                                       \
		if (!(fault)[0])                                                                   \
			snprintf(fault, KEEPER_FAULT_SIZE, __VA_ARGS__);                           \
	} while (0)

/* Where a fault of a mount of this kind is told; `other` of those that have no place of their own.
 */
static char *fault_of(struct keeper_mount_faults *f, unsigned kind, char *other)
{
	switch (kind) {
	case PLAN_PROC:
		return f->proc;
	case PLAN_PROJECT:
		return f->project;
	case PLAN_PROTECT:
		return f->protect;
	default:
		return other;
	}
}

/* The device of what the first mount of a kind was seen on; false: this one is on another. */
static bool is_on(const char **device, const struct keeper_mount *mount)
{
	if (!*device)
		*device = mount->device;
	return str_eq(*device, mount->device);
}

static bool is_planned(
	struct keeper_mounts *m, const struct keeper_mount *mount, const struct keeper_expected *x)
{
	return (!x->type || str_eq(x->type, mount->type)) &&
	       (!x->device || str_eq(x->device, mount->device)) && str_eq(x->root, mount->root) &&
	       (!x->is_pool || is_on(&m->pool, mount)) &&
	       (!x->layer || is_on(&m->layers[x->layer - 1], mount));
}

static void compare_judge(struct keeper_mounts *m, const struct keeper_mount *mount,
	const struct keeper_expected *x, struct keeper_mount_faults *f)
{
	const char *missing = missing_option(mount, x->flags);
	bool is_other = !is_planned(m, mount, x);

	if (is_other && x->kind == PLAN_DEVICE)
		SAY(f->dev, "%.80s is not the planned device", mount->place);
	else if (is_other)
		SAY(fault_of(f, x->kind, f->reads),
			"at %.40s there is %.16s %.40s, not the planned", mount->place, mount->type,
			mount->root);
	if (missing)
		SAY(fault_of(f, x->kind, f->writes), "the mount at %.80s lacks %s", mount->place,
			missing);
}

static void say_absent(const struct keeper_expected *x, struct keeper_mount_faults *f)
{
	bool is_device = x->kind == PLAN_DEVICE || x->kind == PLAN_DEVPTS;

	if (x->kind == PLAN_PROC)
		SAY(f->proc, "%.80s is not covered", x->place);
	else
		SAY(fault_of(f, x->kind, is_device ? f->dev : f->root), "%.80s is not mounted",
			x->place);
}

void keeper_mounts_compare(struct keeper_mounts *m, const struct keeper_snapshot *cage,
	const struct keeper_snapshot *host, struct keeper_mount_faults *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < cage->mount_count; i++) {
		const struct keeper_mount *mount = &cage->mounts[i];
		struct keeper_expected *x = find_expected(m, mount->place);
		const struct keeper_expected *carrier =
			x && !x->is_seen ? NULL : find_carrier(m, mount, host);

		if (x && !x->is_seen) {
			x->is_seen = true;
			compare_judge(m, mount, x, ret);
		} else if (carrier) {
			const char *missing = missing_option(mount, carrier->flags);

			if (missing)
				SAY(ret->writes, "the mount at %.80s lacks %s", mount->place,
					missing);
		} else {
			SAY(ret->root, "there is a mount at %.80s that is not planned",
				mount->place);
		}
	}
	for (size_t i = 0; i < m->count; i++)
		if (!m->expected[i].is_seen)
			say_absent(&m->expected[i], ret);
}
