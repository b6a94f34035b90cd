#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "check/check_repository.h"
#include "host/host.h"
#include "plan/plan.h"
#include "plan/plan_root.h"
#include "run/run_request.h"
#include "spec/spec.h"

/* From a request to one settled spec: its layers, whose word they are, what its paths lead to. */

/* What a function returns that found errors in the spec: s->diags say which. */
int run_fail_spec(struct err *e);

/* A path under which the operator's state, or the folders of all sessions, can be seen. */
struct run_hidden {
	const char *path;
	bool is_root; /* of sessions */
};

/* Names that a project's folder is asked for. run_names.c */
enum run_name {
	RUN_NAME_SPEC,
	RUN_NAME_YML, /* from here on names that somebody may have taken for the one above */
	RUN_NAME_HIDDEN_YAML,
	RUN_NAME_HIDDEN_YML,
	RUN_NAME_CAPITAL,
	RUN_NAME_JSON,
	RUN_NAME_TOML,
	RUN_NAME_FILE,
	RUN_NAME_CAPITAL_FILE,
	RUN_NAME_GIT_FILE, /* .git, but not as a folder */
	RUN_NAME_DOT_VENV,
	RUN_NAME_VENV,
	RUN_NAME_ENV,
	RUN_NAME_CMAKE,
	RUN_NAME_BUILD,
	RUN_NAME_BUILDDIR,
	RUN_NAME_COUNT
};

#define RUN_NAMES_UNKNOWN ((1U << RUN_NAME_COUNT) - 1)

const char *run_name(enum run_name name);

/* The names that a folder may have, as bits; all, where that cannot be said. */
uint32_t run_list_names(const char *folder);

struct run_place {
	char project[4096];    /* the project's directory, resolved */
	const char *home;      /* or NULL */
	const char *real_home; /* resolved; NULL: there is none. The spec's arena */
	/* The file of -f, really and as it was called, if only the operator or root can write it.
	 */
	const char *own_spec, *own_spec_name;
	struct check_repository repository;
	struct check_own_config git_config; /* of the operator; the spec's arena */
	uint32_t names;                     /* that the project's folder may have: run_list_names */
	bool has_names;                     /* … or before it is known, the current one */
	const char *mounts;                 /* mountinfo of this process; the spec's arena */
	struct run_hidden
		*state_paths; /* what of the operator's no cage may see; the spec's arena */
	size_t state_count;
};

/* True if a cage of bawn's set our variables. */
bool run_is_in_cage(void);

/* The operator's home; NULL where there is none, or none that counts. */
const char *run_home(void);

/*
 * Reads the policies, the spec file and the settings, and settles them. 0 or -errno: where the spec
 * is wrong the kind is ERR_SPEC, and s->diags say what; else `e` says it. The spec is initialised
 * in any case, and borrows from the request; spec_done it.
 */
int run_load_spec(
	const struct run_request *q, struct spec *s, struct run_place *ret_place, struct err *e);

/*
 * Reads the operator's policies and settles them, without any project: for what concerns all runs.
 * Returns as run_load_spec does.
 */
int run_load_policies(struct spec *s, struct err *e);

/*
 * The same for a spec in its canonical form, which is held to what a project's own file may ask for
 * unless --trust is given. Where it says no more than ".", --project says where the project is.
 */
int run_load_kept_spec(const struct run_request *q, const char *bytes, size_t n, struct spec *s,
	struct run_place *ret_place, struct err *e);

/*
 * Reads the spec file, if there is one: 0 or -errno. What follows from where it lies is judged when
 * all layers are there. run_spec_file.c
 */
int run_load_file(
	const struct run_request *q, struct spec *s, struct run_place *place, struct err *e);
void run_judge_file(struct spec *s, const struct run_place *place, const char *here);

/* Adds the variables that a file lists, as --env does. */
/* `is_here`: the run is to be on this machine, whose variables a name alone passes on. */
void run_add_env_file(struct spec *s, const char *path, bool is_here);

/* Warns if a variable that is to be passed is not set. */
void run_warn_unset(struct spec *s, const char *where, const char *variable);

/* Reads a file into the spec's arena, where it stays as long as the diagnostics may quote it. */
int run_read_into(struct spec *s, int fd, const char **ret, size_t *ret_size);
int run_fail_reading(const char *what, const char *path, int num, struct err *e);

/* Where the operator's own files are: 0, -ENOENT without a home, or -ENAMETOOLONG. */
int run_config_folder(const char *home, char ret[static 4096]);

/*
 * Reads a file that must be the operator's own, and nobody else's to write, into the spec's arena;
 * *ret is NULL where there is none. 0 or -errno; `what` names it in the sentence.
 */
int run_read_own(struct spec *s, const char *what, const char *path, const char **ret,
	size_t *ret_size, struct err *e);

struct store_session;

/*
 * The same for a command in a session: the spec is what was settled when that was created, and the
 * options may only narrow it.
 */
int run_load_session_spec(const struct run_request *q, const struct store_session *x,
	struct spec *s, struct run_place *ret_place, struct err *e);

