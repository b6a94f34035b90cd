#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * What the processes of one run say to each other, over a socket that keeps messages apart. Every
 * message has the same size and no pointers; one of another size is not a message.
 */
enum wire_kind {
	WIRE_MAPPED,   /* keeper → cage: your ids are mapped */
	WIRE_READY,    /* cage → keeper: the wall stands; look at me */
	WIRE_GO,       /* keeper → cage: run the command */
	WIRE_FAILED,   /* cage → keeper: `err` says why, `n` at which operation, or -1 */
	WIRE_SKIPPED,  /* cage → keeper: operation `n`, which may fail, did; `err` says why */
	WIRE_CHECKED,  /* init → keeper: exit code `n` of the preflight; 0: it passed */
	WIRE_STARTED,  /* cage → keeper: startup is over, the command runs */
	WIRE_TERMINAL, /* cage → keeper: the near end of the command's terminal comes with this */
	WIRE_DISK,     /* cage → keeper: the cage's own file system comes with this */
	WIRE_KEPT,     /* cage → keeper: and what is kept of its root with this */
	WIRE_VIEW,     /* cage → keeper: the file system of a project that is held with this */
	WIRE_LISTENER, /* cage → keeper: what the filter denies is told by this */
	WIRE_NAMES,   /* cage → keeper: in a cage without a network names are asked for at this */
	WIRE_SIGNAL,  /* keeper → init: `n` is for the command, or for all of the cage */
	WIRE_STOPPED, /* init → keeper: signal `n` has stopped the command */
	WIRE_EXITED,  /* init → keeper: `n` is the wait status of the command */
	WIRE_JOIN, /* keeper → workspace: a run begins; 1: nothing is wanted but to stay; 2: nor is
		      it a run */
	WIRE_TREE, /* workspace → keeper → cage: tree `n`, an enum cage_tree, comes with this */
	WIRE_STDIO,  /* keeper → warm cage: standard stream `n` of the run comes with this */
	WIRE_JOINED, /* workspace → keeper → cage: these were all */
	WIRE_AWAITS, /* cage → keeper: all stands but what a session brings */
	WIRE_END, /* anybody → workspace: end all runs; 1: tell who they are; 2: end nothing, but
		     if nothing runs, let go of the workspace */
	WIRE_CLIENT, /* workspace → anybody: the keeper with pid `n` is still there */
	WIRE_LOOK, /* cage → keeper: in the session's cage; look at me while I have capabilities */
	WIRE_PART, /* cage's keeper → keeper: part `n` of what it takes to enter comes with this */
	WIRE_STREAM, /* keeper → cage's keeper: what may still be printed to this, nobody reads */
	WIRE_EMPTY,  /* init → keeper: and now no other process is left; `n` of them were */
};

struct wire_message {
	uint32_t kind;
	int32_t n;
	struct err err;
};

/* The two ends; both close on exec. */
int wire_pair(int ret[static 2]);

int wire_send(int fd, enum wire_kind kind, int n, const struct err *e);

/* The same with a descriptor, of which the other side gets a copy. */
int wire_send_fd(int fd, enum wire_kind kind, int passed);

/*
 * Waits for the next message. -EPIPE: the other side is gone. -EBADMSG: not a message. A descriptor
 * that came with it is the caller's, in *ret_fd, whatever is returned; -1: none came. With ret_fd
 * NULL none is taken.
 */
int wire_receive(int fd, struct wire_message *ret, int *ret_fd);

/* A socket of any kind that closes on exec; or -errno. */
int wire_socket(int family, int type, int protocol);

/*
 * One whole message of any kind, with a descriptor or -1. 0, or -errno: -EAGAIN where the socket
 * does not wait, -EPIPE: the other side is gone, -EBADMSG: of another size. *ret_fd as above.
 */
int wire_send_message(int fd, const void *message, size_t size, int passed);
int wire_receive_message(int fd, void *ret, size_t size, int *ret_fd);
