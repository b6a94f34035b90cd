/*
 * keeper_engine - the engines that run cages, and the plans that they can carry out.
 */
#include <errno.h>
#include <sys/resource.h>

#include "base/count.h"
#include "base/file.h"
#include "keeper/engine/keeper_engine.h"
#include "keeper/keeper.h"

/* One row for each that plan_choose.c lets run; the unit test compares the two. */
static const struct keeper_engine *const keeper_engines[] = { &keeper_native };

const struct keeper_engine *keeper_engine_of(enum spec_engine engine)
{
	for (size_t i = 0; i < COUNT_OF(keeper_engines); i++)
		if (keeper_engines[i]->engine == engine)
			return keeper_engines[i];
	return NULL;
}

/*
 * Operations that no engine of this version carries out: a plan that needs one is refused before
 * anything is started, and one that may do without says so in its record.
 */
static const struct {
	enum plan_op_kind kind;
	uint16_t flag;                 /* or 0: any */
	enum plan_guarantee guarantee; /* PLAN_GUARANTEE_COUNT: always needed */
	const char *what;
} missing[] = {
	{ PLAN_IMAGE_OCI, 0, PLAN_GUARANTEE_COUNT, "images of the kind oci:" },
	{ PLAN_IMAGE_SIF, 0, PLAN_GUARANTEE_COUNT, "images of the kind sif:" },
	{ PLAN_IMAGE_NAMED, 0, PLAN_GUARANTEE_COUNT, "images that have only a name" },
};

static bool check_matches(const struct plan_op *op, size_t row)
{
	return op->kind == missing[row].kind &&
	       (!missing[row].flag || op->flags & missing[row].flag);
}

static int check_op(const struct plan *p, uint32_t i, struct record *record, struct err *e)
{
	for (size_t row = 0; row < COUNT_OF(missing); row++) {
		enum plan_guarantee g = missing[row].guarantee;

		if (!check_matches(&plan_ops(p)[i], row))
			continue;
		if (g == PLAN_GUARANTEE_COUNT || plan_promises(p)[g].need == PLAN_MUST)
			return err_hint(e,
				err_set(e, ERR_REFUSED, EOPNOTSUPP,
					"cannot carry out %s: this version does not have it",
					missing[row].what),
				"%s%s",
				g == PLAN_GUARANTEE_COUNT ? ""
							  : "to run without it: allow_degraded: ",
				g == PLAN_GUARANTEE_COUNT ? "" : plan_guarantee_defs[g].name);
		record_note(record, i, "not carried out by this version");
	}
	return 0;
}

int keeper_check_crashes(uint64_t most, const char *pattern, struct err *e)
{
	if (most > 0 || pattern[0] != '|')
		return 0;
	return err_hint(e,
		err_set(e, ERR_REFUSED, EPERM,
			"cannot keep this machine's handler of crashes from a cage: the limit of "
			"core dumps of your account is 0"),
		"a limit of 1 does: put '* hard core 1' in /etc/security/limits.conf, and log in "
		"again");
}

static int check_crashes(struct err *e)
{
	struct rlimit core;
	char pattern[256];

	if (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_max > 0 ||
		file_read_small("/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)) < 0)
		return 0;
	return keeper_check_crashes(core.rlim_max, pattern, e);
}

int keeper_check_plan(
	const struct plan *p, bool needs_command, struct record *record, struct err *e)
{
	const char *engine = spec_keys[SPEC_ENGINE].choices[p->engine];
	const struct keeper_engine *row = keeper_engine_of(p->engine);
	bool has_command = false;
	int r = 0;

	if (!row)
		return err_hint(e,
			err_set(e, ERR_REFUSED, EOPNOTSUPP,
				"cannot use the engine %s: this version does not have it", engine),
			"leave engine out");
	if (plan_find(p, PLAN_ENGINE_ARGUMENT, NULL))
		return err_hint(e,
			err_set(e, ERR_REFUSED, EINVAL,
				"cannot use engine_args: the engine %s takes no arguments", engine),
			"remove them, or name the engine they are for");
	row->versions(record);
	r = check_crashes(e);
	for (uint32_t i = 0; r == 0 && i < p->op_count; i++) {
		r = check_op(p, i, record, e);
		has_command |= plan_ops(p)[i].kind == PLAN_ARGUMENT;
	}
	if (r == 0 && needs_command && !has_command)
		return err_hint(e, err_set(e, ERR_USE, EINVAL, "cannot run without a command"),
			"write it behind --, as in: bawn run -- ls; or set command in the spec");
	return r;
}
