#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "change/git/change_git.h"
#include "change/scan/change_marks.h"

/*
 * git writes its index anew only because it has looked at files: the times, sizes and inodes in it
 * change, and nothing that was staged. Here only what was staged counts: mode, object, flags, path.
 *
 * The bytes may be anybody's, so every length is compared with what is left. Objects are named by
 * SHA-1 where nothing else is said: an index of the other kind does not pass for one, because each
 * entry's length is said twice, and is not the same as another then.
 */

#define MAX_NAME    4096
#define STAT_SIZE   40 /* times, device, inode, mode, owner, size: only the mode counts */
#define OBJECT      20
#define OBJECT_256  32 /* where objects are named by SHA-256 */
#define MODE_AT     24
#define HEAD_SIZE   12
#define CHECKSUM    OBJECT
#define EXTENDED    0x4000
#define NAME_FLAGS  0x0fff
#define STAGE_SHIFT 12
#define SHORTCUT    (8 + 4 + CHECKSUM) /* the extension EOIE, which git looks for at the end */

struct index {
	const uint8_t *at, *end; /* of entries and extensions */
	uint32_t version, left;
	size_t object_size;
	/* the entry */
	uint32_t mode;
	const uint8_t *object;
	uint16_t flags, more_flags;
	size_t name_size;
	uint8_t name[MAX_NAME];
};

static uint32_t get_32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint16_t get_16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool open_index(struct index *x, const char *bytes, size_t n, size_t object_size)
{
	const uint8_t *p = (const uint8_t *)bytes;

	if (n < HEAD_SIZE + object_size || n > CHANGE_GIT_MAX_INDEX || memcmp(p, "DIRC", 4) != 0)
		return false;
	x->version = get_32(p + 4);
	x->left = get_32(p + 8);
	x->at = p + HEAD_SIZE;
	x->end = p + n - object_size;
	x->object_size = object_size;
	x->name_size = 0;
	return x->version >= 2 && x->version <= 4;
}

/* How much of the name before is not in this one, as version 4 writes it. */
static bool read_strip(struct index *x, size_t *ret)
{
	size_t value = 0;
	uint8_t byte;

	do {
		if (x->at == x->end || value > MAX_NAME)
			return false;
		byte = *x->at++;
		value = value << 7 | (byte & 0x7f);
		if (byte & 0x80)
			value++;
	} while (byte & 0x80);
	*ret = value;
	return true;
}

/* The name, and what fills the entry up, which began at `start`. */
static bool git_index_read_name(struct index *x, const uint8_t *start)
{
	size_t kept = 0, strip = x->name_size, n, fill;
	const uint8_t *nul;

	if (x->version == 4 && (!read_strip(x, &strip) || strip > x->name_size))
		return false;
	kept = x->name_size - strip;
	nul = memchr(x->at, 0, (size_t)(x->end - x->at));
	if (!nul)
		return false;
	n = (size_t)(nul - x->at);
	if (n > MAX_NAME - kept || kept + n == 0)
		return false;
	memcpy(x->name + kept, x->at, n);
	x->name_size = kept + n;
	x->at = nul + 1;
	if (x->version == 4)
		return true;
	fill = (8 - (size_t)(x->at - start) % 8) % 8;
	if (fill > (size_t)(x->end - x->at))
		return false;
	x->at += fill;
	return true;
}

static bool git_index_read_entry(struct index *x)
{
	const uint8_t *start = x->at;
	size_t fixed = STAT_SIZE + x->object_size + 2, said;

	if ((size_t)(x->end - x->at) < fixed + 2)
		return false;
	x->mode = get_32(start + MODE_AT);
	x->object = start + STAT_SIZE;
	x->flags = get_16(start + STAT_SIZE + x->object_size);
	x->more_flags = 0;
	x->at += fixed;
	if (x->flags & EXTENDED) {
		x->more_flags = get_16(x->at);
		x->at += 2;
	}
	said = x->flags & NAME_FLAGS;
	return git_index_read_name(x, start) &&
	       said == (x->name_size < NAME_FLAGS ? x->name_size : NAME_FLAGS);
}

/* An extension in small letters changes what the entries mean. */
static bool ends_well(struct index *x)
{
	while (x->at < x->end) {
		size_t left = (size_t)(x->end - x->at), n;

		if (left < 8 || x->at[0] < 'A' || x->at[0] > 'Z')
			return false;
		n = get_32(x->at + 4);
		if (n > left - 8)
			return false;
		x->at += 8 + n;
	}
	return true;
}

