#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns CLOCK_MONOTONIC in nanoseconds, which all processes of the host share. */
uint64_t clock_ns(void);

/* Returns true if `a` is a later time than `b`. */
bool clock_is_later(const struct timespec *a, const struct timespec *b);

/*
 * Waits until a file that changes now gets a timestamp later than `t`, which was read from
 * CLOCK_REALTIME. The kernel's clock for files lags behind that one by up to a tick. Returns at
 * once if the tick has passed; gives up after 200 ms, because somebody may set the clock back.
 */
void clock_pass_mark(const struct timespec *t);

#define CLOCK_TEXT_SIZE 64

/*
 * Prints a time as 2026-11-15T22:45:01.123456Z, for the years 1970 to 9999. Opens no file, which
 * libc's functions do for the time zone.
 */
void clock_print(const struct timespec *t, char ret[static CLOCK_TEXT_SIZE]);

/* Parses that form, with any number of digits in the fraction or none. Returns 0 or -EINVAL. */
int clock_parse(const char *text, struct timespec *ret);
