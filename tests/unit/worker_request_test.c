/* What a run is asked with, as the store has it: whatever goes in comes out, and nothing else does.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/own.h"
#include "check.h"
#include "worker/worker.h"

static void check_round(char *const *words, size_t count)
{
	own(buf) struct buf text = { .max = STORE_MAX_REQUEST };
	own(worker_arguments) struct worker_arguments got = { 0 };
	struct err e = { 0 };

	CHECK(worker_print_request(words, &text, &e) == 0);
	CHECK(worker_read_request(buf_text(&text), &got, &e) == 0);
	CHECK(got.count == count && got.words && !got.words[count]);
	for (size_t i = 0; i < count && i < got.count; i++)
		CHECK_STR(got.words[i], words[i]);
}

static void test_rounds(void)
{
	char words[][32] = { "--network", "none", "--", "", "a b", "\"\\\n\x1b[2J", "\xff\xfe",
		"é" };
	char *all[9] = { 0 };

	for (size_t i = 0; i < 8; i++)
		all[i] = words[i];
	for (size_t i = 0; i <= 8; i++)
		check_round(all + i, 8 - i);
}

static void test_bad(void)
{
	static const char *const bad[] = { "", "null", "{}", "[]", "{\"arguments\":null}",
		"{\"arguments\":3}", "{\"arguments\":[1]}", "{\"arguments\":[null]}",
		"{\"arguments\":[[]]}", "{\"arguments\":[\"a\\u0000b\"]}", "{\"arguments\":[\"a\"]",
		"{\"arguments\":[\"a\"]} x", "{\"arguments\":[],\"arguments\":[]}",
		"{\"arguments\":\"a\"}" };

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		own(worker_arguments) struct worker_arguments got = { 0 };
		struct err e = { 0 };

		CHECK(worker_read_request(bad[i], &got, &e) < 0);
		CHECK(e.kind == ERR_USE && e.text[0] && !got.words);
	}
}

static void test_too_many(void)
{
	static char word[] = "x";
	own_free char **many = calloc(WORKER_MAX_ARGUMENTS + 2, sizeof(*many));
	own(buf) struct buf text = { .max = STORE_MAX_REQUEST };
	struct err e = { 0 };

	if (!many)
		return;
	for (size_t i = 0; i < WORKER_MAX_ARGUMENTS; i++)
		many[i] = word;
	check_round(many, WORKER_MAX_ARGUMENTS);
	many[WORKER_MAX_ARGUMENTS] = word;
	CHECK(worker_print_request(many, &text, &e) == -E2BIG && e.text[0]);
}

static void test_too_long(void)
{
	own_free char *word = malloc(STORE_MAX_REQUEST + 1);
	char *words[] = { word, NULL };
	own(buf) struct buf text = { .max = STORE_MAX_REQUEST };
	struct err e = { 0 };

	if (!word)
		return;
	memset(word, 'x', STORE_MAX_REQUEST);
	word[STORE_MAX_REQUEST] = '\0';
	CHECK(worker_print_request(words, &text, &e) == -E2BIG && e.text[0]);
}

int main(void)
{
	test_rounds();
	test_bad();
	test_too_many();
	test_too_long();
	return check_report();
}
