#pragma once

#include <stdbool.h>

/*
 * Where a path of the plan begins. The plan is the same for every operator, so what differs
 * between operators, runs and sessions is in it as a root, and only the keeper knows where that
 * is. The rest of the path is "", or begins with a slash.
 */
enum plan_root {
	PLAN_ROOT_NONE,         /* the text is all there is: an absolute path, or no path */
	PLAN_ROOT_HOME,         /* the operator's home */
	PLAN_ROOT_PROJECT,      /* the project's directory */
	PLAN_ROOT_GIT,          /* the directory of its git, where that is outside of it */
	PLAN_ROOT_SESSION_HOME, /* what a session keeps from one run to the next */
	PLAN_ROOT_SESSION_TMP,
	PLAN_ROOT_STATE, /* what is kept for the private home, one folder each */
	PLAN_ROOT_BAWN,  /* the program that runs */
	PLAN_ROOT_TOLD,  /* the socket at which the cage reports what it refused by itself */
	PLAN_ROOT_RUN,   /* the id of the run: no path, but a value that differs too */
	PLAN_ROOT_COUNT,
};

/* Who is to decide about what is there. */
enum plan_owner {
	PLAN_OWNER_OPERATOR, /* somebody declared it by name: it needs the operator's approval */
	PLAN_OWNER_CAGE,     /* kept by bawn for cages: they may make new names in it */
	PLAN_OWNER_BAWN,     /* bawn's own */
};

struct plan_root_def {
	const char *name; /* in the text of a plan */
	enum plan_owner owner;
};

extern const struct plan_root_def plan_roots[PLAN_ROOT_COUNT];

/*
 * The root of a path as a spec writes it: "/…", "~…" or "$PROJECT…". No spec can name another one.
 * *ret_path is the rest of the text.
 */
enum plan_root plan_root_of(const char *text, const char **ret_path);

/* What such a path is called in the project, "" for the project itself; NULL: it is elsewhere. */
const char *plan_path_in_project(const char *text);

/* Longer than any path of a spec with all that may stand before it. */
#define PLAN_TEXT_SIZE 4224

/* The text of a path, in `ret` or borrowed from `path`. */
const char *plan_root_text(enum plan_root root, const char *path, char ret[static PLAN_TEXT_SIZE]);
