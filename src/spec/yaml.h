#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "spec/diag.h"

/*
 * YAML reduced to what cannot be misread: one document of plain maps, lists and scalars. The
 * rest (anchors, aliases, tags, merge keys, duplicate keys, directives, tabs, hidden characters,
 * anything that is not UTF-8) is an error with a position, and so is a document that is too
 * large or too deep.
 */
#define YAML_MAX_SIZE  ((size_t)256 * 1024)
#define YAML_MAX_DEPTH 32

enum yaml_kind {
	YAML_SCALAR,
	YAML_LIST,
	YAML_MAP,
};

/* What a plain scalar is, where all readers agree; the rest, and all that is quoted, is text. */
enum yaml_type {
	YAML_TEXT,
	YAML_NULL,
	YAML_BOOL,
	YAML_INT,   /* as in JSON: no leading zero, no sign +, no underscore */
	YAML_FLOAT, /* as in JSON */
};

/* One value. The tree lives in the arena it was read into; `key` is set on values of a map. */
struct yaml_node {
	enum yaml_kind kind;
	enum yaml_type type;
	struct diag_pos at;
	const char *text; /* scalars: UTF-8 without NUL */
	const struct yaml_node *key;
	struct yaml_node *first, *next;
	size_t count; /* of the children */
};

/*
 * Reads n bytes, which end with a NUL that is not counted. Every problem goes to `diags` under
 * `source`. Returns the root, which is always a map, also after errors that left the tree whole,
 * so that a reader can find more; NULL otherwise.
 */
const struct yaml_node *yaml_read(
	struct arena *arena, struct diags *diags, unsigned source, const char *bytes, size_t n);

/* The key of a value of a map. */
static inline const char *yaml_key(const struct yaml_node *value)
{
	return value->key && value->key->text ? value->key->text : "";
}

/* The value of a key, or NULL. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);

/* What a plain scalar is. */
enum yaml_type yaml_type_of(const char *text);

/* The nodes' kinds and types as words for messages: "a list", "text", "true or false". */
const char *yaml_describe(const struct yaml_node *node);
