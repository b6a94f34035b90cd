#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * System-call filters as programs for seccomp(2). Pure: nothing here installs one.
 *
 * Every program for a cage, built in or read from a file, kills a process that calls by another
 * architecture (int 0x80), answers ENOSYS to x32, and begins with data/syscalls/always.txt: no new
 * namespaces, mounts, keys, bpf, io_uring, listeners of its own, or typing into terminals.
 */
struct filter {
	const struct sock_filter *code;
	unsigned short count;
};

/* The built-in profile `default` or `strict`; NULL for any other name. */
const struct filter *filter_named(const char *name);

/*
 * What bawn's own processes that face the network are held to (gate.h); no spec can name them.
 * They begin with nothing, and what they do not allow kills.
 */
extern const struct filter filter_gate, filter_dialer, filter_usher, filter_vault;

/* A program of the caller's own. */
struct filter_made {
	struct sock_filter *code;
	unsigned short count;
};

void filter_made_done(struct filter_made *made);

/* --- filter_notify.c: what is refused is told to the keeper --- */

struct seccomp_data;

/*
 * Is a call with this answer told? Those that are refused as forbidden are, with EPERM or EACCES.
 * Other errors say that something is not there (ENOSYS, EAFNOSUPPORT): libraries ask for it all
 * the time, and go on without.
 */
bool filter_is_notifying(uint32_t action);

/*
 * The same program, but for the answers that are told: the kernel asks a listener for them, which
 * has to give what the plain program says, see filter_answer. As long, with the same jumps, so that
 * what is allowed costs the same. -ENOMEM or 0.
 */
int filter_make_telling(const struct filter *plain, struct filter_made *ret);

/*
 * What the kernel would answer to a call: the program is interpreted. One that is none, of which
 * the compiler makes none, kills.
 */
uint32_t filter_answer(const struct filter *f, const struct seccomp_data *call);

/* Does it let this call of this machine through? */
bool filter_allows(const struct filter *f, int number, const uint64_t arguments[static 6]);

/* --- filter_watch.c: writes by name, which are allowed, are told too --- */

/* A call that writes to what a path names, and which of its arguments do that. */
struct filter_watched {
	uint32_t number;
	int flags; /* which argument says whether it opens for writing; -1: it always writes */
	struct {
		int at, path; /* which say the folder and the path; -1: it has none */
	} places[2];
	bool only_makes; /* fails where there is something, whatever that is */
	bool takes_away; /* what it names may have things below it that go with it */
};

/* The watched call of this number, or NULL. */
const struct filter_watched *filter_find_watched(const struct seccomp_data *call);

/*
 * Makes a program tell those calls where it allows them, and nothing else: whatever it refuses,
 * logs or kills for, it still does. The listener has to let them go on. -ENOMEM, or -E2BIG where
 * the kernel would not take it; it is then as it was.
 */
int filter_watch_writes(struct filter_made *made);

#define FILTER_NAME_SIZE 32

/* The name of a call of this machine; "call N" where nobody knows it. */
void filter_name_call(uint32_t number, char ret[static FILTER_NAME_SIZE]);

#define FILTER_MAX_CODE 4096 /* instructions, of the kernel's */

/*
 * Makes the program of a profile in the containers' JSON format, of n bytes; `name` is for
 * messages. -EINVAL with one sentence that starts "name:line:column: ", *ret then untouched.
 *
 * The profile stands as it is written, also where it allows more than `default`, except that:
 *   - what always.txt refuses stays refused, and of several entries about one call the strictest
 *     that fits answers, whatever their order;
 *   - architectures other than this machine's own never apply;
 *   - a cage has no capabilities: includes.caps never applies, excludes.caps excludes nothing;
 *   - where the kernel reads only 32 bits of an argument, as of a socket's family, only those are
 *     compared;
 *   - names that nobody knows are passed over, as containers do, but not where the default lets
 *     through what the entry wants refused.
 * Actions that need a listener or a tracer (NOTIFY, TRACE) are refused.
 */
int filter_read_profile(
	const char *name, const char *bytes, size_t n, struct filter_made *ret, struct err *e);
