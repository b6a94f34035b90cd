/*
 * A line of a log that anybody may have written. What is passed on of it is JSON, on one line, with
 * nothing in it that a terminal obeys.
 */
#include <stdio.h>

#include "base/json_read.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "proof/log/log_event.h"

static void check(const struct buf *out, bool is_strict)
{
	struct json_reader r;
	bool is_good = out->len && buf_text(out)[out->len - 1] == '\n' && !out->failed;
	size_t width;

	for (size_t i = 0; i + 1 < out->len && is_good; i += width) {
		uint32_t c = 0;

		width = utf8_decode(buf_text(out) + i, out->len - i, &c);
		is_good = width && !utf8_is_hidden(c);
	}
	/* Strict means that no byte is left which is none of UTF-8. */
	json_read_init(&r, buf_text(out), out->len, 64 * LOG_LINE_SIZE);
	r.takes_bytes = !is_strict;
	json_skip(&r);
	is_good = json_read_end(&r) && is_good;
	json_reader_done(&r);
	if (is_good)
		return;
	fprintf(stderr, "it became: %s\n", buf_text(out));
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct log_origin from = { "a host", "1", "log" };
	static struct log_event x;
	char *line = fuzz_text(data, size < LOG_LINE_SIZE ? size : LOG_LINE_SIZE - 1);
	struct buf out[4];
	uint8_t row[SHA256_SIZE];

	for (size_t i = 0; i < 4; i++)
		buf_init(&out[i], 64 * LOG_LINE_SIZE);
	if (log_event_read(&x, line, strlen(line), NULL) == 0) {
		log_event_row(&x, row);
		log_print_sentence(&x, &out[0]);
		log_add_harmless(&out[1], line, strlen(line), false);
		buf_putc(&out[1], '\n');
		check(&out[1], false);
		log_print_cloudevent(&x, &from, &out[2]);
		check(&out[2], true);
		log_print_ocsf(&x, &from, &out[3]);
		check(&out[3], true);
	}
	for (size_t i = 0; i < 4; i++)
		buf_done(&out[i]);
	free(line);
	return 0;
}
