#pragma once

#include "proof/log/log.h"

/* What the files of the log share. Nobody else includes it. */

/* What is around an event in a line: {"seq":N, and ,"prev":"…"} and the newline. */
#define LOG_FRAME_SIZE (sizeof("{\"seq\":18446744073709551615,,\"prev\":\"\"}\n") - 1 + 64)

/* --- log_read.c --- */

/* The number that a line gives itself and where in it the 64 digits of `prev` are; or false. */
bool log_split_line(const char *text, size_t size, uint64_t *ret_seq, const char **ret_prev);
