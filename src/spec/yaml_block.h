#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Is `text` what the block of lines that starts at bytes[start] says? The parser and other readers
 * disagree on the corners of such blocks; a second, plain reading settles it. Plain means: the
 * line before ends with '|' or '|-', the block's first line is not empty and has at least `least`
 * spaces before it, and what follows is indented as far.
 */
bool yaml_block_is_sure(
	const char *bytes, size_t n, size_t start, size_t least, const char *text, size_t len);
