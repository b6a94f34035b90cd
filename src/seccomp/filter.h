#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * System-call filters as BPF programs for seccomp(2). Pure: nothing here installs one.
 *
 * Every filter for a cage, built in or read from a file, kills a process that uses the system calls
 * of another architecture (int 0x80), answers x32 with ENOSYS, and begins with
 * data/syscalls/always.txt: no new namespaces, mounts, keys, bpf, io_uring, seccomp listeners or
 * input pushed into terminals.
 */
struct filter {
	const struct sock_filter *code;
	unsigned short count;
};

/* Returns the built-in profile `default` or `strict`; NULL for any other name. */
const struct filter *filter_named(const char *name);

/*
 * The filters of bawn's own processes that face the network (gate.h); no spec can name them. They
 * allow a few system calls and kill the process at any other.
 */
extern const struct filter filter_gate, filter_dialer, filter_usher, filter_vault;

/* A filter made at run time, which owns its code. */
struct filter_made {
	struct sock_filter *code;
	unsigned short count;
};

void filter_made_done(struct filter_made *made);

/* --- notify: the keeper learns of refused system calls: filter_notify.c --- */

struct seccomp_data;

/*
 * True if the keeper is notified of calls with this answer: those refused as forbidden, with EPERM
 * or EACCES. Other errors say that something does not exist (ENOSYS, EAFNOSUPPORT): libraries try
 * such calls all the time and go on without.
 */
bool filter_is_notifying(uint32_t action);

/*
 * Makes a copy of a filter in which notifying answers become SECCOMP_RET_USER_NOTIF: the kernel
 * asks the listener, which must give the answer of the plain filter, see filter_answer. The copy
 * has the same length and jumps, so allowed calls cost the same. Returns 0 or -ENOMEM.
 */
int filter_make_telling(const struct filter *plain, struct filter_made *ret);

/*
 * Interprets the filter and returns what the kernel would answer to a call. An instruction that
 * filter_compile never emits counts as "kill".
 */
uint32_t filter_answer(const struct filter *f, const struct seccomp_data *call);

/* True if the filter allows this system call of the native architecture. */
bool filter_allows(const struct filter *f, int number, const uint64_t arguments[static 6]);

/* --- notify: the keeper learns of allowed calls that write by path --- */

/* A system call that writes to what a path names, and the arguments that say where. */
struct filter_watched {
	uint32_t number;
	int flags; /* which argument says whether it opens for writing; -1: it always writes */
	struct {
		int at, path; /* the arguments with the folder and the path; -1: none */
	} places[2];
	bool only_makes; /* it fails if the path exists */
	bool takes_away; /* it removes or moves the path with all that is below it */
};

/* Returns the watched call with this number, or NULL. */
const struct filter_watched *filter_find_watched(const struct seccomp_data *call);

/*
 * Changes a filter so that the kernel notifies the listener of watched calls that it allows, which
 * the listener must let continue. Its other answers stay as they are. Returns 0, -ENOMEM, or -E2BIG
 * if the kernel would refuse the result; the filter is unchanged then.
 */
int filter_watch_writes(struct filter_made *made);

#define FILTER_NAME_SIZE 32

/* Returns the name of a system call of the native architecture, or "call N" if it is unknown. */
void filter_name_call(uint32_t number, char ret[static FILTER_NAME_SIZE]);

#define FILTER_MAX_CODE 4096 /* instructions; the kernel's limit */

/*
 * Makes a filter of a profile in the containers' JSON format. Returns 0, or -EINVAL with a sentence
 * that starts with "NAME:LINE:COLUMN: "; *ret is unchanged then.
 *
 * The profile is used as written, also where it allows more than `default`, except that:
 *   - what always.txt refuses stays refused, and of several entries about one call the strictest
 *     that matches answers, whatever their order;
 *   - architectures other than this machine's own never apply;
 *   - a cage has no capabilities: includes.caps never applies, excludes.caps excludes nothing;
 *   - where the kernel reads only 32 bits of an argument, as of a socket's family, only those are
 *     compared;
 *   - unknown names are ignored, as containers do, unless the default action allows what the entry
 *     wants to refuse.
 * Actions that need a listener or a tracer (NOTIFY, TRACE) are refused.
 */
int filter_read_profile(
	const char *name, const char *bytes, size_t n, struct filter_made *ret, struct err *e);
