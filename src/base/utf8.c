#include "base/utf8.h"
#include "base/count.h"

static size_t utf8_width(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if ((lead & 0xf0) == 0xe0)
		return 3;
	if (lead >= 0xf0 && lead <= 0xf4)
		return 4;
	return 0;
}

size_t utf8_decode(const char *text, size_t n, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	static const unsigned lead_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	size_t width = n ? utf8_width((unsigned char)text[0]) : 0;
	uint32_t c;

	if (width == 0 || width > n)
		return 0;
	c = (unsigned char)text[0] & lead_bits[width];
	for (size_t i = 1; i < width; i++) {
		unsigned char next = (unsigned char)text[i];

		if ((next & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (next & 0x3fU);
	}
	if (c < least[width] || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		return 0;
	*ret = c;
	return width;
}

size_t utf8_encode(uint32_t c, char ret[static 4])
{
	size_t width = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	for (size_t i = width; i-- > 1; c >>= 6)
		ret[i] = (char)(0x80 | (c & 0x3f));
	ret[0] = (char)(leads[width] | c);
	return width;
}

bool utf8_is_hidden(uint32_t c)
{
	/* Variation selectors are not among them: they follow many emoji and hide nothing. */
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0x00, 0x1f },
		{ 0x7f, 0x9f },
		{ 0xad, 0xad },
		{ 0x034f, 0x034f },
		{ 0x061c, 0x061c },
		{ 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f },
		{ 0x200b, 0x200f },
		{ 0x2028, 0x202e },
		{ 0x2060, 0x206f },
		{ 0x3164, 0x3164 },
		{ 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb },
		{ 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a },
		{ 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < COUNT_OF(hidden); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return true;
	return false;
}
