#pragma once

#include <linux/filter.h>
#include <stddef.h>

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
extern const struct filter filter_gate, filter_caller, filter_usher;

/* A program of the caller's own. */
struct filter_made {
	struct sock_filter *code;
	unsigned short count;
};

void filter_made_done(struct filter_made *made);

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
