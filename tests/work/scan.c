/*
 * Drives change_scan for tests:
 *
 *	scan LAYER BELOW BASE BEGAN [copy]
 *
 * BASE may be "-"; BEGAN is in nanoseconds. Prints the effects as JSON, read back once on the way;
 * a refusal goes to standard error and is status 1.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "change/change.h"

static int open_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	own(change_effects) struct change_effects x, back;
	own(buf) struct buf out = { .max = (size_t)1 << 30 }, again = out;
	struct change_scan q = { .base = -1 };
	struct err e = { 0 };
	long long began;

	change_effects_init(&x);
	change_effects_init(&back);
	if (argc < 5)
		return 2;
	q.layer = open_folder(argv[1]);
	q.below = open_folder(argv[2]);
	if (strcmp(argv[3], "-") != 0)
		q.base = open_folder(argv[3]);
	began = strtoll(argv[4], NULL, 10);
	q.began = (struct timespec){ began / 1000000000, began % 1000000000 };
	q.is_copy = argc > 5;
	if (change_scan(&q, &x, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	change_effects_print(&x, NULL, NULL, &out);
	if (out.failed || change_effects_read(out.data, out.len, &back, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		return 3;
	}
	change_effects_print(&back, NULL, NULL, &again);
	fputs(buf_text(&again), stdout);
	return strcmp(buf_text(&out), buf_text(&again)) == 0 ? 0 : 4;
}
