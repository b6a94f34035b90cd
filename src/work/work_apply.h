#pragma once

#include "work/work.h"

/*
 * Carries effects out on the tree: below one open folder, file by file, each of them whole or not
 * at all. What is interrupted is finished by the next call, because what is there already is seen.
 */
enum work_verdict {
	WORK_APPLIED,
	WORK_MERGED,    /* with what the host changed meanwhile, without a conflict */
	WORK_THERE,     /* the tree was like that already */
	WORK_CONFLICT,  /* the tree's file changed since: left alone */
	WORK_HELD_BACK, /* runs on the host, and was not named */
	WORK_NOT_TAKEN, /* never applied: special files, locks of git, its objects' deletion */
	WORK_FAILED,
	WORK_VERDICT_COUNT,
};

struct work_apply {
	const char *run;          /* its id */
	int folder;               /* the run's: the journal, base/ */
	int layer, below;         /* as in work_scan; the tree is written to */
	bool is_forced;           /* also what changed since */
	bool merges;              /* what changed since, three ways */
	bool takes_held;          /* also what runs on the host and was not named */
	const char *const *paths; /* only these and what is below them; none: all */
	size_t path_count;
	struct work_progress progress;
	/* Told for each effect that is not simply applied; `why` is half a sentence. */
	void (*tell)(void *of, const struct work_effect *x, enum work_verdict v, const char *why);
	void *of;
};

struct work_applied {
	size_t counts[WORK_VERDICT_COUNT];
	bool was_interrupted; /* an earlier call, which this one finished */
};

/* 0 also where single effects were left alone: the counts say so. */
int work_apply(const struct work_apply *q, const struct work_effects *x, struct work_applied *ret,
	struct err *e);
