/*
 * Requests of anybody: one is refused with a sentence or read, what was read comes out as it went
 * in, and a spec that is made of it has settings or errors.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "fuzz.h"
#include "run/run_request.h"

static void demand(bool is_so, const char *what)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	abort();
}

static void check_spec(const struct run_request *q)
{
	struct spec s;

	spec_init(&s);
	for (size_t i = 0; i < q->setting_count; i++)
		if (q->settings[i].key != SPEC_KEY_COUNT)
			spec_add_option(
				&s, q->settings[i].key, q->settings[i].from, q->settings[i].value);
	if (q->command_count)
		spec_add_option_list(&s, SPEC_COMMAND, "the command", q->command, q->command_count);
	(void)spec_settle(&s);
	spec_done(&s);
}

static void check_read(const struct run_request *q)
{
	own(buf) struct buf once = { .max = RUN_REQUEST_SIZE + 1 };
	own(buf) struct buf twice = { .max = RUN_REQUEST_SIZE + 1 };
	own(run_request) struct run_request again = { 0 };
	struct err e = { 0 };

	demand(!run_request_find_local(q), "nothing that is local can be read");
	check_spec(q);
	/* Escapes may make it longer than it was. */
	if (run_request_print(q, &once, &e) < 0)
		return;
	demand(run_request_read(once.data, once.len, &again, &e) == 0, "what is written is read");
	demand(run_request_print(&again, &twice, &e) == 0 && once.len == twice.len &&
			memcmp(once.data, twice.data, once.len) == 0,
		"it is the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own(run_request) struct run_request q = { 0 };
	struct err e = { 0 };
	char *text = fuzz_text(data, size);

	if (run_request_read(text, size, &q, &e) == 0)
		check_read(&q);
	else
		demand(e.kind != ERR_NONE && strncmp(e.text, "cannot read the request: ", 25) == 0,
			"what is refused is refused with a sentence");
	free(text);
	return 0;
}
