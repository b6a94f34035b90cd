#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"

/*
 * What changed texts were before a run, all of them in one file of the folder base/: a file for
 * each would take longer than everything else a scan does. docs/effects.md has the format. Earlier
 * versions wrote files base/INDEX, which are still read.
 */

struct change_base {
	int folder;         /* borrowed; -1: nothing is kept */
	int fd;             /* -1 until there is something to keep */
	uint64_t size;      /* of the contents so far */
	struct buf pending; /* not yet written */
};

/* Which effect a content belongs to. */
struct change_base_row {
	size_t index;
	uint64_t at, size;
};

void change_base_init(struct change_base *b, int folder);
void change_base_done(struct change_base *b);

/* Adds a content; *ret_at is where it is. 0 or -errno. */
int change_base_add(struct change_base *b, const char *bytes, size_t n, uint64_t *ret_at);

/* Adds one row of the table; rows come in the order of their indexes. */
int change_base_name(struct change_base *b, const struct change_base_row *row);

/* Writes what is pending and the number of rows. 0 or -errno. */
int change_base_finish(struct change_base *b, size_t rows);

/*
 * Reads what the file of one effect was, at most `max` bytes: -EFBIG beyond, -ENOENT where none is
 * kept, -EBADMSG where it has not this hash. The caller owns *ret.
 */
int change_base_read(int folder, size_t index, const uint8_t hash[static SHA256_SIZE], size_t max,
	char **ret, size_t *ret_size);
