#include "base/clock.h"

#include <stdio.h>

uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
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
	snprintf(ret, CLOCK_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ", year % 10000, month,
		date, second / 3600, second / 60 % 60, second % 60, (unsigned)(t->tv_nsec / 1000));
}
