#include "base/num.h"
#include "base/count.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAD(e, ...) (err_set((e), ERR_SPEC, 0, __VA_ARGS__), -EINVAL)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads the digits at *p and moves past them; false where there are none or too many. */
static bool num_take_digits(const char **p, uint64_t *ret)
{
	const char *s = *p;
	uint64_t n = 0;

	if (!is_digit(*s))
		return false;
	for (; is_digit(*s); s++)
		if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
			__builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return false;
	*p = s;
	*ret = n;
	return true;
}

static const struct {
	const char *unit;
	unsigned shift;
} size_units[] = {
	{ "", 0 },
	{ "K", 10 },
	{ "KB", 10 },
	{ "M", 20 },
	{ "MB", 20 },
	{ "G", 30 },
	{ "GB", 30 },
	{ "T", 40 },
	{ "TB", 40 },
};

/* Others write 2 GB, 2g and 2GiB. */
static int say_size_unit(const char *text, const char *unit, uint64_t n, struct err *e)
{
	const char *word = unit + strspn(unit, " ");
	char letter = (char)toupper((unsigned char)word[0]);

	if (letter && strchr("KMGT", letter) && !word[strspn(word, "KMGTBkmgtbi")])
		return BAD(e, "size '%.40s' %s: write %" PRIu64 "%c", text,
			word > unit ? "has a space" : "has an unknown unit", n, letter);
	return BAD(e, "size '%.40s' has an unknown unit '%.8s': use K, M, G or T", text, unit);
}

int num_parse_size(const char *text, uint64_t *ret, struct err *e)
{
	const char *p = text;
	uint64_t n = 0;

	if (!is_digit(*p))
		return BAD(e, "'%.40s' is not a size: write digits and a unit, such as 512M or 2G",
			text);
	if (!num_take_digits(&p, &n))
		return BAD(e, "size '%.40s' is too large: at most 8388607T", text);
	if (p - text > 1 && text[0] == '0')
		return BAD(e, "size '%.40s' starts with a zero: write it without", text);
	if (*p == '.')
		return BAD(e,
			"size '%.40s' has a fraction: use a smaller unit, such as 1536M for 1.5G",
			text);
	for (size_t i = 0; i < COUNT_OF(size_units); i++) {
		if (strcmp(p, size_units[i].unit) != 0)
			continue;
		if (n > (uint64_t)INT64_MAX >> size_units[i].shift)
			return BAD(e, "size '%.40s' is too large: at most 8388607T", text);
		*ret = n << size_units[i].shift;
		return 0;
	}
	return say_size_unit(text, p, n, e);
}

int num_parse_large_size(const char *text, uint64_t *ret, struct err *e)
{
	static const char *const units[] = { "M", "MB", "G", "GB" };
	const char *unit = text + strspn(text, "0123456789.");
	uint64_t size = 0;
	bool is_large = false;
	int r;

	for (size_t i = 0; i < COUNT_OF(units); i++)
		is_large |= strcmp(unit, units[i]) == 0;
	if (!is_large)
		return BAD(e, "'%.40s' must be in M, MB, G or GB, such as 5G", text);
	r = num_parse_size(text, &size, e);
	if (r == 0 && size == 0)
		return BAD(e, "'%.40s' would let nothing be written", text);
	if (r == 0)
		*ret = size;
	return r;
}

void num_print_size(uint64_t bytes, char ret[static NUM_TEXT_SIZE])
{
	static const char units[] = { 'T', 'G', 'M', 'K' };

	for (unsigned i = 0; i < sizeof(units); i++) {
		unsigned shift = 40 - 10 * i;

		if (bytes && bytes % ((uint64_t)1 << shift) == 0) {
			snprintf(ret, NUM_TEXT_SIZE, "%" PRIu64 "%c", bytes >> shift, units[i]);
			return;
		}
	}
	snprintf(ret, NUM_TEXT_SIZE, "%" PRIu64, bytes);
}

