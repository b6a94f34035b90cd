#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/*
 * The folders of sessions: docs/sessions.md. Below one root, which is the operator's alone:
 *
 *   id                  which root this is, for workers on machines that share it
 *   SESSION/spec.json   fixed when it was created
 *   SESSION/w/N/        the workspace; N is the session's `workspace` in the store
 *     project, protect, git, layer, git-layer   as in a run's folder, see cli/cli_kept.h
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

/* May a session be called so? Letters, digits, '.', '_' and '-', not at first, and not like an id.
 */
bool session_is_name(const char *text);

/*
 * Opens the root: BAWN_SANDBOX_ROOT, or `sessions` in the operator's open state. It must be the
 * operator's alone. -ENOENT, with nothing in `e`, where it is missing and `makes` is not set.
 */
int session_open_root(int state, bool makes, struct err *e);

/* Which one it is; made where missing. Two at the same time get the same. */
int session_root_id(int root, char ret[static STORE_ID_SIZE], struct err *e);

/* Makes a session's folder with workspace 1 in it, whole or not at all. */
int session_make_folder(int root, const char *id, const char *spec, struct err *e);

/* Opens a workspace, which must be the operator's alone. -ENOENT: it is not in this root. */
int session_open_workspace(int root, const char *id, uint64_t workspace, struct err *e);

/*
 * Makes workspace `to` out of `from` for a new lease: where nobody has `from` locked any more it
 * becomes `to`; otherwise somebody may still write to it, and `to` is a copy of it as it is. True
 * in *ret_is_copied for that. `from` is removed as far as it can be.
 */
int session_move_workspace(
	int root, const char *id, uint64_t from, uint64_t to, bool *ret_is_copied, struct err *e);

/*
 * Removes a session's folder by descriptor: beneath the root, across no mount, through no link;
 * also what is deep, huge, without permissions, or marked immutable. Nothing may run in it any
 * more: -EBUSY while somebody has a workspace locked. What cannot be removed is named, and the rest
 * is removed nevertheless.
 */
int session_remove_folder(int root, const char *id, struct err *e);

/* --- saving --- */

struct buf;

/* A workspace as one piece of bytes, without `tmp`: what was written to the project, and the home.
 */
int session_pack(int workspace, struct buf *ret, struct err *e);

/* And a new workspace out of it. The bytes may be anything: nothing leaves the workspace. */
int session_unpack(
	int root, const char *id, uint64_t workspace, const void *bytes, size_t n, struct err *e);
