#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Texts against each other, line by line. Pure: bytes in, bytes out. The bytes are a stranger's: no
 * content makes it slow (what differs too much is told as one replaced block) or large.
 *
 * What returns an int returns 0, -EFBIG for a text of 1 GiB or more, or -ENOMEM.
 */
struct change_text {
	const char *bytes;
	size_t size;
};

/* Would git show it as text? No NUL in its first 8000 bytes. */
bool change_is_text(const struct change_text *t);

/* How many lines came and went. */
int change_text_count(const struct change_text *a, const struct change_text *b, uint32_t *ret_added,
	uint32_t *ret_removed);

/*
 * The hunks of a unified diff with three lines around, as git and patch take them, "\ No newline at
 * end of file" included; nothing where the texts are equal. `out->failed` where it does not fit.
 */
int change_text_diff(const struct change_text *a, const struct change_text *b, struct buf *out);

/*
 * Three ways: what both sides made of `base`. Adds the merged text to `out`, with conflict markers
 * that name the sides where both changed the same lines, or neighbouring ones, and not to the same;
 * *ret_conflicts says how many.
 */
int change_text_merge(const struct change_text *base, const struct change_text *ours,
	const struct change_text *theirs, const char *our_name, const char *their_name,
	struct buf *out, size_t *ret_conflicts);
