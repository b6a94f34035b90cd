/* Numbers: every text of a table becomes its value, or exactly its sentence. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/count.h"
#include "base/num.h"
#include "check.h"

typedef int parser(const char *text, uint64_t *ret, struct err *e);
typedef void printer(uint64_t value, char ret[static NUM_TEXT_SIZE]);

struct row {
	const char *text;
	uint64_t value;
	const char *error; /* or NULL */
};

static void check_rows(parser *parse, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct err e = { 0 };
		uint64_t got = 4711;
		int r = parse(rows[i].text, &got, &e);

		if (rows[i].error) {
			check_that(r < 0 && got == 4711 && e.kind == ERR_SPEC &&
					   parse(rows[i].text, &got, NULL) < 0,
				rows[i].text, __FILE__, __LINE__);
			CHECK_STR(e.text, rows[i].error);
		} else {
			check_that(
				r == 0 && got == rows[i].value, rows[i].text, __FILE__, __LINE__);
			CHECK_STR(e.text, "");
		}
	}
}

#define CHECK_ROWS(parse, rows) check_rows((parse), (rows), COUNT_OF(rows))

#define KB ((uint64_t)1 << 10)
#define MB ((uint64_t)1 << 20)
#define GB ((uint64_t)1 << 30)
#define TB ((uint64_t)1 << 40)

static void test_size(void)
{
	static const struct row rows[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "4096", 4096 },
		{ "1K", KB },
		{ "1KB", KB },
		{ "512M", 512 * MB },
		{ "512MB", 512 * MB },
		{ "2G", 2 * GB },
		{ "2GB", 2 * GB },
		{ "1T", TB },
		{ "1TB", TB },
		{ "0M", 0 },
		{ "8388607T", 8388607 * TB },
		{ "9223372036854775807", INT64_MAX },
		{ "9007199254740991K", (uint64_t)9007199254740991 * KB },
		{ .text = "",
			.error = "'' is not a size: write digits and a unit, such as 512M or 2G" },
		{ .text = "M",
			.error = "'M' is not a size: write digits and a unit, such as 512M or 2G" },
		{ .text = "-1",
			.error =
				"'-1' is not a size: write digits and a unit, such as 512M or 2G" },
		{ .text = "+1",
			.error =
				"'+1' is not a size: write digits and a unit, such as 512M or 2G" },
		{ .text = " 1",
			.error =
				"' 1' is not a size: write digits and a unit, such as 512M or 2G" },
		{ .text = "1 ", .error = "size '1 ' has an unknown unit ' ': use K, M, G or T" },
		{ .text = "1 G", .error = "size '1 G' has a space: write 1G" },
		{ .text = "1m", .error = "size '1m' has an unknown unit: write 1M" },
		{ .text = "1Gi", .error = "size '1Gi' has an unknown unit: write 1G" },
		{ .text = "2 GB", .error = "size '2 GB' has a space: write 2G" },
		{ .text = "1B", .error = "size '1B' has an unknown unit 'B': use K, M, G or T" },
		{ .text = "1P", .error = "size '1P' has an unknown unit 'P': use K, M, G or T" },
		{ .text = "1G1", .error = "size '1G1' has an unknown unit 'G1': use K, M, G or T" },
		{ .text = "1e3", .error = "size '1e3' has an unknown unit 'e3': use K, M, G or T" },
		{ .text = "1_000",
			.error = "size '1_000' has an unknown unit '_000': use K, M, G or T" },
		{ .text = "0x10",
			.error = "size '0x10' has an unknown unit 'x10': use K, M, G or T" },
		{ .text = "1.5G",
			.error = "size '1.5G' has a fraction: use a smaller unit, such as 1536M "
				 "for 1.5G" },
		{ .text = "007", .error = "size '007' starts with a zero: write it without" },
		{ .text = "00", .error = "size '00' starts with a zero: write it without" },
		{ .text = "01G", .error = "size '01G' starts with a zero: write it without" },
		{ .text = "8388608T", .error = "size '8388608T' is too large: at most 8388607T" },
		{ .text = "9223372036854775808",
			.error = "size '9223372036854775808' is too large: at most 8388607T" },
		{ .text = "18446744073709551615",
			.error = "size '18446744073709551615' is too large: at most 8388607T" },
		{ .text = "18446744073709551616",
			.error = "size '18446744073709551616' is too large: at most 8388607T" },
		{ .text = "18014398509481984K",
			.error = "size '18014398509481984K' is too large: at most 8388607T" },
		{ .text = "1111111111111111111111111111111111111111111111111",
			.error = "size '1111111111111111111111111111111111111111' is too large: at "
				 "most 8388607T" },
	};

	CHECK_ROWS(num_parse_size, rows);
}

