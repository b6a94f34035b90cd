/*
 * text_tool - what src/work makes of files, for tests to hold against what others make of them.
 *
 *     text_tool diff A B
 *     text_tool count A B                  prints ADDED REMOVED
 *     text_tool merge BASE OURS THEIRS     returns 1 where there are conflicts
 *
 * Returns 2 when it failed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "change/change.h"
#include "change/text/change_text.h"

#define MOST_FILES 3

static int fail(const char *what, int r)
{
	fprintf(stderr, "text_tool: %s: %s\n", what, strerror(-r));
	return 2;
}

static int run(const char *what, const struct change_text *t, size_t count, struct buf *out)
{
	uint32_t added = 0, removed = 0;
	size_t conflicts = 0;
	int r = -EINVAL;

	if (strcmp(what, "diff") == 0 && count == 2) {
		r = change_text_diff(&t[0], &t[1], out);
	} else if (strcmp(what, "count") == 0 && count == 2) {
		r = change_text_count(&t[0], &t[1], &added, &removed);
		buf_printf(out, "%u %u\n", added, removed);
	} else if (strcmp(what, "merge") == 0 && count == 3) {
		r = change_text_merge(&t[0], &t[1], &t[2], "ours", "theirs", out, &conflicts);
	}
	if (r == 0 && out->failed)
		r = -ENOMEM;
	return r < 0 ? fail(what, r) : conflicts > 0;
}

int main(int argc, char **argv)
{
	own(buf) struct buf out = { .max = 8 * CHANGE_MAX_TEXT };
	struct change_text texts[MOST_FILES];
	char *files[MOST_FILES] = { 0 };
	size_t count = 0;
	int r = 0;

	for (; r == 0 && count < MOST_FILES && (int)count + 2 < argc; count++) {
		r = file_read_path(
			argv[count + 2], CHANGE_MAX_TEXT, &files[count], &texts[count].size);
		texts[count].bytes = files[count];
	}
	r = r < 0 ? fail("cannot read", r) : run(argc > 1 ? argv[1] : "", texts, count, &out);
	if (r < 2 && fwrite(out.data, 1, out.len, stdout) != out.len)
		r = 2;
	for (size_t i = 0; i < MOST_FILES; i++)
		free(files[i]);
	return r;
}
