#pragma once

#include "plan/plan.h"

/*
 * A plan under construction, for the files of this module. A failure (no memory, too large) sticks,
 * and plan_build finds it at the end.
 */
struct plan_builder {
	struct spec *spec;
	const struct host *host;
	const struct plan_choice *choice;
	enum spec_engine engine;
	struct buf ops, promises, rules, strings;
};

/*
 * Adds an operation with the flags, need and mode of `like`. Each operand is a text. A path is
 * written as in a spec; or `like` has its root, and the text is what follows that.
 */
void plan_add(struct plan_builder *b, enum plan_op_kind kind, const char *from, const char *to,
	struct plan_op like);

#define PLAN_OP_NEED(how, ...) ((struct plan_op){ .need = (how), __VA_ARGS__ })
#define PLAN_OP(...)           PLAN_OP_NEED(PLAN_MUST, __VA_ARGS__)

/* Adds the operations that make the cage's file tree. */
void plan_build_files(struct plan_builder *b);

/* --- the project: plan_project.c --- */

/*
 * True if the session's workspace is mounted last. A warm cage can then be made without it, for any
 * session of the same spec.
 */
bool plan_awaits_session(const struct plan_builder *b);

/* Adds the folders that a session keeps, and the project. */
void plan_add_project(struct plan_builder *b);

/* Returns the flags of a read-only bind of a path of the host. */
uint16_t plan_read_only_flags(const struct plan_builder *b);

/* True if the list of patterns covers the whole project, and not only parts of it. */
bool plan_has_whole_project(const struct spec *s, enum spec_key key);

/*
 * Calls `emit` for each pattern of an allow-list that covers only a part of the project, with the
 * pattern's directory and PLAN_READ_ONLY or 0.
 */
typedef void plan_part(struct plan_builder *b, const char *base, uint16_t flags, const char *place);
void plan_walk_parts(struct plan_builder *b, enum spec_key key, bool is_writable, plan_part *emit,
	const char *place);

/* Returns the directory of a pattern that ends with two stars; otherwise the pattern itself. */
const char *plan_pattern_base(struct spec *s, const char *pattern);

/* Returns the binds sorted by target: a directory comes before what is in it. The caller frees. */
const struct spec_item **plan_sorted_binds(const struct spec *s, size_t *ret_count);

/*
 * True if a path of the project is protected, or is below or above a protected path. "" is the
 * project. With `h` NULL the hooks of the project's git are unknown.
 */
bool plan_is_protected(const struct spec *s, const struct host *h, const char *path);

/* Returns how the writes to a captured project are kept on this host. */
enum host_capture plan_capture(const struct spec *s, const struct host *h);

/* True if a path of the project is protected or below a protected path. */
bool plan_is_in_protected(const struct spec *s, const struct host *h, const char *path);

/* Returns the project's path in the cage, or "$PROJECT" if it has the same path as on the host. */
const char *plan_project_place(const struct spec *s, enum spec_engine engine);