static void test_large_size(void)
{
	static const struct row rows[] = {
		{ "1M", MB },
		{ "64MB", 64 * MB },
		{ "5G", 5 * GB },
		{ "5GB", 5 * GB },
		{ .text = "5120K", .error = "'5120K' must be in M, MB, G or GB, such as 5G" },
		{ .text = "5120KB", .error = "'5120KB' must be in M, MB, G or GB, such as 5G" },
		{ .text = "1T", .error = "'1T' must be in M, MB, G or GB, such as 5G" },
		{ .text = "64m", .error = "'64m' must be in M, MB, G or GB, such as 5G" },
		{ .text = "1048576", .error = "'1048576' must be in M, MB, G or GB, such as 5G" },
		{ .text = "", .error = "'' must be in M, MB, G or GB, such as 5G" },
		{ .text = "M",
			.error = "'M' is not a size: write digits and a unit, such as 512M or 2G" },
		{ .text = " 5G", .error = "' 5G' must be in M, MB, G or GB, such as 5G" },
		{ .text = "5GM", .error = "'5GM' must be in M, MB, G or GB, such as 5G" },
		{ .text = "-5G", .error = "'-5G' must be in M, MB, G or GB, such as 5G" },
		{ .text = "05G", .error = "size '05G' starts with a zero: write it without" },
		{ .text = "0M", .error = "'0M' would let nothing be written" },
		{ .text = "1.5G",
			.error =
				"size '1.5G' has a fraction: use a smaller unit, such as 1536M for "
				"1.5G" },
		{ .text = "8589934592G",
			.error = "size '8589934592G' is too large: at most 8388607T" },
	};

	CHECK_ROWS(num_parse_large_size, rows);
}

#define SECOND ((uint64_t)1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

#define NOT_A_DURATION " is not a duration: write digits and a unit, such as 30m or 1h30m"
#define TOO_LONG       " is too long: at most 3650d"
#define ORDER          " must name each unit once, the largest first"

