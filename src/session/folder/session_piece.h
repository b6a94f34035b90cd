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
 * A workspace serialised as one piece of bytes: docs/format-workspace.md. Reading is pure. A
 * stranger may have written the bytes: piece_check must accept the whole piece before any entry is
 * used.
 */

#define PIECE_MAGIC       "BAWN-WS\n"
#define PIECE_MAGIC_SIZE  8
#define PIECE_VERSION     1
#define PIECE_HEAD_SIZE   28
#define PIECE_DIGEST_SIZE 32
#define PIECE_BLOCK       4096 /* of content: one that is all zero is a hole */

enum piece_kind {
	PIECE_END = 'e', /* end of a folder, or of the piece */
	PIECE_FOLDER = 'd',
	PIECE_FILE = 'f',
	PIECE_LINK = 'l',
	PIECE_WHITEOUT = 'w', /* of an overlay: a character device 0:0 */
};

/* The entries at the top of a workspace, in the order of their names. */
struct piece_part {
	const char *name;
	enum piece_kind kind;
	bool is_layer; /* an overlay's layer: its folder `work` is not saved */
};

#define PIECE_PART_COUNT 6
#define PIECE_WORK       "work"

extern const struct piece_part piece_parts[PIECE_PART_COUNT];

/* The position of a reader. Texts and bytes are borrowed from the piece. */
struct piece {
	const uint8_t *start, *at, *end;
	uint64_t left_out; /* sockets, pipes and devices that were not saved */
	const char *fault; /* what is wrong, half a sentence; NULL: nothing so far */
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

/* Checks the digest and every entry. Returns 0 and sets *ret to the first entry, or -EBADMSG. */
int piece_check(const void *bytes, size_t n, struct piece *ret, struct err *e);

/* Reads the next entry. False: p->fault says what is wrong. */
bool piece_read_entry(struct piece *p, struct piece_entry *ret);

/* Read the next attribute or extent of an entry. False: there is none, or p->fault is set. */
bool piece_read_attribute(struct piece *p, struct piece_attribute *ret);
bool piece_read_extent(struct piece *p, struct piece_extent *ret);

/* --- writing: session_pack.c --- */

/* Large, because it has room for all attributes of a file. */
struct piece_writer {
	struct buf *out; /* borrowed; empty at first */
	size_t limit;
	uint64_t left_out;
	bool is_full;
	char names[XATTR_LIST_MAX];
	char bytes[XATTR_SIZE_MAX];
};

/* Write what comes before the entries, and behind them. Return 0 or -errno. */
int piece_begin(struct piece_writer *p);
int piece_finish(struct piece_writer *p);

/* Returns 0, -EFBIG if the limit was reached, or -ENOMEM. A failure sticks. */
int piece_how_it_went(const struct piece_writer *p);

void piece_put_number(struct piece_writer *p, uint64_t number, size_t size);
void piece_put_text(struct piece_writer *p, const char *text);

/* Writes the head that all entries begin with. */
void piece_put_head(
	struct piece_writer *p, enum piece_kind kind, const char *name, const struct stat *st);
