#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proof/log/log.h"

/*
 * One event, read from its line. Pure. The line may be anybody's: a chain shows that nothing was
 * changed, not that bawn wrote it.
 */

enum log_value {
	LOG_NULL,
	LOG_BOOL,   /* `number` is 0 or 1 */
	LOG_NUMBER, /* an integer that fits `number` */
	LOG_TEXT,
	LOG_OTHER, /* a list, a map, another number */
};

struct log_member {
	const char *key;
	enum log_value kind;
	int64_t number;
	const char *text;  /* of a text, decoded; "" otherwise */
	const char *bytes; /* the value as it stands in the line */
	size_t size;
	bool is_taken; /* by who asked for it with log_take */
};

#define LOG_MOST_MEMBERS 64

/* Large: it has room for every text of a line. */
struct log_event {
	const char *line; /* borrowed */
	size_t size;
	const char *type, *time, *run, *session; /* "": not said */
	struct log_member members[LOG_MOST_MEMBERS];
	size_t count;
	char texts[LOG_LINE_SIZE];
};

/*
 * Reads a line without its newline, which must live as long as `x`. -EBADMSG with half a sentence:
 * it is no object of JSON with a type.
 */
int log_event_read(struct log_event *x, const char *line, size_t size, struct err *e);

/* A member that is not null, or NULL; log_take notes that it was asked for. */
const struct log_member *log_find(const struct log_event *x, const char *key);
const struct log_member *log_take(struct log_event *x, const char *key);

/* The text of a member; "" where it has none. */
const char *log_find_text(const struct log_event *x, const char *key);

/* A member's number, or 0. */
int64_t log_find_number(const struct log_event *x, const char *key);

/* Something was denied to a cage: by the gate, the filter, for a protected path, or by a
 * hook. */
bool log_is_denial(const struct log_event *x);

/*
 * Of what is said again with a higher `times`: the digest of what stays the same, so that only the
 * last need be shown. False: it is nothing of the kind.
 */
bool log_event_row(const struct log_event *x, uint8_t ret[static SHA256_SIZE]);

/*
 * JSON as it stands in a line, on one line and with escapes for what a terminal would obey; with
 * `is_strict` a half of a character, which is how a byte that is no UTF-8 is written, becomes
 * U+FFFD.
 */
void log_add_harmless(struct buf *out, const char *bytes, size_t n, bool is_strict);

/* --- log_guarantees.c --- */

struct log_guarantees {
	size_t holding, missing, must_missing;
	struct buf names; /* of those that are missing, with commas */
};

/* What an event says of them; false: it does not say. To be done in any case. */
bool log_count_guarantees(const struct log_event *x, struct log_guarantees *ret);
void log_guarantees_done(struct log_guarantees *x);

/* --- log_sentence.c --- */

/* The types that docs/format-events.md has, in its order; NULL behind the last. */
const char *log_type_name(size_t i);

/* What happened, for people: one sentence, not yet made visible. */
void log_print_sentence(const struct log_event *x, struct buf *out);

/* --- for other programs; one object and a newline each --- */

/* Where events come from; borrowed texts. */
struct log_origin {
	const char *host;    /* its name */
	const char *version; /* of bawn */
	const char *chain;   /* the run whose events these are, or "log" */
};

/* CloudEvents 1.0.2 as JSON. log_cloudevents.c */
void log_print_cloudevent(
	const struct log_event *x, const struct log_origin *from, struct buf *out);

/* OCSF 1.8.0. Takes members of `x`. log_ocsf.c */
void log_print_ocsf(struct log_event *x, const struct log_origin *from, struct buf *out);
