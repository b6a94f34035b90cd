#include <string.h>

#include "base/count.h"
#include "base/str.h"
#include "gate/gate_inside.h"

/* 198.18.0.0/15 is for tests of networks and leads nowhere; the other prefix is one of our own. */
static const uint8_t v4_prefix[14] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18 };
static const uint8_t v6_prefix[14] = { 0xfd, 0x62, 0x61, 0x77, 0x6e, 0x67 };

#define FIRST 2 /* .0 and .1 stand for no name; .1 is the cage's own */

_Static_assert(GATE_MAX_NAMES + FIRST <= 65536, "two bytes tell the name");

uint32_t gate_hash(const char *text)
{
	uint32_t h = 2166136261U;

	while (*text)
		h = (h ^ (uint8_t)*text++) * 16777619U;
	return h;
}

int gate_book_add(struct gate_book *b, const char *name)
{
	size_t room = COUNT_OF(b->places), at = gate_hash(name) % room;

	/* Half of the places are never taken, so there is always an end. */
	for (; b->places[at]; at = (at + 1) % room)
		if (str_eq(b->names[b->places[at] - 1], name))
			return b->places[at] - 1;
	if (b->count == GATE_MAX_NAMES || strlen(name) >= WIRE_NAME_SIZE)
		return -1;
	memcpy(b->names[b->count], name, strlen(name) + 1);
	b->places[at] = (uint16_t)++b->count;
	return (int)b->count - 1;
}

void gate_book_v4(int index, uint8_t ret[static 4])
{
	memcpy(ret, v4_prefix + 12, 2);
	ret[2] = (uint8_t)((index + FIRST) >> 8);
	ret[3] = (uint8_t)(index + FIRST);
}

void gate_book_v6(int index, uint8_t ret[static 16])
{
	memcpy(ret, v6_prefix, sizeof(v6_prefix));
	ret[14] = (uint8_t)((index + FIRST) >> 8);
	ret[15] = (uint8_t)(index + FIRST);
}

const char *gate_book_find(const struct gate_book *b, const uint8_t address[static 16])
{
	unsigned n = (unsigned)address[14] << 8 | address[15];
	bool is_ours = memcmp(address, v4_prefix, sizeof(v4_prefix)) == 0 ||
		       memcmp(address, v6_prefix, sizeof(v6_prefix)) == 0;

	return is_ours && n >= FIRST && n - FIRST < b->count ? b->names[n - FIRST] : NULL;
}
