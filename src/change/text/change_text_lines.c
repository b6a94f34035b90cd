#include "change/text/change_text_lines.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

static const char *text_lines_end_of_line(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline + 1 : end;
}

int change_text_cut(struct arena *arena, const struct change_text *t, struct change_text_lines *ret)
{
	const char *bytes = t->size ? t->bytes : "", *end = bytes + t->size;
	uint32_t count = 0;

	if (t->size > CHANGE_TEXT_MAX_SIZE)
		return -EFBIG;
	for (const char *at = bytes; at < end; at = text_lines_end_of_line(at, end))
		count++;
	*ret = (struct change_text_lines){ .bytes = bytes, .count = count };
	ret->starts = arena_array(arena, (size_t)count + 1, sizeof(*ret->starts));
	if (!ret->starts)
		return -ENOMEM;
	count = 0;
	for (const char *at = bytes; at < end; at = text_lines_end_of_line(at, end))
		ret->starts[count++] = (uint32_t)(at - bytes);
	ret->starts[count] = (uint32_t)t->size;
	return 0;
}

bool change_text_is_same_line(const struct change_text_lines *a, uint32_t i,
	const struct change_text_lines *b, uint32_t k)
{
	uint32_t size = change_text_line_size(a, i);

	return size == change_text_line_size(b, k) &&
	       memcmp(a->bytes + a->starts[i], b->bytes + b->starts[k], size) == 0;
}

/* --- numbers for lines --- */

/*
 * Lines are found by a polynomial: their bytes, seven at a time, are its coefficients, and the key
 * is where it is evaluated, modulo a prime. Whatever two lines somebody chose, no more keys give
 * both the same value than they have words; and the key, one of 2^60, is chosen after the texts.
 * So no text can be made whose lines crowd. What comes out does not depend on the key: where
 * values are the same, the lines are compared.
 */
#define PRIME    (((uint64_t)1 << 61) - 1)
#define KEYS     ((uint64_t)1 << 60)
#define WORD     7
#define ONE_WORD (((uint64_t)1 << 56) - 1)

__extension__ typedef unsigned __int128 product;

struct slot {
	uint32_t tag;  /* half of the value: hardly ever is another line looked at */
	uint32_t line; /* its first in `a`, from 1; 0 is a free slot */
};

struct numbering {
	const struct change_text_lines *a;
	struct slot *slots;
	uint64_t slot_count;
	uint64_t keys[2]; /* the second spreads values over the slots */
};

/* h * key + word modulo PRIME, but for a multiple of it: below 2^62 if h is, as a key is small. */
static uint64_t mix(uint64_t h, uint64_t key, uint64_t word)
{
	product p = (product)h * key + word;

	return (uint64_t)(p & PRIME) + (uint64_t)(p >> 61);
}

static uint64_t hash_line(const uint64_t *keys, const char *line, size_t size)
{
	uint64_t h = size, word;

	for (; size > WORD; line += WORD, size -= WORD) {
		memcpy(&word, line, sizeof(word));
		h = mix(h, keys[0], le64toh(word) & ONE_WORD);
	}
	for (word = 0; size > 0; size--)
		word = word << 8 | (unsigned char)*line++;
	h = mix(mix(h, keys[0], word) % PRIME, keys[1], 0);
	return h % PRIME;
}

/* The number in `a`, from 1, of a line equal to line i of `of`; 0 where there is none. */
static uint32_t text_lines_find_line(
	struct numbering *q, const struct change_text_lines *of, uint32_t i, bool adds_it)
{
	uint64_t h = hash_line(q->keys, of->bytes + of->starts[i], change_text_line_size(of, i));
	uint32_t tag = (uint32_t)h;
	uint64_t at = (h >> 29) * q->slot_count >> 32;
	struct slot *slot;

	for (slot = &q->slots[at]; slot->line; slot = &q->slots[at]) {
		if (slot->tag == tag && change_text_is_same_line(q->a, slot->line - 1, of, i))
			return slot->line;
		at = at + 1 < q->slot_count ? at + 1 : 0;
	}
	if (adds_it)
		*slot = (struct slot){ .tag = tag, .line = i + 1 };
	return slot->line;
}

int change_text_number(struct arena *arena, const struct change_text_lines *a,
	struct change_text_span span_a, const struct change_text_lines *b,
	struct change_text_span span_b, uint32_t *ret_a, uint32_t *ret_b)
{
	uint32_t count_a = span_a.to - span_a.from, count_b = span_b.to - span_b.from, next = 0;
	struct numbering q = { .a = a, .slot_count = 2 * (uint64_t)count_a + 1 };
	bool *is_in_b = arena_array(arena, (size_t)count_a + 1, sizeof(*is_in_b));

	q.slots = arena_array(arena, q.slot_count, sizeof(*q.slots));
	if (!q.slots || !is_in_b)
		return -ENOMEM;
	randombytes_buf(q.keys, sizeof(q.keys));
	q.keys[0] %= KEYS;
	q.keys[1] %= KEYS;
	for (uint32_t i = 0; i < count_a; i++)
		ret_a[i] = text_lines_find_line(&q, a, span_a.from + i, true) - 1 - span_a.from;
	for (uint32_t i = 0; i < count_b; i++) {
		uint32_t line = span_b.from + i, found;

		/* Mostly it is the one after the last that was found, and need not be looked up. */
		if (next < count_a && change_text_is_same_line(a, span_a.from + next, b, line)) {
			ret_b[i] = ret_a[next++];
		} else if ((found = text_lines_find_line(&q, b, line, false)) != 0) {
			ret_b[i] = found - 1 - span_a.from;
			next = ret_b[i] + 1;
		} else {
			ret_b[i] = CHANGE_TEXT_ALONE;
			next++;
			continue;
		}
		is_in_b[ret_b[i]] = true;
	}
	for (uint32_t i = 0; i < count_a; i++)
		if (!is_in_b[ret_a[i]])
			ret_a[i] = CHANGE_TEXT_ALONE;
	return 0;
}
