#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Numbers as people write them, one grammar each, nothing skipped and nothing guessed.
 *
 *   size       DIGITS [K|KB|M|MB|G|GB|T|TB]   512M   2G     multiples of 1024; bare digits are
 * bytes duration   (DIGITS UNIT)+                 30m    1h30m  d h m s ms, largest first, each
 * once cpus       DIGITS [. up to 3 DIGITS]      1.5    0.25   kept in thousandths integer    [-]
 * DIGITS                     256           no leading zero
 *
 * No sign, space, fraction of a unit, underscore or exponent. Each writes *ret only on success
 * and says in `e` what is wrong and how to write it; the sentence quotes the text.
 */
int num_parse_size(const char *text, uint64_t *ret, struct err *e);

/* A size of whole megabytes and more than none: in M, MB, G or GB only. */
int num_parse_large_size(const char *text, uint64_t *ret, struct err *e);
int num_parse_duration(const char *text, uint64_t *ret_ms, struct err *e);
int num_parse_cpus(const char *text, uint64_t *ret_milli, struct err *e);
int num_parse_int(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *e);

/*
 * Reads `count` numbers as the kernel's tables have them, each after any blanks, to `base` 10 or
 * 16. False where one is missing or does not fit; what follows the last one does not matter.
 */
bool num_scan(const char *text, int base, uint64_t *ret, size_t count);

#define NUM_TEXT_SIZE 64

/* The shortest text of the same grammar: 1536M, 1h30m, 1.5. */
void num_print_size(uint64_t bytes, char ret[static NUM_TEXT_SIZE]);
void num_print_duration(uint64_t ms, char ret[static NUM_TEXT_SIZE]);
void num_print_cpus(uint64_t milli, char ret[static NUM_TEXT_SIZE]);
