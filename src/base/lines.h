#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads a file of /proc or /sys line by line in a fixed buffer. The rest of a line that is longer
 * than the buffer is dropped.
 */
struct lines {
	int fd;
	size_t start, end;
	bool is_cut; /* the rest of the last line is still to be dropped */
	char bytes[8192];
};

/*
 * Opens a file. Returns 0 or -errno; after a failure there are no lines. A struct lines can also be
 * made of a descriptor, { .fd = … }, which it then owns; a negative one has no lines.
 */
int lines_open(struct lines *l, const char *path);
void lines_done(struct lines *l);

/* Returns the next line without its newline, or NULL. Borrowed from `l` until the next call. */
char *lines_next(struct lines *l);

/*
 * Cuts a field off *text at `separator` and terminates it with a NUL; the last field is the rest.
 * Returns NULL when there are no more fields.
 */
char *lines_field(char **text, char separator);
