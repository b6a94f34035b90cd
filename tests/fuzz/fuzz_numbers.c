/* Text as a number of each grammar. What is read, printed and read again is the same number. */
#include <inttypes.h>
#include <stdio.h>

#include "base/num.h"
#include "fuzz.h"

typedef int parser(const char *text, uint64_t *ret, struct err *e);
typedef void printer(uint64_t value, char ret[static NUM_TEXT_SIZE]);

static void check(const char *text, parser *parse, printer *print)
{
	uint64_t value = 0, again = 0;
	char printed[NUM_TEXT_SIZE];
	struct err e = { 0 };

	if (parse(text, &value, &e) < 0)
		return;
	print(value, printed);
	if (parse(printed, &again, NULL) < 0 || again != value)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	char printed[NUM_TEXT_SIZE];
	int64_t whole = 0;
	struct err e = { 0 };

	check(text, num_parse_size, num_print_size);
	check(text, num_parse_duration, num_print_duration);
	check(text, num_parse_cpus, num_print_cpus);
	if (num_parse_int(text, INT64_MIN, INT64_MAX, &whole, &e) == 0) {
		snprintf(printed, sizeof(printed), "%" PRId64, whole);
		if (strcmp(printed, text) != 0) /* a whole number has one spelling */
			abort();
	}
	free(text);
	return 0;
}
