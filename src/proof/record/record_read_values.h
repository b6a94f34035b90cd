#pragma once

#include "base/arena.h"
#include "base/json_fields.h"
#include "proof/record/record_read.h"

/* What reads records value by value. A null leaves what is there. */
struct record_reader {
	struct json_reader json; /* first: json_fields.h */
	struct arena *arena;
};

/* As many of anything as a list may have. */
#define RECORD_MAX_ITEMS 65536

/* `what` stands in the sentence: "the record cannot be read: expected …". */
int record_reader_end(struct record_reader *r, const char *what, struct err *e);

void record_reader_begin(struct record_reader *r, const char *bytes, size_t n, struct arena *arena);
void record_reader_done(struct record_reader *r);

/* Into a const char *. */
bool record_read_text(void *reader, void *into);
bool record_read_sha256(void *reader, void *into);

/* Into a const char *, from {"sha256": …}. */
bool record_read_digest(void *reader, void *into);

/* Into a bool, or an int64_t that is not negative. */
bool record_read_bool(void *reader, void *into);
bool record_read_count(void *reader, void *into);

/* Into a struct record_texts, a struct record_artifacts. */
bool record_read_texts(void *reader, void *into);
bool record_read_artifacts(void *reader, void *into);

/* Into a struct record_read that knows its version: record_read_guarantees.c */
bool record_read_guarantees(void *reader, void *into);

/* A list that grows in the arena: room for one more of `size` bytes, zeroed; NULL: too many. */
void *record_grow(struct record_reader *r, void **items, size_t *count, size_t size);

/* One of the words, as its number. */
bool record_read_word(
	struct record_reader *r, const char *const *words, size_t count, unsigned *ret);
