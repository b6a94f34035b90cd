#pragma once

#include "proof/log/log.h"

/* What the files of the log share. Nobody else includes it. */

/* What is around an event in a line: {"seq":N, and ,"prev":"…"} and the newline. */
#define LOG_FRAME_SIZE (sizeof("{\"seq\":18446744073709551615,,\"prev\":\"\"}\n") - 1 + 64)

/* --- log_read.c --- */

/* The number that a line gives itself and where in it the 64 digits of `prev` are; or false. */
bool log_split_line(const char *text, size_t size, uint64_t *ret_seq, const char **ret_prev);

/* --- log_chain.c --- */

/*
 * Opens a file of a chain, and makes it where missing: -EPERM if it is not a plain file of ours.
 * *ret is the tail; what stands behind it has been cut off.
 */
int log_open_file(int folder, const char *name, struct log_tail *ret);

/*
 * Adds events, each ended by a newline, to the end of a chain, with one write. All or, with -errno
 * and the tail as it was, nothing.
 */
int log_add(int fd, struct log_tail *tail, const struct buf *events, bool is_synced);

/* --- log_state.c --- */

/* Adds what waits to the state's chain, alone. */
int log_add_to_state(const struct log *l, struct err *e);
