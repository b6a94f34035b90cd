#pragma once

#include "cage/cage.h"

/* The workspace of a session, which its runs share. */
struct keeper;

/* --- keeper_member.c: a run of a session --- */

struct keeper_member {
	int connection; /* to the process that has the workspace mounted, or -1 */
	int lock;       /* of the workspace, shared with others that use it, or -1 */
	int turn;       /* to look for the session's cage and start one, or -1 */
	int kept[CAGE_TREE_COUNT - CAGE_LAYER_COUNT]; /* what it has beside its layers, or -1 */
};

void keeper_member_init(struct keeper_member *s);
void keeper_member_done(struct keeper_member *s);

/* A file of the workspace to be locked, made where missing. A descriptor or -errno. */
int keeper_member_open_lock(int workspace, const char *name, int how);

/* Sockets of the workspace, by name. -ENOENT: nobody listens. A descriptor or -errno. */
int keeper_member_connect(int workspace, const char *name);
int keeper_member_listen(int workspace, const char *name);

/* Locks it with others that use it. */
int keeper_member_lock(struct keeper *k, struct err *e);

/* Takes part in the workspace: locks it, and gets its trees, where something is captured. */
int keeper_member_join(struct keeper *k, struct err *e);

/* Passes what the session has on to the cage that waits for it. */
int keeper_member_send(struct keeper *k, struct err *e);

/* The session is stopped, or nobody is there any more to say so. */
int keeper_member_hear(struct keeper *k, struct err *e);
