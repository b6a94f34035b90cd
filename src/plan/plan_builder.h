#pragma once

#include "plan/plan.h"

/*
 * A plan under construction. Failures (no memory, too large) stick and are found at the end.
 */
struct plan_builder {
	struct spec *spec;
	const struct host *host;
	const struct plan_choice *choice;
	enum spec_engine engine;
	struct buf ops, promises, rules, strings;
};

/*
 * Adds an operation with the flags, need and mode of `like`. An operand is a text, and a path one
 * as a spec writes it; or, with a root in `like`, what follows that.
 */
void plan_add(struct plan_builder *b, enum plan_op_kind kind, const char *from, const char *to,
	struct plan_op like);

#define PLAN_OP_NEED(how, ...) ((struct plan_op){ .need = (how), __VA_ARGS__ })
#define PLAN_OP(...)           PLAN_OP_NEED(PLAN_MUST, __VA_ARGS__)

/* Adds the tree of the cage. */
void plan_build_files(struct plan_builder *b);

/* --- the project: plan_project.c --- */

/*
 * True if the session's workspace comes last into the tree: then a cage can be made ready without
 * it, for any session of the same spec.
 */
bool plan_awaits_session(const struct plan_builder *b);

/* Adds the folders that a session keeps, and the project as the spec and the host have it. */
void plan_add_project(struct plan_builder *b);

/* Flags of a read-only bind of a path of the host. */
uint16_t plan_read_only_flags(const struct plan_builder *b);

/* True if the list holds the whole project, and not only parts of it. */
bool plan_has_whole_project(const struct spec *s, enum spec_key key);

/*
 * Calls `emit` for each pattern of an allow-list that is less than the whole project, with its
 * directory and PLAN_READ_ONLY or 0.
 */
typedef void plan_part(struct plan_builder *b, const char *base, uint16_t flags, const char *place);
void plan_walk_parts(struct plan_builder *b, enum spec_key key, bool is_writable, plan_part *emit,
	const char *place);

/* The directory of a pattern that ends with two stars; the pattern itself if it does not. */
const char *plan_pattern_base(struct spec *s, const char *pattern);

/* The binds by target, so that a directory comes before what is in it. The caller frees. */
const struct spec_item **plan_sorted_binds(const struct spec *s, size_t *ret_count);

/*
 * True if a path of the project is protected, or is in or above something protected. "" is the
 * project. Without a host the hooks of its git are unknown.
 */
bool plan_is_protected(const struct spec *s, const struct host *h, const char *path);

/* Returns how the writes to a captured project are kept on this host. */
enum host_capture plan_capture(const struct spec *s, const struct host *h);

/* True if it is protected, or in something that is. */
bool plan_is_in_protected(const struct spec *s, const struct host *h, const char *path);

/* Returns where the command sees the project: in the cage, or "$PROJECT" where it always was. */
const char *plan_project_place(const struct spec *s, enum spec_engine engine);
