#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/tool/tool_cage.h"
#include "base/arena.h"
#include "base/buf.h"
#include "wire/wire_report.h"

/*
 * What an agent's hook says to a call of a tool, before it is made: nothing, or that a path of it
 * is not in this cage, in words that the model can act on. It is a help and no wall: agents go on
 * when their hooks fail, and the cage refuses all the same. So whatever is not understood here is
 * let go, and nothing is ever approved, which would skip the agent's own questions.
 *
 * All of it is pure, but for hook_run.
 */

#define HOOK_MAX_INPUT ((size_t)1 << 20)
#define HOOK_MAX_USES  256 /* paths of a call that are looked at */
#define HOOK_PATH_SIZE 4096

#define HOOK_TOLD_FILE "/run/bawn/told"

/* --- what the cage says of itself --- */

/* Returns false if the description lacks what judging needs. The caller frees *ret in both cases.
 */
bool hook_wall_read(struct tool_cage *ret, const char *bytes, size_t n);

enum hook_verdict {
	HOOK_FINE,
	HOOK_OUTSIDE,   /* it is not in the cage */
	HOOK_READ_ONLY, /* it is, and cannot be written */
	HOOK_PROTECTED, /* it stays as it is, in something that can be written */
};

/* --- what a call would touch --- */

struct hook_use {
	const char *path, *folder; /* as it was said; where it begins, if it is relative */
	bool writes;
};

struct hook_call {
	struct arena arena;
	enum wire_agent agent;
	const char *home;   /* what ~ stands for */
	const char *folder; /* where relative paths begin */
	const char *tool;
	struct hook_use uses[HOOK_MAX_USES];
	size_t count;
};

/* False: it is no call, or of no tool that is known. The call is the caller's in both cases. */
bool hook_call_read(struct hook_call *ret, enum wire_agent agent, const struct tool_cage *wall,
	const char *bytes, size_t n);
void hook_call_done(struct hook_call *c);

/* Adds what a shell command would touch, as far as that can be seen from its words. */
void hook_shell_scan(struct hook_call *c, const char *script);

/* Like readlink(2), of an absolute path: the size, or -EINVAL: it is no link, or -errno. */
typedef long hook_read_link(void *of, const char *path, char *ret, size_t size);

/* --- the answer --- */

struct hook_denial {
	const struct hook_use *use;
	enum hook_verdict verdict;
	char real[HOOK_PATH_SIZE];
};

#define HOOK_MAX_DENIALS 8 /* of one call that are told */

struct hook_answer {
	struct hook_denial denials[HOOK_MAX_DENIALS];
	size_t count, total; /* of these; and of all */
};

/* Judges every path of a call, each once. */
void hook_judge(const struct hook_call *c, const struct tool_cage *w, hook_read_link *read_link,
	void *of, struct hook_answer *ret);

/* The answer in the agent's format; nothing where nothing is denied. */
void hook_print_answer(const struct hook_call *c, const struct tool_cage *w,
	const struct hook_answer *a, struct buf *out);

/* A denial as the keeper is told of it. */
void hook_tell(const struct hook_call *c, const struct hook_denial *d, struct wire_report *ret);

/* --- hook_run.c, which is not pure --- */

/* Reads a call, as far as it comes in time, and prints the answer; tells the keeper. */
void hook_run(enum wire_agent agent, int input, struct buf *out);
