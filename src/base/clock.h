#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds of the clock that only goes forward; the same in every process. */
uint64_t clock_ns(void);

/*
 * Waits until whatever is changed gets a later time than `t`, which was taken from CLOCK_REALTIME:
 * files are marked by a coarser clock, which stands behind it for up to a tick. Returns at once
 * where that tick has passed; gives up after 200 ms, because clocks can be set back.
 */
void clock_pass_mark(const struct timespec *t);

#define CLOCK_TEXT_SIZE 64

/* 2026-11-15T22:45:01.123456Z. Years 1970 to 9999; reads no file, as libc's would. */
void clock_print(const struct timespec *t, char ret[static CLOCK_TEXT_SIZE]);

/* Back from that form, with any number of digits of a fraction or none. 0 or -EINVAL. */
int clock_parse(const char *text, struct timespec *ret);
