#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads a file of the system line by line in fixed memory, however large it is. The rest of a line
 * longer than the buffer is dropped.
 */
struct host_lines {
	int fd;
	size_t start, end;
	bool is_cut; /* the line before was longer than the buffer */
	char bytes[8192];
};

/* 0 or -errno; after a failure there are no lines. */
int host_lines_open(struct host_lines *l, const char *path);
void host_lines_done(struct host_lines *l);

/* The next line without its newline, or NULL. Borrowed from `l` until the next call. */
char *host_lines_next(struct host_lines *l);

/*
 * Cuts a field off *text at `separator` and ends it with a NUL; the last one has what is left.
 * NULL when there are no more.
 */
char *host_lines_field(char **text, char separator);
