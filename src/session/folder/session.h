#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "session/store/store.h"

/*
 * The folders of sessions (docs/sessions.md). They are below one root, which only the operator can
 * enter:
 *
 *   id                  identifies the root for workers on machines that share it
 *   SESSION/spec.json   the canonical spec, fixed at creation
 *   SESSION/new         exists until the session is in the store
 *   SESSION/stay, stay-door, stay-turn
 *                       of the process that stays for the next command: run/run_stay.h
 *   SESSION/w/N/        the workspace; N is the session's `workspace` in the store
 *     project, protect, git, layer, git-layer   as in a run's folder, see result/result.h
 *     home, tmp         mounted at /home/agent and /tmp in the cage
 *     lock              each run locks it shared, a process that moves or removes it exclusively
 *     door              the socket of the workspace holder, while that runs
 *
 * Commands in cages write to a workspace, so it is opened by descriptor and no symlink is followed.
 */

/* Makes a random id. */
int session_make_id(char ret[static STORE_ID_SIZE], struct err *e);

/* True for a text in the form of an id, or, without is_whole, of the beginning of one. */
bool session_is_id(const char *text, bool is_whole);

/*
 * Checks the name of a session: letters, digits, '.', '_' and '-', not starting with one of these
 * three, and not in the form of an id or of its first eight digits. Returns NULL if the name is
 * valid, or half a sentence that says why not.
 */
const char *session_check_name(const char *text);

/*
 * Opens the root: BAWN_SANDBOX_ROOT, or `sessions` in the operator's state, which may be -1. The
 * operator must own it, and nobody else may write to it. Makes it if it is missing and `makes` is
 * set. Returns a descriptor, -ENOENT with `e` unset if it is missing, or -errno.
 */
int session_open_root(int state, bool makes, struct err *e);

/* Reads the root's id, or makes one. Two processes that do so at once get the same. */
int session_root_id(int root, char ret[static STORE_ID_SIZE], struct err *e);

/*
 * session_make_folder makes a session's folder with workspace 1 in it, atomically. The folder is
 * marked as new until session_confirm_folder, which is called when the session is in the store. So
 * the folder of an interrupted creation can be told from others.
 */
int session_make_folder(int root, const char *id, const char *spec, struct err *e);
int session_confirm_folder(int root, const char *id, struct err *e);

/* A folder of the root. */
struct session_folder {
	const char *id;
	bool is_new;   /* not confirmed */
	int64_t age_s; /* since it was marked as new, or since its folder changed */
};

/*
 * Calls `see` for each folder. A result of `see` other than 0 ends it. Also removes the remains of
 * folders whose creation was interrupted more than an hour ago.
 */
int session_each_folder(
	int root, int (*see)(void *of, const struct session_folder *x), void *of, struct err *e);

/*
 * Opens a workspace, which only the operator may be able to enter. -ENOENT: it is not in this root.
 * A caller that uses it must lock its `lock` and then check that the file still has a name: another
 * process may have moved the workspace.
 */
int session_open_workspace(int root, const char *id, uint64_t workspace, struct err *e);

/*
 * Opens the current workspace of a session whose row was just read. If that is gone, opens the one
 * that it was moved to: the process that moved it may have been killed before it told the store.
 */
int session_open_present(int root, const struct store_session *s, struct err *e);

/*
 * Opens the newest workspace with a number smaller than *number, and sets *number to it. Calling it
 * again and again walks all workspaces, also those that earlier leases left. -ENOENT with *number
 * 0: there is none; with another number: that one was just moved.
 */
int session_open_before(int root, const char *id, uint64_t *number, struct err *e);

/*
 * Makes workspace `to` from workspace `from` for a new lease. If nobody has `from` locked, renames
 * it. Otherwise a process may still write to it: copies it and sets *ret_is_copied. If `from` is
 * gone, takes the newest before `to`: the last worker moved it and was killed before it told the
 * store. Removes older workspaces that nobody has locked. -ENOENT: there is none in this root;
 * -EEXIST: there is a `to`.
 */
int session_move_workspace(
	int root, const char *id, uint64_t from, uint64_t to, bool *ret_is_copied, struct err *e);

/*
 * Removes a session's folder: by descriptor beneath the root, across no mount, through no symlink;
 * also trees that are deep, huge, without permissions or marked immutable. Returns -EBUSY, and
 * removes nothing, while a process has a workspace locked. An entry that cannot be removed is named
 * in `e`; the rest is still removed. Returns 0 also if there is no folder.
 */
int session_remove_folder(int root, const char *id, struct err *e);

struct buf;

/*
 * Counts the entries at the top of the project in or below which a session has changes that are not
 * applied or discarded. Adds their names, escaped, to `names`, which may be NULL. Returns the
 * count, 0 if the session has no folder here, or -errno.
 */
int session_count_writes(int root, const char *id, struct buf *names);

/*
 * True if anything in the layers of an open workspace was written, made, renamed or removed since
 * `t`, a time of CLOCK_REALTIME_COARSE, which is the kernel's clock for timestamps of files.
 */
bool session_was_written(int workspace, const struct timespec *t);

/* --- saving --- */

/*
 * Serialises a workspace without `tmp` (docs/format-workspace.md) into `ret`, which must be empty
 * with STORE_MAX_SAVED as its maximum. Sockets, pipes and devices are left out, and the bytes say
 * how many. Returns 0, -EFBIG if there is more, or -errno.
 */
int session_pack(int workspace, struct buf *ret, struct err *e);

/*
 * Makes a new workspace from such bytes, which a stranger may have written, and the session's
 * folder if it is missing. Checks all bytes before it makes anything; a later failure leaves
 * nothing behind. All entries belong to the caller's user. -EBADMSG: not a workspace; -EEXIST:
 * there is a workspace with that number.
 */
int session_unpack(
	int root, const char *id, uint64_t workspace, const void *bytes, size_t n, struct err *e);
