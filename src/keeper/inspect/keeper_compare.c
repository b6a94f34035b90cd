/* Every mount of the cage against those that must be there, in both directions. Pure. */
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "keeper/inspect/keeper_mounts.h"

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
