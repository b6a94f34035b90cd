#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

bool clock_is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

void clock_pass_mark(const struct timespec *t)
{
	const struct timespec wait = { .tv_nsec = 100000 };
	struct timespec mark;

	for (int tries = 2000; tries > 0; tries--) {
		clock_gettime(CLOCK_REALTIME_COARSE, &mark);
		if (clock_is_later(&mark, t))
			return;
		nanosleep(&wait, NULL);
	}
}

/* The date of a day since 1970, by counting years from March, so that leap days come last. */
static void date_of(unsigned day, unsigned *year, unsigned *month, unsigned *date)
{
	unsigned z = day + 719468, era = z / 146097, of_era = z % 146097;
	unsigned y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	unsigned of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;

	*date = of_year - (153 * m + 2) / 5 + 1;
	*month = m < 10 ? m + 3 : m - 9;
	*year = y + era * 400 + (*month <= 2);
}

void clock_print(const struct timespec *t, char ret[static CLOCK_TEXT_SIZE])
{
	unsigned year, month, date, second = (unsigned)(t->tv_sec % 86400);

	date_of((unsigned)(t->tv_sec / 86400), &year, &month, &date);
	snprintf(ret, CLOCK_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%09uZ", year % 10000, month,
		date, second / 3600, second / 60 % 60, second % 60, (unsigned)t->tv_nsec);
}

/* The day since 1970 of a date; the other way round. */
static unsigned day_of(unsigned year, unsigned month, unsigned date)
{
	unsigned y = year - (month <= 2), era = y / 400, of_era = y % 400;
	unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + date - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Numbers where the form has zeros, and what it has elsewhere. */
static bool clock_read_form(const char *text, unsigned ret[static 6])
{
	static const char form[] = "0000-00-00T00:00:00";
	size_t part = 0;

	for (size_t i = 0; form[i]; i++) {
		if (form[i] == '0' ? !str_is_digit(text[i]) : text[i] != form[i])
			return false;
		if (form[i] == '0')
			ret[part] = ret[part] * 10 + (unsigned)(text[i] - '0');
		else
			part++;
	}
	return true;
}

int clock_parse(const char *text, struct timespec *ret)
{
	unsigned part[6] = { 0 }, day, year, month, date;
	const char *rest = text + strlen("0000-00-00T00:00:00");
	long ns = 0, unit = 100000000;

	if (!clock_read_form(text, part) || part[0] < 1970 || part[1] < 1 || part[1] > 12 ||
		part[2] < 1)
		return -EINVAL;
	day = day_of(part[0], part[1], part[2]);
	date_of(day, &year, &month, &date);
	/* A 30th of February would be another date. */
	if (year != part[0] || month != part[1] || date != part[2] || part[3] > 23 ||
		part[4] > 59 || part[5] > 59)
		return -EINVAL;
	if (*rest == '.' && str_is_digit(rest[1]))
		for (rest++; str_is_digit(*rest); rest++, unit /= 10)
			ns += (*rest - '0') * unit;
	if (rest[0] != 'Z' || rest[1])
		return -EINVAL;
	*ret = (struct timespec){ .tv_sec = (time_t)day * 86400 + (time_t)part[3] * 3600 +
					    (time_t)part[4] * 60 + (time_t)part[5],
		.tv_nsec = ns };
	return 0;
}