static bool is_same_entry(const struct index *a, const struct index *b)
{
	const uint16_t ignored = EXTENDED;

	return a->mode == b->mode && memcmp(a->object, b->object, OBJECT) == 0 &&
	       (a->flags & ~ignored) == (b->flags & ~ignored) && a->more_flags == b->more_flags &&
	       a->name_size == b->name_size && memcmp(a->name, b->name, a->name_size) == 0;
}

bool change_git_index_is_same(const char *a, size_t a_size, const char *b, size_t b_size)
{
	struct index x __attribute__((uninitialized));
	struct index y __attribute__((uninitialized));

	if (!open_index(&x, a, a_size, OBJECT) || !open_index(&y, b, b_size, OBJECT) ||
		x.left != y.left)
		return false;
	for (; x.left; x.left--)
		if (!git_index_read_entry(&x) || !git_index_read_entry(&y) ||
			!is_same_entry(&x, &y))
			return false;
	return ends_well(&x) && ends_well(&y);
}

/* --- what it makes git write --- */

static bool is_safe_part(const char *part, size_t n)
{
	static const char head[] = "/HEAD";
	char path[MAX_NAME + sizeof(head)];

	if (n == 0 || (part[0] == '.' && (n == 1 || (n == 2 && part[1] == '.'))))
		return false;
	memcpy(path, part, n);
	memcpy(path + n, head, sizeof(head));
	return !change_is_head(path); /* which knows all that passes for ".git" */
}

static bool is_safe_name(const char *name, size_t n)
{
	for (;;) {
		const char *slash = memchr(name, '/', n);
		size_t part = slash ? (size_t)(slash - name) : n;

		if (!is_safe_part(name, part))
			return false;
		if (!slash)
			return true;
		name = slash + 1;
		n -= part + 1;
	}
}

/* By that extension git finds entries and extensions elsewhere than where they are read here. */
static bool has_shortcut(const struct index *x)
{
	return x->end - x->at >= SHORTCUT && memcmp(x->end - SHORTCUT, "EOIE", 4) == 0;
}

bool change_git_index_is_safe(const char *bytes, size_t n)
{
	struct index x __attribute__((uninitialized));

	if (!open_index(&x, bytes, n, OBJECT) || has_shortcut(&x))
		return false;
	for (; x.left; x.left--)
		if (!git_index_read_entry(&x) || !is_safe_name((const char *)x.name, x.name_size))
			return false;
	return ends_well(&x);
}

/* --- what was staged, in one number --- */

static void git_index_add_entry(const struct index *x, struct sha256 *s)
{
	static const char digits[] = "0123456789abcdef";
	char head[16 + 2 * OBJECT_256 + 8], *at = head;

	at += snprintf(head, sizeof(head), "%06o ", (unsigned)x->mode);
	for (size_t i = 0; i < x->object_size; i++) {
		*at++ = digits[x->object[i] >> 4];
		*at++ = digits[x->object[i] & 15];
	}
	at += snprintf(at, (size_t)(head + sizeof(head) - at), " %u\t",
		(unsigned)x->flags >> STAGE_SHIFT & 3);
	sha256_add(s, head, (size_t)(at - head));
	sha256_add(s, x->name, x->name_size);
	sha256_add(s, "", 1);
}

static bool digest_index(
	const char *bytes, size_t n, size_t object_size, char ret[static SHA256_HEX_SIZE])
{
	struct index x __attribute__((uninitialized));
	uint8_t digest[SHA256_SIZE];
	struct sha256 s;

	if (!open_index(&x, bytes, n, object_size))
		return false;
	sha256_init(&s);
	for (; x.left; x.left--) {
		if (!git_index_read_entry(&x))
			return false;
		git_index_add_entry(&x, &s);
	}
	if (!ends_well(&x))
		return false;
	sha256_finish(&s, digest);
	sha256_print(digest, ret);
	return true;
}

bool change_git_index_digest(const char *bytes, size_t n, char ret[static SHA256_HEX_SIZE])
{
	return digest_index(bytes, n, OBJECT, ret) || digest_index(bytes, n, OBJECT_256, ret);
}
