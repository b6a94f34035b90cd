#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"

/*
 * Diagnostics in the manner of a compiler: file, line, column, one sentence, the source line with
 * carets under the words that it is about, and a hint. A file's errors are reported together.
 */
#define DIAG_MAX        100 /* diagnostics kept; later ones are only counted */
#define DIAG_MAX_HIDDEN 64

enum diag_level {
	DIAG_ERROR,
	DIAG_WARNING,
};

/* A place in a source. Line 0 means the source as a whole, as for a command-line option. */
struct diag_pos {
	uint32_t line, column, width; /* from 1, in characters */
	uint32_t source;
};

/* A heading and a hint that several diagnostics share: diags_print makes one message of them. */
struct diag_list {
	const char *heading, *hint;
};

struct diag {
	enum diag_level level;
	struct diag_pos at;
	const char *text;
	const char *hint;             /* or NULL */
	const struct diag_list *list; /* or NULL; static */
	const char *brief;            /* its line in that message; in the arena */
};

struct diag_source {
	const char *name;
	const char *bytes; /* or NULL, for an option */
	size_t size;
};

struct diags {
	struct arena *arena;         /* borrowed; holds all texts */
	struct diag_source *sources; /* in the arena */
	unsigned source_count;
	struct diag items[DIAG_MAX];
	size_t count;            /* of items */
	size_t errors, warnings; /* including those that were not kept */
	struct diag_pos hidden[DIAG_MAX_HIDDEN];
	size_t hidden_count; /* above DIAG_MAX_HIDDEN no source line is shown at all */
};

void diags_init(struct diags *d, struct arena *arena);

/*
 * Adds a source and returns its number, or that of the first source if there is no memory. Borrows
 * `name` and `bytes` until the diagnostics are printed.
 */
unsigned diags_add_source(struct diags *d, const char *name, const char *bytes, size_t size);

/*
 * Adds a diagnostic about a place. Copies `hint`, which may be NULL. Returns it, so that the caller
 * can set `list` and `brief`; NULL if it was only counted.
 */
struct diag *diags_say(struct diags *d, enum diag_level level, struct diag_pos at, const char *hint,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Keeps the source from `at` to the end of its line out of every diagnostic: it may be a secret. */
void diags_hide(struct diags *d, struct diag_pos at);

/* True if no further diagnostic will be kept, so that a reader can stop. */
bool diags_are_full(const struct diags *d);

#define diags_error(d, at, hint, ...) diags_say((d), DIAG_ERROR, (at), (hint), __VA_ARGS__)
#define diags_warn(d, at, hint, ...)  diags_say((d), DIAG_WARNING, (at), (hint), __VA_ARGS__)

/* Prints the diagnostics for people; control characters of the source are made visible. */
void diags_print(const struct diags *d, struct buf *out, bool color);

/* Adds the member "diagnostics", a list, to the open map. */
void diags_print_json(const struct diags *d, struct json *j);

/* Returns "file:line:column", or "file" for a whole source. The text lives in the arena. */
const char *diags_where(const struct diags *d, struct diag_pos at);
