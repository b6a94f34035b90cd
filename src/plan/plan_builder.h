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

/* Adds a string and returns its place; the empty one is at 0. */
uint32_t plan_add_string(struct plan_builder *b, const char *text);

/*
 * Adds an operation with the flags, need and mode of `like`. An operand is a text, and a path one
 * as a spec writes it; or, with a root in `like`, what follows that.
 */
void plan_add(struct plan_builder *b, enum plan_op_kind kind, const char *from, const char *to,
	struct plan_op like);

/* Adds an operation of the network and its rule, whose texts are given as such; NULL: none. */
void plan_add_rule(struct plan_builder *b, enum plan_op_kind kind, struct plan_rule rule,
	const char *const texts[static PLAN_RULE_TEXTS], const char *note);

#define PLAN_OP_NEED(how, ...) ((struct plan_op){ .need = (how), __VA_ARGS__ })
#define PLAN_OP(...)           PLAN_OP_NEED(PLAN_MUST, __VA_ARGS__)

/* One operation for each entry of a list, its text as the first operand; sets in their order. */
void plan_add_entries(
	struct plan_builder *b, enum spec_key key, enum plan_op_kind kind, struct plan_op like);

/* The parts of plan_build, each in its file. */
void plan_build_files(struct plan_builder *b);  /* the tree of the cage */
void plan_build_limits(struct plan_builder *b); /* environment, network, limits, filters */
void plan_build_command(struct plan_builder *b);

/*
 * Does what a session has come last into the tree? Then a cage can be made ready without it, and
 * for any session of the same spec. plan_build_session.c
 */
bool plan_awaits_session(const struct plan_builder *b);

/* What a session keeps from one run to the next. */
void plan_add_session(struct plan_builder *b);

/* The project, as the spec and the host have it. */
void plan_add_project(struct plan_builder *b);

/* Does the list hold the whole project, or only parts of it? */
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
 * Is a path of the project protected, in or above something protected? "" is the project. Without a
 * host nothing is known of the hooks of its git.
 */
bool plan_is_protected(const struct spec *s, const struct host *h, const char *path);

/* How the writes to a captured project are kept on this host. */
enum host_capture plan_capture(const struct spec *s, const struct host *h);

/* Is it protected, or in something that is? */
bool plan_is_in_protected(const struct spec *s, const struct host *h, const char *path);

/* Is anything protected, and held? Not in a project that is not writable, nor where it is
 * impossible. */
bool plan_holds_protected(const struct plan_builder *b);

/* Is something that is protected where the project may be written? */
bool plan_can_reach_protected(const struct plan_builder *b);

/* Adds what is protected in the project, or in its git; sorted: a folder before what is in it. */
void plan_add_protected(struct plan_builder *b, enum plan_root tree);

/* Where the project is for the command: in the cage, or as "$PROJECT" where it always was. */
const char *plan_project_place(const struct spec *s, enum spec_engine engine);
