#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The messages between the processes of one run, over SOCK_SEQPACKET sockets. Every message has the
 * same size and no pointers; a packet of another size is an error.
 */
enum wire_kind {
	WIRE_MAPPED,   /* keeper → cage: your ids are mapped */
	WIRE_READY,    /* cage → keeper: the cage is complete: inspect it */
	WIRE_GO,       /* keeper → cage: run the command */
	WIRE_FAILED,   /* cage → keeper: `err` says why, `n` at which operation, or -1 */
	WIRE_SKIPPED,  /* cage → keeper: operation `n`, a MAY, failed; `err` says why */
	WIRE_CHECKED,  /* init → keeper: exit code `n` of the preflight; 0: it passed */
	WIRE_STARTED,  /* cage → keeper: the startup commands are done, the command runs */
	WIRE_TERMINAL, /* cage → keeper, with the master of the command's terminal */
	WIRE_DISK,     /* cage → keeper, with the cage's own file system (the pool) */
	WIRE_KEPT,     /* cage → keeper, with the upper directory of the root's overlay */
	WIRE_VIEW, /* cage → keeper, with the mount that protects paths of a writable project */
	WIRE_LISTENER, /* cage → keeper, with the seccomp listener */
	WIRE_NAMES, /* cage → keeper, with the socket for name queries of a cage without network */
	WIRE_SIGNAL, /* caller → keeper → init: send signal `n` to the command, or to the whole cage
		      */
	WIRE_STOPPED, /* init → keeper → caller: signal `n` has stopped the command */
	WIRE_EXITED,  /* init → keeper → caller: the command has exited with wait status `n` */
	WIRE_JOIN,    /* keeper → workspace holder: `n` is an enum wire_join */
	WIRE_TREE,  /* workspace holder → keeper → cage, with the tree `n`, an enum cage_tree */
	WIRE_STDIO, /* keeper → warm cage, with standard stream `n` of the run */
	WIRE_JOINED, /* workspace holder → keeper → cage: all trees are sent */
	WIRE_AWAITS, /* cage → keeper: the cage is complete but for what a session brings */
	WIRE_END,    /* any process → workspace holder: `n` is an enum wire_end */
	WIRE_CLIENT, /* workspace holder → the asker: the keeper with pid `n` still runs */
	WIRE_LOOK, /* cage → keeper: inspect me while I have capabilities, in a session's cage */
	WIRE_PART, /* resident keeper → keeper, with part `n` of what it needs to enter the cage */
	WIRE_STREAM, /* keeper → resident keeper, with a stream that nobody reads any more */
	WIRE_EMPTY,  /* init → keeper: the last process has exited; `n` others had been left */
};

/* What a keeper wants of a workspace holder. */
enum wire_join {
	WIRE_JOIN_RUN,   /* the trees, for a run */
	WIRE_JOIN_STAY,  /* only that it stays alive while the connection is open */
	WIRE_JOIN_SPARE, /* the same, for a connection that was passed on: its maker is not a run */
};

/* What a workspace holder is asked to end. */
enum wire_end {
	WIRE_END_RUNS,  /* end all runs */
	WIRE_END_TELL,  /* end nothing; send a WIRE_CLIENT for each run */
	WIRE_END_YIELD, /* end nothing; unmount the workspace if nothing runs */
};

struct wire_message {
	uint32_t kind;
	int32_t n;
	struct err err;
};

/* Makes a socket pair with O_CLOEXEC. Returns 0 or -errno. */
int wire_pair(int ret[static 2]);

/* Sends a message; `e` may be NULL. Returns 0 or -errno. */
int wire_send(int fd, enum wire_kind kind, int n, const struct err *e);

/* Sends a message with a descriptor, of which the receiver gets a copy. */
int wire_send_fd(int fd, enum wire_kind kind, int passed);

/*
 * Waits for the next message. Returns 0, -EPIPE if the other side is gone, -EBADMSG if the packet
 * is not a message, or -errno. Sets *ret_fd to the descriptor that came with it, which the caller
 * owns whatever is returned, or to -1. With ret_fd NULL no descriptor is accepted.
 */
int wire_receive(int fd, struct wire_message *ret, int *ret_fd);

/* Makes a socket with O_CLOEXEC. Returns a descriptor or -errno. */
int wire_socket(int family, int type, int protocol);

/*
 * Send and receive a message of another type, with the descriptor `passed` or -1. Return 0 or
 * -errno: -EAGAIN if the socket is non-blocking, -EPIPE if the other side is gone, -EBADMSG for
 * another size. *ret_fd is set as by wire_receive.
 */
int wire_send_message(int fd, const void *message, size_t size, int passed);
int wire_receive_message(int fd, void *ret, size_t size, int *ret_fd);
