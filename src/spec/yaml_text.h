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

/* A scalar where it stands: bytes[start] to bytes[end], its quotes not counted. */
struct yaml_place {
	enum yaml_quote quote;
	const char *bytes;
	size_t size; /* of the whole file */
	size_t start, end;
	size_t least; /* spaces that a block must be indented by */
};
