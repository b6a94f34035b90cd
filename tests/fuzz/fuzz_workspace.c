/* Bytes as a saved workspace, and as the entries of one in a frame that fits: what is taken leads
 * nowhere else. */
#include <errno.h>
#include <limits.h>

#include "base/own.h"
#include "base/sha256.h"
#include "base/str.h"
#include "fuzz.h"
#include "session/folder/session_piece.h"

static void check_parts(struct piece_entry *x)
{
	struct piece_attribute attribute;
	struct piece_extent extent;
	uint64_t reached = 0;

	while (piece_read_attribute(&x->attributes, &attribute))
		if (!str_starts(attribute.name, "user.") || attribute.size > XATTR_SIZE_MAX)
			abort();
	while (piece_read_extent(&x->extents, &extent)) {
		if (extent.offset < reached || extent.offset + extent.size > x->size)
			abort();
		reached = extent.offset + extent.size;
	}
	if (x->attributes.fault || x->extents.fault)
		abort();
}

static void check_all(struct piece *p)
{
	unsigned depth = 0;
	struct piece_entry x;

	do {
		if (!piece_read_entry(p, &x) || depth > 256)
			abort();
		depth += x.kind == PIECE_FOLDER;
		if (x.kind == PIECE_END && depth-- == 0)
			break;
		if (x.kind == PIECE_END)
			continue;
		if (!*x.name || strchr(x.name, '/') || str_eq(x.name, "..") ||
			strlen(x.name) > NAME_MAX)
			abort();
		if (x.kind == PIECE_LINK && (!*x.target || strlen(x.target) >= PATH_MAX))
			abort();
		check_parts(&x);
	} while (true);
	if (p->at != p->end)
		abort();
}

static void check(const void *bytes, size_t n)
{
	struct err e = { 0 };
	struct piece p;

	if (piece_check(bytes, n, &p, &e) == 0)
		check_all(&p);
	else if (!e.text[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = PIECE_HEAD_SIZE + size + PIECE_DIGEST_SIZE;
	own_free uint8_t *framed = calloc(1, n);
	struct sha256 s;

	if (!framed)
		abort();
	check(data, size);
	memcpy(framed, PIECE_MAGIC, PIECE_MAGIC_SIZE);
	framed[PIECE_MAGIC_SIZE] = PIECE_VERSION;
	for (size_t i = 0; i < 8; i++)
		framed[PIECE_MAGIC_SIZE + 4 + i] = (uint8_t)((uint64_t)size >> (8 * i));
	if (size)
		memcpy(framed + PIECE_HEAD_SIZE, data, size);
	sha256_init(&s);
	sha256_add(&s, framed, n - PIECE_DIGEST_SIZE);
	sha256_finish(&s, framed + n - PIECE_DIGEST_SIZE);
	check(framed, n);
	return 0;
}
