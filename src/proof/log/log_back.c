/*
 * log_back - reads the log of all runs from its end, for whoever wants the newest of many.
 *
 * Runs as:  the operator.
 * Reads:    events.jsonl of the state, then the files it was renamed to, the newest first.
 * Must not: vouch for a line: neither digests nor numbers are compared. What is found here leads to
 *           a run, and what is said of that run is read there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "proof/log/log.h"

#define BLOCK (2 * LOG_LINE_SIZE) /* has a newline, as lines are shorter */

/*
 * Shows the lines in n bytes that end with a newline, the last one first, but for the first one,
 * which may begin before them unless `is_first`. *ret_rest is how many bytes were not shown.
 */
static int see_lines(const char *bytes, size_t n, bool is_first,
	int (*see)(void *of, const char *line, size_t n), void *of, size_t *ret_rest)
{
	while (n) {
		const char *before = n > 1 ? memrchr(bytes, '\n', n - 1) : NULL;
		const char *line = before ? before + 1 : bytes;
		int r;

		if (!before && !is_first)
			break;
		r = see(of, line, (size_t)(bytes + n - 1 - line));
		if (r)
			return r;
		n = (size_t)(line - bytes);
	}
	*ret_rest = n;
	return 0;
}

static int read_file_back(int fd, int (*see)(void *of, const char *line, size_t n), void *of)
{
	char bytes[BLOCK] __attribute__((uninitialized));
	struct stat st;
	off_t end;

	if (fstat(fd, &st) < 0)
		return -errno;
	for (end = S_ISREG(st.st_mode) ? st.st_size : 0; end > 0;) {
		off_t start = end > (off_t)BLOCK ? end - (off_t)BLOCK : 0;
		ssize_t n = pread(fd, bytes, (size_t)(end - start), start);
		const char *last = n > 0 ? memrchr(bytes, '\n', (size_t)n) : NULL;
		size_t rest = 0;
		int r;

		if (n < 0)
			return -errno;
		/* A piece behind the last newline is no line; a block without any is none either.
		 */
		r = last ? see_lines(bytes, (size_t)(last - bytes) + 1, start == 0, see, of, &rest)
			 : 0;
		if (r)
			return r;
		/* A line that is as long as a block is not ours. */
		end = start + (off_t)(rest < (size_t)n ? rest : 0);
		if (start == 0)
			break;
	}
	return 0;
}

int log_read_back(int folder, int (*see)(void *of, const char *line, size_t n), void *of)
{
	own_fd int fd = file_open_name(folder, LOG_STATE_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free struct log_former *former = NULL;
	size_t count = 0;
	int r = fd == -ENOENT ? 0 : fd < 0 ? fd : read_file_back(fd, see, of);

	if (r == 0)
		r = log_list_former(folder, &former, &count);
	while (r == 0 && count--) {
		own_fd int next = file_open_name(
			folder, former[count].name, O_RDONLY | O_NONBLOCK | O_NOCTTY);

		r = next < 0 ? next : read_file_back(next, see, of);
	}
	return r;
}
