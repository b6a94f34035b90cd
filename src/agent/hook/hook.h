#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/tool/tool_cage.h"
#include "base/arena.h"
#include "base/buf.h"
#include "wire/wire_report.h"

/*
 * The answer of an agent's hook before the agent calls a tool: nothing, or a denial that says which
 * path is not in this cage, in words that the model can act on. The hook is a help and no
 * protection: agents go on if it fails, and the cage refuses anyway. So it lets pass whatever it
 * does not understand, and never approves a call, which would skip the agent's own questions.
 *
 * Everything but hook_run is pure.
 */

#define HOOK_MAX_INPUT ((size_t)1 << 20)
#define HOOK_MAX_USES  256 /* paths of a call that are judged */
#define HOOK_PATH_SIZE 4096

#define HOOK_TOLD_FILE "/run/bawn/told"

/* --- the description of the cage --- */

/*
 * Returns false if the description lacks what judging needs. The caller frees *ret in both cases.
 */
bool hook_wall_read(struct tool_cage *ret, const char *bytes, size_t n);

enum hook_verdict {
	HOOK_FINE,
	HOOK_OUTSIDE,   /* not in the cage */
	HOOK_READ_ONLY, /* in the cage, and read-only */
	HOOK_PROTECTED, /* a protected path in a writable folder */
};

/* --- the paths that a call would use --- */

struct hook_use {
	const char *path, *folder; /* as the call has it; the folder that it is relative to */
	bool writes;
};

struct hook_call {
	struct arena arena;
	enum wire_agent agent;
	const char *home;   /* the value of ~ */
	const char *folder; /* the folder that paths are relative to */
	const char *tool;
	struct hook_use uses[HOOK_MAX_USES];
	size_t count;
};

/* Reads a call. False: not a call of a known tool. hook_call_done must be called either way. */
bool hook_call_read(struct hook_call *ret, enum wire_agent agent, const struct tool_cage *wall,
	const char *bytes, size_t n);
void hook_call_done(struct hook_call *c);

/* Adds the paths that a shell command would use, as far as its words tell. */
void hook_shell_scan(struct hook_call *c, const char *script);

/*
 * Like readlink(2), for an absolute path. Returns the size, -EINVAL if it is no symlink, or -errno.
 */
typedef long hook_read_link(void *of, const char *path, char *ret, size_t size);

/* --- the answer --- */

struct hook_denial {
	const struct hook_use *use;
	enum hook_verdict verdict;
	char real[HOOK_PATH_SIZE];
};

#define HOOK_MAX_DENIALS 8 /* denials of one call that are reported */

struct hook_answer {
	struct hook_denial denials[HOOK_MAX_DENIALS];
	size_t count, total; /* of `denials`, and of all denials of the call */
};

/* Judges every path of a call once. */
void hook_judge(const struct hook_call *c, const struct tool_cage *w, hook_read_link *read_link,
	void *of, struct hook_answer *ret);

/* Prints the answer in the agent's format; prints nothing if nothing is denied. */
void hook_print_answer(const struct hook_call *c, const struct tool_cage *w,
	const struct hook_answer *a, struct buf *out);

/* Makes the report of a denial for the keeper. */
void hook_tell(const struct hook_call *c, const struct hook_denial *d, struct wire_report *ret);

/* --- hook_run.c, which is not pure --- */

/*
 * Reads a call from `input` until EOF or a timeout, prints the answer, and reports to the keeper.
 */
void hook_run(enum wire_agent agent, int input, struct buf *out);
