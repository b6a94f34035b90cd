#pragma once

#include <stdbool.h>

/*
 * The root that a path of the plan begins at. A plan is the same for every operator: paths that
 * differ between operators, runs and sessions begin at a root, and only the keeper knows where that
 * is. The rest of the path is "" or begins with a slash.
 */
enum plan_root {
	PLAN_ROOT_NONE,         /* the text is an absolute path, or no path */
	PLAN_ROOT_HOME,         /* the operator's home */
	PLAN_ROOT_PROJECT,      /* the project's directory */
	PLAN_ROOT_GIT,          /* the directory of its git, if that is outside of the project */
	PLAN_ROOT_SESSION_HOME, /* folders that a session keeps from one run to the next */
	PLAN_ROOT_SESSION_TMP,
	PLAN_ROOT_STATE, /* folders of the cage's home that are kept between runs */
	PLAN_ROOT_BAWN,  /* bawn's own program file */
	PLAN_ROOT_TOLD,  /* the socket that hooks in the cage send reports to */
	PLAN_ROOT_RUN,   /* the id of the run: not a path, but it differs between runs too */
	PLAN_ROOT_COUNT,
};

/* Who answers for what is at a root. */
enum plan_owner {
	PLAN_OWNER_OPERATOR, /* declared by name: it needs the operator's approval */
	PLAN_OWNER_CAGE,     /* kept by bawn for cages, which may make new names in it */
	PLAN_OWNER_BAWN,     /* a file of bawn's own */
};

struct plan_root_def {
	const char *name; /* as printed in a plan */
	enum plan_owner owner;
};

extern const struct plan_root_def plan_roots[PLAN_ROOT_COUNT];

/*
 * Returns the root of a path that a spec wrote: "/…", "~…" or "$PROJECT…". A spec cannot name other
 * roots. Sets *ret_path to the rest of the text.
 */
enum plan_root plan_root_of(const char *text, const char **ret_path);

/*
 * Returns such a path relative to the project, "" for the project itself, or NULL if it is outside.
 */
const char *plan_path_in_project(const char *text);

/* Longer than any path of a spec with its root. */
#define PLAN_TEXT_SIZE 4224

/* Returns the text of a path with its root, in `ret` or borrowed from `path`. */
const char *plan_root_text(enum plan_root root, const char *path, char ret[static PLAN_TEXT_SIZE]);