static void test_duration(void)
{
	static const struct row rows[] = {
		{ "0s", 0 },
		{ "1ms", 1 },
		{ "30m", 30 * MINUTE },
		{ "1h30m", HOUR + 30 * MINUTE },
		{ "1d2h3m4s5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5 },
		{ "90m", 90 * MINUTE },
		{ "1h0m", HOUR },
		{ "1m1ms", MINUTE + 1 },
		{ "3650d", 3650 * DAY },
		{ "315360000000ms", 3650 * DAY },
		{ "3649d24h", 3650 * DAY },
		{ .text = "", .error = "''" NOT_A_DURATION },
		{ .text = "m", .error = "'m'" NOT_A_DURATION },
		{ .text = "-1s", .error = "'-1s'" NOT_A_DURATION },
		{ .text = " 1s", .error = "' 1s'" NOT_A_DURATION },
		{ .text = "30", .error = "duration '30' needs a unit: write 30s or 30m" },
		{ .text = "1h30", .error = "duration '1h30' needs a unit: write 1h30s or 1h30m" },
		{ .text = "0", .error = "duration '0' needs a unit: write 0s or 0m" },
		{ .text = "1w",
			.error = "duration '1w' has an unknown unit 'w': use d, h, m, s or ms" },
		{ .text = "1M",
			.error = "duration '1M' has an unknown unit 'M': use d, h, m, s or ms" },
		{ .text = "30 m", .error = "duration '30 m' has a space: write 30m" },
		{ .text = "5 minutes", .error = "duration '5 minutes' has a space: write 5m" },
		{ .text = "10sec", .error = "duration '10sec' has an unknown unit: write 10s" },
		{ .text = "1.5h",
			.error = "duration '1.5h' has an unknown unit '.': use d, h, m, s or ms" },
		{ .text = "1minutesandmore",
			.error = "duration '1minutesandmore' has an unknown unit: write 1m" },
		{ .text = "1weekandsomemore",
			.error =
				"duration '1weekandsomemore' has an unknown unit 'weekands': use d, "
				"h, m, s or ms" },
		{ .text = "22:22",
			.error = "duration '22:22' has an unknown unit ':': use d, h, m, s or ms" },
		{ .text = "30m1h", .error = "duration '30m1h'" ORDER },
		{ .text = "1m1m", .error = "duration '1m1m'" ORDER },
		{ .text = "1ms1s", .error = "duration '1ms1s'" ORDER },
		{ .text = "1s1s", .error = "duration '1s1s'" ORDER },
		{ .text = "01m", .error = "duration '01m' has a number that starts with a zero" },
		{ .text = "1h00m",
			.error = "duration '1h00m' has a number that starts with a zero" },
		{ .text = "3651d", .error = "duration '3651d'" TOO_LONG },
		{ .text = "3650d1ms", .error = "duration '3650d1ms'" TOO_LONG },
		{ .text = "3649d24h1ms", .error = "duration '3649d24h1ms'" TOO_LONG },
		{ .text = "315360000001ms", .error = "duration '315360000001ms'" TOO_LONG },
		{ .text = "18446744073709551615d",
			.error = "duration '18446744073709551615d'" TOO_LONG },
		{ .text = "18446744073709551616d",
			.error = "duration '18446744073709551616d'" TOO_LONG },
		{ .text = "213503982335d", .error = "duration '213503982335d'" TOO_LONG },
	};

	CHECK_ROWS(num_parse_duration, rows);
}

#define NOT_CPUS " is not a number of processors: write it as 2 or 1.5"

static void test_cpus(void)
{
	static const struct row rows[] = {
		{ "0", 0 },
		{ "1", 1000 },
		{ "1.5", 1500 },
		{ "0.25", 250 },
		{ "0.001", 1 },
		{ "2.0", 2000 },
		{ "2.000", 2000 },
		{ "16", 16000 },
		{ "1000000", 1000000000 },
		{ .text = "", .error = "''" NOT_CPUS },
		{ .text = ".5", .error = "'.5'" NOT_CPUS },
		{ .text = "-1", .error = "'-1'" NOT_CPUS },
		{ .text = "two", .error = "'two'" NOT_CPUS },
		{ .text = "1.", .error = "number of processors '1.' needs digits after the point" },
		{ .text = "1.x",
			.error = "number of processors '1.x' needs digits after the point" },
		{ .text = "01", .error = "number of processors '01' starts with a zero" },
		{ .text = "00.5", .error = "number of processors '00.5' starts with a zero" },
		{ .text = "1.2345",
			.error = "number of processors '1.2345' has more than three digits after "
				 "the point" },
		{ .text = "1.0000",
			.error = "number of processors '1.0000' has more than three digits after "
				 "the point" },
		{ .text = "1e3",
			.error = "number of processors '1e3' has 'e3' after it: write it as 2 or "
				 "1.5" },
		{ .text = "1,5",
			.error = "number of processors '1,5' has ',5' after it: write it as 2 or "
				 "1.5" },
		{ .text = "1.5.0",
			.error = "number of processors '1.5.0' has '.0' after it: write it as 2 or "
				 "1.5" },
		{ .text = "50%",
			.error = "number of processors '50%' has '%' after it: write it as 2 or "
				 "1.5" },
		{ .text = "1000001",
			.error = "'1000001' processors are too many: at most 1000000" },
		{ .text = "1000000.001",
			.error = "'1000000.001' processors are too many: at most 1000000" },
		{ .text = "18446744073709551616",
			.error =
				"'18446744073709551616' processors are too many: at most 1000000" },
	};

	CHECK_ROWS(num_parse_cpus, rows);
}

struct int_row {
	const char *text;
	int64_t min, max, value;
	const char *error;
};

static void test_int(void)
{
	static const struct int_row rows[] = {
		{ "0", 0, 10, 0, NULL },
		{ "256", 1, INT32_MAX, 256, NULL },
		{ "-5", -10, 10, -5, NULL },
		{ "10", -10, 10, 10, NULL },
		{ "-10", -10, 10, -10, NULL },
		{ "9223372036854775807", INT64_MIN, INT64_MAX, INT64_MAX, NULL },
		{ "-9223372036854775807", INT64_MIN, INT64_MAX, -INT64_MAX, NULL },
		{ "-9223372036854775808", INT64_MIN, INT64_MAX, INT64_MIN, NULL },
		{ "11", -10, 10, 0, "11 is out of range: from -10 to 10" },
		{ "-11", -10, 10, 0, "-11 is out of range: from -10 to 10" },
		{ "0", 1, 65535, 0, "0 is out of range: from 1 to 65535" },
		{ "65536", 1, 65535, 0, "65536 is out of range: from 1 to 65535" },
		{ "9223372036854775808", 0, INT64_MAX, 0,
			"9223372036854775808 is out of range: from 0 to 9223372036854775807" },
		{ "-9223372036854775809", INT64_MIN, 0, 0,
			"-9223372036854775809 is out of range: from -9223372036854775808 to 0" },
		{ "18446744073709551615", 0, 10, 0,
			"18446744073709551615 is out of range: from 0 to 10" },
		{ "18446744073709551616", 0, 10, 0,
			"18446744073709551616 is out of range: from 0 to 10" },
		{ "", 0, 10, 0, "'' is not a whole number" },
		{ "-", -1, 10, 0, "'-' is not a whole number" },
		{ "--1", -1, 10, 0, "'--1' is not a whole number" },
		{ "+1", 0, 10, 0, "'+1' is not a whole number" },
		{ " 1", 0, 10, 0, "' 1' is not a whole number" },
		{ "1 ", 0, 10, 0, "'1 ' is not a whole number" },
		{ "1.0", 0, 10, 0, "'1.0' is not a whole number" },
		{ "1e1", 0, 10, 0, "'1e1' is not a whole number" },
		{ "0x1", 0, 10, 0, "'0x1' is not a whole number" },
		{ "1_0", 0, 10, 0, "'1_0' is not a whole number" },
		{ "01", 0, 10, 0, "whole number '01' starts with a zero" },
		{ "00", 0, 10, 0, "whole number '00' starts with a zero" },
		{ "-0", -1, 10, 0, "whole number '-0' starts with a zero" },
		{ "-01", -1, 10, 0, "whole number '-01' starts with a zero" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct int_row *row = &rows[i];
		struct err e = { 0 };
		int64_t got = 4711;
		int r = num_parse_int(row->text, row->min, row->max, &got, &e);

		check_that(row->error ? r < 0 && got == 4711 : r == 0 && got == row->value,
			row->text, __FILE__, __LINE__);
		CHECK_STR(e.text, row->error ? row->error : "");
	}
}

static void test_print(void)
{
	static const struct {
		printer *print;
		uint64_t value;
		const char *wanted;
	} rows[] = {
		{ num_print_size, 0, "0" },
		{ num_print_size, 1, "1" },
		{ num_print_size, 1000, "1000" },
		{ num_print_size, KB, "1K" },
		{ num_print_size, KB + 1, "1025" },
		{ num_print_size, 1536 * MB, "1536M" },
		{ num_print_size, 8 * GB, "8G" },
		{ num_print_size, 1024 * TB, "1024T" },
		{ num_print_size, INT64_MAX, "9223372036854775807" },
		{ num_print_size, UINT64_MAX, "18446744073709551615" },
		{ num_print_duration, 0, "0s" },
		{ num_print_duration, 1, "1ms" },
		{ num_print_duration, 999, "999ms" },
		{ num_print_duration, 1001, "1s1ms" },
		{ num_print_duration, 90 * MINUTE, "1h30m" },
		{ num_print_duration, 25 * HOUR, "1d1h" },
		{ num_print_duration, DAY + HOUR + MINUTE + SECOND + 1, "1d1h1m1s1ms" },
		{ num_print_duration, UINT64_MAX, "213503982334d14h25m51s615ms" },
		{ num_print_cpus, 0, "0" },
		{ num_print_cpus, 1, "0.001" },
		{ num_print_cpus, 100, "0.1" },
		{ num_print_cpus, 1500, "1.5" },
		{ num_print_cpus, 10000, "10" },
		{ num_print_cpus, 100050, "100.05" },
		{ num_print_cpus, UINT64_MAX, "18446744073709551.615" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char text[NUM_TEXT_SIZE];

		rows[i].print(rows[i].value, text);
		CHECK_STR(text, rows[i].wanted);
	}
}

/* What is printed is read back as the same value, however odd it is. */
static void check_round_trip(parser *parse, printer *print, uint64_t max)
{
	uint64_t seed = 88172645463325252U, wrong = 0;

	for (int i = 0; i < 200000; i++) {
		uint64_t value, back = 0;
		char text[NUM_TEXT_SIZE];

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		/* All lengths of number alike, and those next to the limit. */
		value = seed >> (i % 64);
		if (i % 64 == 63)
			value = max - (uint64_t)(i / 64) % 3000;
		if (value > max)
			value %= max + 1;
		print(value, text);
		wrong += parse(text, &back, NULL) != 0 || back != value;
	}
	CHECK(wrong == 0);
}

static void test_round_trips(void)
{
	check_round_trip(num_parse_size, num_print_size, INT64_MAX);
	check_round_trip(num_parse_duration, num_print_duration, 3650 * DAY);
	check_round_trip(num_parse_cpus, num_print_cpus, 1000000000);
	for (unsigned shift = 0; shift < 50; shift++) {
		uint64_t back = 0;
		char text[NUM_TEXT_SIZE];

		num_print_size((uint64_t)1 << shift, text);
		CHECK(num_parse_size(text, &back, NULL) == 0 && back == (uint64_t)1 << shift);
		CHECK(strlen(text) <= 4);
	}
}

int main(void)
{
	test_size();
	test_large_size();
	test_duration();
	test_cpus();
	test_int();
	test_print();
	test_round_trips();
	return check_report();
}
