#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Numbers as people write them, each by a grammar of its own:
 *
 *   - size: DIGITS [K|KB|M|MB|G|GB|T|TB], such as 512M; multiples of 1024, bare digits are bytes
 *   - duration: (DIGITS UNIT)+ with d h m s ms, largest first, each once, such as 1h30m
 *   - cpus: DIGITS [. up to 3 DIGITS], such as 1.5, in thousandths
 *   - integer: [-] DIGITS without a leading zero
 *
 * No sign, space, fraction of a unit, underscore or exponent. Each function sets *ret only on
 * success; otherwise `e` quotes the text and says what is wrong and how to write it.
 */
int num_parse_size(const char *text, uint64_t *ret, struct err *e);

/* Parses a size of at least one megabyte, in M, MB, G or GB only. */
int num_parse_large_size(const char *text, uint64_t *ret, struct err *e);
int num_parse_duration(const char *text, uint64_t *ret_ms, struct err *e);
int num_parse_cpus(const char *text, uint64_t *ret_milli, struct err *e);
int num_parse_int(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *e);

/*
 * Reads `count` numbers of a line of /proc, in base 10 or 16, with blanks before each. False if one
 * is missing or does not fit into 64 bits. Ignores what follows the last one.
 */
bool num_scan(const char *text, int base, uint64_t *ret, size_t count);

#define NUM_TEXT_SIZE 64

/* Print the shortest text of the same grammar: 1536M, 1h30m, 1.5. */
void num_print_size(uint64_t bytes, char ret[static NUM_TEXT_SIZE]);
void num_print_duration(uint64_t ms, char ret[static NUM_TEXT_SIZE]);
void num_print_cpus(uint64_t milli, char ret[static NUM_TEXT_SIZE]);
