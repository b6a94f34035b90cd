#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * A second, plain reading of a scalar. The parser is known to misread corners of YAML, sometimes
 * into bytes that were never in the file; what it says is believed where this sees the same.
 */
enum yaml_quote {
	YAML_PLAIN,
	YAML_SINGLE, /* '…' */
	YAML_DOUBLE, /* "…" */
	YAML_BLOCK,  /* | and lines below it */
};

/*
 * Does the scalar that stands at bytes[start] to bytes[end], its quotes not counted, say `text`?
 * For a block only the start counts: it is plain where the line before ends with '|' or '|-', its
 * first line is not empty and has at least `least` spaces, and what follows is indented as far.
 */
bool yaml_text_is_sure(enum yaml_quote quote, const char *bytes, size_t n, size_t start, size_t end,
	size_t least, const char *text, size_t len);
