#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads a file of the system line by line in fixed memory, however large it is. The rest of a line
 * longer than the buffer is dropped.
 */
struct lines {
	int fd;
	size_t start, end;
	bool is_cut; /* the line before was longer than the buffer */
	char bytes[8192];
};

/*
 * 0 or -errno; after a failure there are no lines. { .fd = … } does as well: the descriptor is
 * owned from then on, and a negative one has no lines.
 */
int lines_open(struct lines *l, const char *path);
void lines_done(struct lines *l);

/* The next line without its newline, or NULL. Borrowed from `l` until the next call. */
char *lines_next(struct lines *l);

/*
 * Cuts a field off *text at `separator` and ends it with a NUL; the last one has what is left.
 * NULL when there are no more.
 */
char *lines_field(char **text, char separator);
