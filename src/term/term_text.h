#pragma once

#include <stddef.h>

/*
 * How many of n bytes, from the first one on, are whole characters in UTF-8 that a terminal shows
 * or that ring and move the cursor (BEL to CR), and nothing else: no other control, in one byte
 * or in two, and no broken character. It may stop early, but not where it could not go on.
 */
size_t term_text_run(const char *text, size_t n);
