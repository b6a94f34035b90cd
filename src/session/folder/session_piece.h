#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * A workspace as one piece of bytes: docs/format-workspace.md. Reading is pure. The bytes may be
 * anybody's, and nothing of them counts before piece_check has found the whole piece to be one.
 */

#define PIECE_MAGIC       "BAWN-WS\n"
#define PIECE_MAGIC_SIZE  8
#define PIECE_VERSION     1
#define PIECE_HEAD_SIZE   28
#define PIECE_DIGEST_SIZE 32
#define PIECE_BLOCK       4096 /* of content: one that is all zero is a hole */

enum piece_kind {
	PIECE_END = 'e', /* of a folder, or of the whole */
	PIECE_FOLDER = 'd',
	PIECE_FILE = 'f',
	PIECE_LINK = 'l',
	PIECE_WHITEOUT = 'w', /* of an overlay: a character device 0:0 */
};

/* What a workspace has at its top, in the order of their names. */
struct piece_part {
	const char *name;
	enum piece_kind kind;
	bool is_layer; /* it may have a `work` that is not kept */
};

#define PIECE_PART_COUNT 6
#define PIECE_WORK       "work"

extern const struct piece_part piece_parts[PIECE_PART_COUNT];

/* Where reading is. Texts and bytes that are read are borrowed from the piece. */
struct piece {
	const uint8_t *start, *at, *end;
	uint64_t left_out; /* sockets, pipes and devices that are not in it */
	const char *fault; /* half a sentence; NULL: all is well so far */
};

struct piece_entry {
	enum piece_kind kind;
	const char *name;
	mode_t mode; /* of files and folders */
	struct timespec mtime;
	const char *target; /* of a link */
	uint64_t size;      /* of a file */
	struct piece attributes, extents;
};

struct piece_attribute {
	const char *name;
	const void *value;
	size_t size;
};

struct piece_extent {
	uint64_t offset;
	const void *bytes;
	size_t size;
};

/* Is it a whole piece, and every entry of it as it should be? Then *ret is at the first. */
int piece_check(const void *bytes, size_t n, struct piece *ret, struct err *e);

/* The next entry; false: something is wrong, and p->fault says what. */
bool piece_read_entry(struct piece *p, struct piece_entry *ret);

/* The next of an entry's; false where there is none, or something is wrong. */
bool piece_read_attribute(struct piece *p, struct piece_attribute *ret);
bool piece_read_extent(struct piece *p, struct piece_extent *ret);

/* --- writing: session_pack.c --- */

/* Large: it has room for all attributes of a file, and for content. */
struct piece_writer {
	struct buf *out; /* borrowed; empty at first */
	size_t limit;
	uint64_t left_out;
	bool is_full;
	char names[XATTR_LIST_MAX];
	char bytes[XATTR_SIZE_MAX];
};

/* What is put before the entries, and behind them. 0 or -errno. */
int piece_begin(struct piece_writer *p);
int piece_finish(struct piece_writer *p);

/* -EFBIG: there is more than can be saved; -ENOMEM; or 0. What is put after a failure is not. */
int piece_how_it_went(const struct piece_writer *p);

void piece_put_number(struct piece_writer *p, uint64_t number, size_t size);
void piece_put_text(struct piece_writer *p, const char *text);

/* What all entries begin with. */
void piece_put_head(
	struct piece_writer *p, enum piece_kind kind, const char *name, const struct stat *st);