/*
 * What a path leads to: "~" is `home` (which may be NULL), a relative one starts at `base`. 0 or
 * -errno; ret is written only on success.
 */
int run_resolve(const char *path, const char *home, const char *base, char ret[static 4096]);

/* Resolves the home; `here` is a path without links. 0 or -errno. */
int run_find_home(struct spec *s, struct run_place *place, const char *here);

/*
 * Says in s->diags what only shows on this machine: paths inside the project that lead out of it,
 * and paths that lead to credentials or to the home by another name.
 */
void run_check_paths(struct spec *s, const char *here, const struct run_place *place);

/*
 * What a path as the plan writes it leads to, with $PROJECT and ~; -EXDEV: through a link of the
 * project out of it.
 */
int run_resolve_source(const char *source, const struct run_place *place, char ret[static 4096]);

/*
 * The same for one source that has been opened and found to be `real`, a moment later: what it
 * leads to may have changed since.
 */
int run_approve_source(struct spec *s, const struct run_place *place, enum plan_root root,
	const char *path, const char *real, struct err *e);

/* What is wrong with showing a real path that nobody acknowledged, as "holds credentials"; or NULL.
 */
const char *run_leak_of(struct spec *s, const char *real, const struct run_place *place);

/* --- the operator's own state: run_state.c --- */

/* Finds out where it can be seen on this host. 0 or -errno. */
int run_find_state(struct spec *s, struct run_place *place);

/*
 * What is wrong with showing a real path because of the operator's own state: "is in …", or "would
 * show …"; or NULL. Nobody can acknowledge that. In the spec's arena.
 */
const char *run_state_of(struct spec *s, const char *real, const struct run_place *place);

/* --- agents: run_agent.c --- */

struct agent_profile;

/* The profile of a name: the operator's own, or a built-in one; NULL where there is none. */
int run_load_agent(struct spec *s, const char *name, const char *home, struct agent_profile **ret,
	struct err *e);

#define RUN_MOST_AGENTS 256

struct run_agents {
	const char *names[RUN_MOST_AGENTS]; /* sorted, each once */
	size_t count;
};

/* All profiles there are, by name: built in, the system's, the operator's. The arena's. */
void run_list_agents(const char *home, struct arena *arena, struct run_agents *ret);

/* Adds what the profile of the named agent says to a settled spec, if one is named. 0 or -errno. */
int run_add_agent(
	const struct run_request *q, struct spec *s, const struct run_place *place, struct err *e);

/* --- tools of the operator's home: run_toolchain.c --- */

/* Puts binds and variables in the place of the names of toolchains. */
void run_add_toolchains(struct spec *s, const struct run_place *place);

/*
 * What to type instead of a command whose program the cage does not have; or NULL. What a session
 * shows is fixed when it is created.
 */
const char *run_hint_command(struct spec *s, const struct run_place *place, bool is_session);

/* The toolchain that a path of the host is of, where the cage does not have the path; or NULL. */
const char *run_missing_toolchain(
	const struct spec *s, const struct run_place *place, const char *path);

/* --- who commits: run_identity.c --- */

/*
 * Name and e-mail of the operator's git configuration, as a section of one; NULL: there are none.
 * What it includes is not read. Owned by the spec.
 */
const char *run_git_identity(struct spec *s, struct run_place *place);

/* --- the project's git: run_repository.c --- */

/* Finds it, and says in s->diags if it will not work in the cage. */
void run_find_repository(struct spec *s, struct run_place *place);

/*
 * Has the project at its own path in the cage where its git, as a submodule's, is found from there
 * alone; but not where the spec says where things are.
 */
void run_choose_own_path(struct spec *s, struct run_place *place);

/* What a plan for this project has to know. */
void run_tell_host(const struct run_place *place, struct host *ret);

/* Paths of the project that are protected here beside those that always are; NULL: no memory. */
const char *const *run_held_paths(struct spec *s, const struct run_place *place, size_t *ret_count);

/*
 * Notes that this host cannot do what the start failed at, if that may be done in another way, or
 * be left out: the next plan knows. False: it is nothing of the kind. `failed_op` may be -1.
 */
bool run_note_failed_way(struct host *h, const struct plan *p, int failed_op, const struct err *e);

/* Adds the settings to the spec as its last layer; relative paths start at `here`. run_settings.c
 */
void run_add_settings(const struct run_request *q, struct spec *s, const char *here);

/*
 * Opens a plain file that the operator wants something written to: not through a link, and not out
 * of the project where the path begins there. A descriptor or -errno; `what` is for the sentence.
 */
int run_open_output(
	const struct run_place *place, const char *path, const char *what, struct err *e);

/* --- how a project can be captured: run_capture.c --- */

/* Rules out, by whom the project belongs to, ways of capturing it: h->no_capture. */
void run_look_at_project(struct host *h, const struct run_place *place);

/* Does the project belong to others, so that captured writes need copies? */
bool run_is_of_others(const struct run_place *place);
