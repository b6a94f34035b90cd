/* Bytes as a git configuration. What is read, written in quotes, is read again as itself. */
#include <stdio.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check_git.h"
#include "fuzz.h"

static void write_quoted(const char *value, struct buf *out)
{
	buf_puts(out, "[core]hooksPath=\"");
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buf_putc(out, '\\');
		if (*value == '\n')
			buf_puts(out, "\\n");
		else
			buf_putc(out, *value);
	}
	buf_putc(out, '"');
}

static void check_again(const char *value)
{
	own(buf) struct buf out = { .max = 4096 };
	struct check_git_values v;
	char again[64] = "";

	write_quoted(value, &out);
	check_git_values_init(&v, out.data, out.len);
	if (check_git_values_next(&v, "core", "hookspath", again, sizeof(again)) &&
		str_eq(value, again))
		return;
	fprintf(stderr, "'%s' became '%s'\n", value, again);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct check_git_values v;
	struct check_git lines;
	char value[64];

	check_git_values_init(&v, text, size);
	while (check_git_values_next(&v, "core", "hookspath", value, sizeof(value)))
		check_again(value);
	check_git_init(&lines, text, size);
	while (check_git_next(&lines))
		;
	free(text);
	return 0;
}
