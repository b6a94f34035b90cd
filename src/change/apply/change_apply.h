#pragma once

#include "change/change.h"

/*
 * Carries effects out on the tree: below one open folder, file by file, each of them whole or not
 * at all. What is interrupted is finished by the next call, because what is there already is seen.
 *
 * What is there decides, not what should be: a file is written beside the one it replaces, and
 * takes its place only if that still is what was compared. Between that last look and the renaming
 * lie a few microseconds in which another program's change to the same file would be lost; a file
 * that appears in them is not, and neither is one that git guards by its locks.
 *
 * Files get the time of the call, so that what is built of them is built again.
 */
enum change_verdict {
	CHANGE_APPLIED,
	CHANGE_MERGED,    /* with what the host changed meanwhile, without a conflict */
	CHANGE_THERE,     /* the tree was like that already */
	CHANGE_CONFLICT,  /* the tree's file changed since: left alone */
	CHANGE_HELD_BACK, /* runs on the host, and was not named */
	CHANGE_NOT_TAKEN, /* never applied: special files, locks of git, its objects' deletion */
	CHANGE_FAILED,
	CHANGE_VERDICT_COUNT,
};

struct change_apply {
	const char *run;  /* its id */
	int folder;       /* the run's: the journal, base/ */
	int layer, below; /* as in change_scan, opened for reading; the tree is written to */
	const struct change_git_tops *git; /* as in change_scan, or NULL */
	bool is_dry;              /* nothing is written: the verdicts are those it would come to */
	bool is_forced;           /* also what changed since */
	bool merges;              /* what changed since, three ways */
	bool takes_held;          /* also what runs on the host and was not named */
	const char *const *paths; /* only these and what is below them; none: all */
	size_t path_count;
	const char *const *held; /* as in change_scan */
	size_t held_count;
	struct change_progress progress;
	/*
	 * Told for each effect that is not simply applied; `why` is half a sentence, or NULL. With
	 * CHANGE_APPLIED it says what was left out.
	 */
	void (*tell)(
		void *of, const struct change_effect *x, enum change_verdict v, const char *why);
	/* Asked between files, by several threads; may be NULL. */
	bool (*is_stopped)(void *of);
	void *of;
};

struct change_applied {
	size_t counts[CHANGE_VERDICT_COUNT];
	size_t implied[CHANGE_VERDICT_COUNT]; /* of these, folders that go with what is in them */
	bool was_interrupted;                 /* an earlier call, which this one finished */
	bool was_stopped; /* this one, by is_stopped: the effects not counted were not reached */
};

/*
 * 0 also where single effects were left alone: the counts say so, also after a failure. Where the
 * disk is full or broken it ends at once; nothing half-written stays, and what was applied stays.
 */
int change_apply(const struct change_apply *q, const struct change_effects *x,
	struct change_applied *ret, struct err *e);

/*
 * Removes what an interrupted change_apply of this run left in the tree. change_apply does so
 * itself; this is for whoever discards the run instead.
 */
int change_apply_clean(
	int folder, int below, const struct change_git_tops *git, const char *run, struct err *e);

/*
 * Removes what is in a layer, a path below `folder`, by several threads where it is large. What
 * cannot be removed stays, and is removed with the layer or named as the reason why not.
 */
void change_clear(int folder, const char *layer);

/* Is one of the effect's names `path`, or below it? Both normalised; "." holds everything. */
bool change_effect_is_within(const struct change_effect *x, const char *path);