static const struct {
	const char *unit;
	uint64_t ms;
} duration_units[] = {
	{ "d", 86400000 },
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

#define DURATION_UNITS COUNT_OF(duration_units)
#define DURATION_MAX   ((uint64_t)3650 * 86400000)

/* Others write 5 minutes, 30 sec and 1hr. */
static int say_duration_unit(
	const char *text, const char *unit, size_t letters, uint64_t n, struct err *e)
{
	static const char *const words[][2] = { { "mi", "m" }, { "se", "s" }, { "h", "h" },
		{ "da", "d" }, { "ms", "ms" }, { "m", "m" }, { "s", "s" }, { "d", "d" } };
	size_t spaces = strspn(unit, " ");

	for (size_t i = 0; !unit[letters] && i < COUNT_OF(words); i++)
		if (strncmp(unit + spaces, words[i][0], strlen(words[i][0])) == 0)
			return BAD(e, "duration '%.40s' %s: write %" PRIu64 "%s", text,
				spaces ? "has a space" : "has an unknown unit", n, words[i][1]);
	return BAD(e, "duration '%.40s' has an unknown unit '%.*s': use d, h, m, s or ms", text,
		(int)(letters < 8 ? letters : 8), unit);
}

int num_parse_duration(const char *text, uint64_t *ret_ms, struct err *e)
{
	const char *p = text;
	uint64_t total = 0;
	size_t next_unit = 0;

	if (!is_digit(*p))
		return BAD(e,
			"'%.40s' is not a duration: write digits and a unit, such as 30m or 1h30m",
			text);
	while (*p) {
		const char *start = p;
		uint64_t n = 0;
		size_t letters, unit;

		if (!is_digit(*p))
			return BAD(e, "duration '%.40s' needs digits before '%.8s'", text, p);
		if (!num_take_digits(&p, &n))
			return BAD(e, "duration '%.40s' is too long: at most 3650d", text);
		if (p - start > 1 && *start == '0')
			return BAD(
				e, "duration '%.40s' has a number that starts with a zero", text);
		letters = strcspn(p, "0123456789");
		if (letters == 0)
			return BAD(e, "duration '%.40s' needs a unit: write %.20ss or %.20sm", text,
				text, text);
		for (unit = 0; unit < DURATION_UNITS; unit++)
			if (strlen(duration_units[unit].unit) == letters &&
				memcmp(p, duration_units[unit].unit, letters) == 0)
				break;
		if (unit == DURATION_UNITS)
			return say_duration_unit(text, p, letters, n, e);
		if (unit < next_unit)
			return BAD(e,
				"duration '%.40s' must name each unit once, the largest first",
				text);
		if (n > DURATION_MAX / duration_units[unit].ms ||
			(total += n * duration_units[unit].ms) > DURATION_MAX)
			return BAD(e, "duration '%.40s' is too long: at most 3650d", text);
		next_unit = unit + 1;
		p += letters;
	}
	*ret_ms = total;
	return 0;
}

void num_print_duration(uint64_t ms, char ret[static NUM_TEXT_SIZE])
{
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < DURATION_UNITS; i++) {
		uint64_t n = ms / duration_units[i].ms;

		ms %= duration_units[i].ms;
		if (n)
			used += (size_t)snprintf(ret + used, NUM_TEXT_SIZE - used, "%" PRIu64 "%s",
				n, duration_units[i].unit);
	}
	if (!used)
		snprintf(ret, NUM_TEXT_SIZE, "0s");
}

#define CPUS_MAX 1000000

int num_parse_cpus(const char *text, uint64_t *ret_milli, struct err *e)
{
	const char *p = text;
	uint64_t whole = 0, scale = 1000, milli;

	if (!is_digit(*p))
		return BAD(e, "'%.40s' is not a number of processors: write it as 2 or 1.5", text);
	if (!num_take_digits(&p, &whole) || whole > CPUS_MAX)
		return BAD(e, "'%.40s' processors are too many: at most %d", text, CPUS_MAX);
	if (text[0] == '0' && is_digit(text[1]))
		return BAD(e, "number of processors '%.40s' starts with a zero", text);
	milli = whole * 1000;
	if (*p == '.') {
		p++;
		if (!is_digit(*p))
			return BAD(e, "number of processors '%.40s' needs digits after the point",
				text);
		for (; is_digit(*p); p++) {
			scale /= 10;
			if (scale == 0)
				return BAD(e,
					"number of processors '%.40s' has more than three digits "
					"after the point",
					text);
			milli += (uint64_t)(*p - '0') * scale;
		}
	}
	if (*p)
		return BAD(e,
			"number of processors '%.40s' has '%.8s' after it: write it as 2 or 1.5",
			text, p);
	if (milli > CPUS_MAX * 1000)
		return BAD(e, "'%.40s' processors are too many: at most %d", text, CPUS_MAX);
	*ret_milli = milli;
	return 0;
}

void num_print_cpus(uint64_t milli, char ret[static NUM_TEXT_SIZE])
{
	int n = snprintf(
		ret, NUM_TEXT_SIZE, "%" PRIu64 ".%03u", milli / 1000, (unsigned)(milli % 1000));

	while (n > 0 && ret[n - 1] == '0')
		ret[--n] = '\0';
	if (n > 0 && ret[n - 1] == '.')
		ret[n - 1] = '\0';
}

int num_parse_int(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *e)
{
	bool is_negative = text[0] == '-';
	const char *p = text + is_negative;
	uint64_t n = 0, largest = (uint64_t)INT64_MAX + is_negative;
	int64_t value;
	bool fits;

	if (!is_digit(*p))
		return BAD(e, "'%.40s' is not a whole number", text);
	if (p[0] == '0' && (is_digit(p[1]) || is_negative))
		return BAD(e, "whole number '%.40s' starts with a zero", text);
	fits = num_take_digits(&p, &n) && n <= largest;
	if (fits && *p)
		return BAD(e, "'%.40s' is not a whole number", text);
	/* Negated as unsigned, so that the smallest number has a way to itself. */
	value = (int64_t)(is_negative ? -n : n);
	if (!fits || value < min || value > max)
		return BAD(
			e, "%.40s is out of range: from %" PRId64 " to %" PRId64, text, min, max);
	*ret = value;
	return 0;
}

bool num_scan(const char *text, int base, uint64_t *ret, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *end = NULL;

		text += strspn(text, " \t");
		/* strtoull would take a sign, a line's end and 0x. */
		if (!isxdigit((unsigned char)*text))
			return false;
		errno = 0;
		ret[i] = strtoull(text, &end, base);
		if (errno || end == text)
			return false;
		text = end;
	}
	return true;
}
