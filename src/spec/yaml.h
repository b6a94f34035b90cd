#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "spec/diag.h"

/*
 * A subset of YAML that all readers understand in the same way: one document of plain maps, lists
 * and scalars. Everything else is an error with a position: anchors, aliases, tags, merge keys,
 * duplicate keys, directives, tabs, hidden characters, bytes that are not UTF-8, and a document
 * that is too large or too deep.
 */
#define YAML_MAX_SIZE  ((size_t)256 * 1024)
#define YAML_MAX_DEPTH 32

enum yaml_kind {
	YAML_SCALAR,
	YAML_LIST,
	YAML_MAP,
};

/*
 * The type of a plain scalar, if all readers agree on it. Other scalars are text, and all quoted.
 */
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
 * Reads n bytes, behind which there must be a NUL. Errors go to `diags` under `source`. Returns the
 * root, which is always a map; also after errors, if the tree could still be built, so that its
 * reader can find more of them. NULL otherwise.
 */
const struct yaml_node *yaml_read(
	struct arena *arena, struct diags *diags, unsigned source, const char *bytes, size_t n);

/* Returns the key of a map's value, or "". */
static inline const char *yaml_key(const struct yaml_node *value)
{
	return value->key && value->key->text ? value->key->text : "";
}

/* Returns the value of a key, or NULL. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);

/* Returns the type of a plain scalar. */
enum yaml_type yaml_type_of(const char *text);

/* Returns a node's kind or type in words: "a list", "text", "true or false". */
const char *yaml_describe(const struct yaml_node *node);
