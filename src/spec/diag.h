#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"

/*
 * Diagnostics as a good compiler gives them: file, line, column, one sentence, the source line
 * with a caret under the words meant, and a hint. All of a file's at once.
 */
#define DIAG_MAX        100 /* kept; more are counted */
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

/* What several diagnostics have in common: people read them as one message with one hint. */
struct diag_list {
	const char *heading, *hint;
};

struct diag {
	enum diag_level level;
	struct diag_pos at;
	const char *text;
	const char *hint;             /* or NULL */
	const struct diag_list *list; /* or NULL; static */
	const char *brief;            /* in the list; in the arena */
};

struct diag_source {
	const char *name;
	const char *bytes; /* or NULL, for an option */
	size_t size;
};

struct diags {
	struct arena *arena;         /* borrowed; everything said lives there */
	struct diag_source *sources; /* in the arena */
	unsigned source_count;
	struct diag items[DIAG_MAX];
	size_t count;            /* kept in items */
	size_t errors, warnings; /* all that were said */
	struct diag_pos hidden[DIAG_MAX_HIDDEN];
	size_t hidden_count; /* all of them: where it is more, no source is shown */
};

void diags_init(struct diags *d, struct arena *arena);

/*
 * Names a source and returns its number; `name` and `bytes` are borrowed until the diagnostics are
 * printed. Without memory for another, the first stands for it.
 */
unsigned diags_add_source(struct diags *d, const char *name, const char *bytes, size_t size);

/*
 * Says something about a place. `hint` may be NULL and is copied. Returns what is kept, for a list
 * that it belongs to, or NULL if it is only counted.
 */
struct diag *diags_say(struct diags *d, enum diag_level level, struct diag_pos at, const char *hint,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* From here to the end of its line nothing of the source is shown, whatever is said about it. */
void diags_hide(struct diags *d, struct diag_pos at);

/* Have all been said that will be shown? Then the rest need not be looked for. */
bool diags_are_full(const struct diags *d);

#define diags_error(d, at, hint, ...) diags_say((d), DIAG_ERROR, (at), (hint), __VA_ARGS__)
#define diags_warn(d, at, hint, ...)  diags_say((d), DIAG_WARNING, (at), (hint), __VA_ARGS__)

/* For people, each list as one message; hostile bytes of the source are made visible. `color` uses
 * the terminal's colours. */
void diags_print(const struct diags *d, struct buf *out, bool color);

/* A list member "diagnostics" of the open map. */
void diags_print_json(const struct diags *d, struct json *j);

/* "file:line:column", "file" for a whole source; written into the arena. */
const char *diags_where(const struct diags *d, struct diag_pos at);
