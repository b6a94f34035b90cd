#include "base/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

int lines_open(struct lines *l, const char *path)
{
	l->fd = file_open(path, O_RDONLY | O_NOCTTY);
	l->start = l->end = 0;
	l->is_cut = false;
	return l->fd < 0 ? l->fd : 0;
}

void lines_done(struct lines *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

/* Moves what is left to the front and reads behind it; false at the end of the file. */
static bool lines_fill(struct lines *l)
{
	ssize_t n;

	if (l->fd < 0)
		return false;
	memmove(l->bytes, l->bytes + l->start, l->end - l->start);
	l->end -= l->start;
	l->start = 0;
	do
		n = read(l->fd, l->bytes + l->end, sizeof(l->bytes) - 1 - l->end);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	l->end += (size_t)n;
	return true;
}

/* One piece: up to a newline, the end of the file, or as much as fits. */
static char *lines_piece(struct lines *l, bool *ret_is_cut)
{
	for (;;) {
		char *line = l->bytes + l->start;
		char *newline = memchr(line, '\n', l->end - l->start);
		bool is_full = l->start == 0 && l->end == sizeof(l->bytes) - 1;

		*ret_is_cut = false;
		if (newline) {
			*newline = '\0';
			l->start = (size_t)(newline + 1 - l->bytes);
			return line;
		}
		if (!is_full && lines_fill(l))
			continue;
		if (l->end == l->start)
			return NULL;
		*ret_is_cut = is_full;
		line = l->bytes + l->start;
		l->bytes[l->end] = '\0';
		l->start = l->end;
		return line;
	}
}

char *lines_next(struct lines *l)
{
	char *line;
	bool was_cut;

	do {
		was_cut = l->is_cut;
		line = lines_piece(l, &l->is_cut);
	} while (line && was_cut);
	return line;
}

char *lines_field(char **text, char separator)
{
	char *field = *text, *end;

	if (!field)
		return NULL;
	end = strchr(field, separator);
	if (end)
		*end++ = '\0';
	*text = end;
	return field;
}
