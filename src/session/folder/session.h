#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "session/store/store.h"

/*
 * The folders of sessions: docs/sessions.md. Below one root, which is the operator's alone:
 *
 *   id                  which root this is, for workers on machines that share it
 *   SESSION/spec.json   fixed when it was created
 *   SESSION/new         only until the session is in the store
 *   SESSION/w/N/        the workspace; N is the session's `workspace` in the store
 *     project, protect, git, layer, git-layer   as in a run's folder, see result/result.h
 *     home, tmp         what the cage has at /home/agent and /tmp
 *     lock              locked shared by every run, exclusively by whoever moves or removes it
 *     door              the socket of the process that has the workspace mounted, while it runs
 *
 * What is in a workspace is a stranger's: it is opened by descriptor, no link is followed.
 */

/* Makes an id that nobody can guess. */
int session_make_id(char ret[static STORE_ID_SIZE], struct err *e);

/* Has a text the form of an id, or of the beginning of one? */
bool session_is_id(const char *text, bool is_whole);

/*
 * May a session be called so? Letters, digits, '.', '_' and '-', none of these three at first, and
 * not what an id, or its first eight digits, could be. NULL: it may; half a sentence why not.
 */
const char *session_check_name(const char *text);

/*
 * Opens the root: BAWN_SANDBOX_ROOT, or `sessions` in the operator's state, which may be -1. It
 * must be the operator's, and nobody else may write to it. -ENOENT, with nothing in `e`, where it
 * is missing and `makes` is not set.
 */
int session_open_root(int state, bool makes, struct err *e);

/* Which one it is; made where missing. Two at the same time get the same. */
int session_root_id(int root, char ret[static STORE_ID_SIZE], struct err *e);

/*
 * Makes a session's folder with workspace 1 in it, whole or not at all. It is marked as new until
 * it is confirmed, when the session is in the store: so it is known what a creation that was
 * interrupted left.
 */
int session_make_folder(int root, const char *id, const char *spec, struct err *e);
int session_confirm_folder(int root, const char *id, struct err *e);

/* A folder of the root. */
struct session_folder {
	const char *id;
	bool is_new;   /* it was not confirmed */
	int64_t age_s; /* since it was marked, or since its folder changed */
};

/*
 * Calls `see` for each; what it returns but 0 ends it. Removes what is left of folders that were
 * not made whole an hour ago.
 */
int session_each_folder(
	int root, int (*see)(void *of, const struct session_folder *x), void *of, struct err *e);

/*
 * Opens a workspace, which must be the operator's alone. -ENOENT: it is not in this root. Whoever
 * uses it has `lock` in it locked, and looks after that whether the lock is still a name.
 */
int session_open_workspace(int root, const char *id, uint64_t workspace, struct err *e);

/*
 * The same for the one that a session has now, as its row was just read. Where that is gone, and
 * the session is in this root, it is one that was moved since: who did so may have been killed
 * before the store could say it.
 */
int session_open_present(int root, const struct store_session *s, struct err *e);

/*
 * The newest workspace with a smaller number, which it is then: for all of them, those too that
 * leases before this one left. -ENOENT with 0: there is none; with a number: it was just moved.
 */
int session_open_before(int root, const char *id, uint64_t *number, struct err *e);

/*
 * Makes workspace `to` out of `from` for a new lease: where nobody has `from` locked any more it
 * becomes `to`; otherwise somebody may still write to it, and `to` is a copy of it as it is. True
 * in *ret_is_copied for that. Where `from` is gone, the newest before `to` is meant: one who had
 * the lease before moved it, and did not live to say so. What is older than `to` is removed as far
 * as nobody has it locked. -ENOENT: there is none in this root; -EEXIST: there is a `to`.
 */
int session_move_workspace(
	int root, const char *id, uint64_t from, uint64_t to, bool *ret_is_copied, struct err *e);

/*
 * Removes a session's folder by descriptor: beneath the root, across no mount, through no link;
 * also what is deep, huge, without permissions, or marked immutable. Nothing may run in it any
 * more: -EBUSY while somebody has a workspace locked, and nothing was removed. What cannot be
 * removed is named, and the rest is removed nevertheless. 0 where there is nothing.
 */
int session_remove_folder(int root, const char *id, struct err *e);

struct buf;

/*
 * How many names at the top of the project a session wrote below and nobody applied or discarded;
 * the names, as texts to be shown, in `names`, which may be NULL. 0 also where it has no folder
 * here; -errno where that cannot be found out.
 */
int session_count_writes(int root, const char *id, struct buf *names);

/*
 * True if something in the layers of an open workspace was written, made, renamed or removed since
 * `t`, a time of CLOCK_REALTIME_COARSE, by which files are marked.
 */
bool session_was_written(int workspace, const struct timespec *t);

/* --- saving --- */

/*
 * A workspace as one piece of bytes, docs/format-workspace.md, without `tmp`: what was written to
 * the project, and the home. `ret` is empty, and has room for STORE_MAX_SAVED: -EFBIG where there
 * is more. Sockets, pipes and devices are left out, and how many is in the bytes.
 */
int session_pack(int workspace, struct buf *ret, struct err *e);

/*
 * And a new workspace out of it, in a session's folder that is made where it is missing. The bytes
 * may be anything: -EBADMSG for what is no workspace, before anything is made; what fails later
 * leaves nothing. Everything belongs to who unpacks. -EEXIST: there is one of that number.
 */
int session_unpack(
	int root, const char *id, uint64_t workspace, const void *bytes, size_t n, struct err *e);
