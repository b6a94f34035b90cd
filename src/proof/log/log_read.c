#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "proof/log/log_inside.h"

#define READ_SIZE (4 * LOG_LINE_SIZE)

/* --- one line --- */

static const char head[] = "{\"seq\":", before_prev[] = ",\"prev\":\"", after_prev[] = "\"}";

#define HEAD_SIZE   (sizeof(head) - 1)
#define BEFORE_SIZE (sizeof(before_prev) - 1)
#define HEX_SIZE    ((size_t)SHA256_HEX_SIZE - 1)
#define AFTER_SIZE  (sizeof(after_prev) - 1)

/* Digits as the log writes them, without a zero in front, and the comma: what follows, or NULL. */
static const char *read_seq(const char *text, const char *end, uint64_t *ret)
{
	const char *at = text;
	uint64_t n = 0;

	for (; at < end && str_is_digit(*at); at++)
		if (__builtin_mul_overflow(n, 10, &n) ||
			__builtin_add_overflow(n, (uint64_t)(*at - '0'), &n))
			return NULL;
	if (at == text || at == end || *at != ',' || (text[0] == '0' && at != text + 1))
		return NULL;
	*ret = n;
	return at + 1;
}

bool log_split_line(const char *text, size_t size, uint64_t *ret_seq, const char **ret_prev)
{
	const char *end = text + size, *event, *prev;

	if (size < HEAD_SIZE + BEFORE_SIZE + HEX_SIZE + AFTER_SIZE || size >= LOG_LINE_SIZE ||
		memcmp(text, head, HEAD_SIZE) != 0)
		return false;
	event = read_seq(text + HEAD_SIZE, end, ret_seq);
	prev = end - AFTER_SIZE - HEX_SIZE;
	if (!event || event > prev - BEFORE_SIZE ||
		memcmp(prev - BEFORE_SIZE, before_prev, BEFORE_SIZE) != 0 ||
		memcmp(end - AFTER_SIZE, after_prev, AFTER_SIZE) != 0)
		return false;
	for (size_t i = 0; i < HEX_SIZE; i++)
		if (str_hex_digit(prev[i]) < 0)
			return false;
	*ret_prev = prev;
	return true;
}

/* --- all of them --- */

void log_reader_init(struct log_reader *r, int fd)
{
	*r = (struct log_reader){ .fd = fd };
	memcpy(r->tail.last, log_no_line, sizeof(r->tail.last));
}

void log_reader_done(struct log_reader *r)
{
	free(r->bytes);
	r->bytes = NULL;
}

void log_reader_next_file(struct log_reader *r, int fd)
{
	r->fd = fd;
	r->tail.size = 0;
	r->at = r->len = 0;
	r->is_torn = false;
}

static int read_fail(struct log_reader *r, int num)
{
	return err_sys(&r->failure, num, "cannot read the log");
}

static int fail_line(struct log_reader *r, const char *what)
{
	r->is_broken = true;
	return err_set(&r->failure, ERR_REFUSED, EBADMSG, "line %" PRIu64 " of the log %s",
		r->tail.count, what);
}

/* More bytes behind those that are left: how many, or -errno. */
static ssize_t read_more(struct log_reader *r)
{
	size_t left = r->len - r->at;
	ssize_t n;

	if (!r->bytes)
		r->bytes = malloc(READ_SIZE);
	if (!r->bytes)
		return -ENOMEM;
	memmove(r->bytes, r->bytes + r->at, left);
	r->at = 0;
	r->len = left;
	do
		n = pread(r->fd, r->bytes + left, READ_SIZE - left, (off_t)(r->tail.size + left));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r->len += (size_t)n;
	return n;
}

/* The end of the line that begins at r->at: its newline; NULL with 0 at the end, or an error. */
static char *find_newline(struct log_reader *r, int *ret)
{
	size_t seen = 0;

	for (;;) {
		size_t left = r->len - r->at;
		char *newline =
			left > seen ? memchr(r->bytes + r->at + seen, '\n', left - seen) : NULL;
		ssize_t n;

		if (newline)
			return newline;
		seen = left;
		if (left >= LOG_LINE_SIZE)
			return (*ret = fail_line(r, "is too long to be an event"), NULL);
		n = read_more(r);
		if (n < 0)
			return (*ret = read_fail(r, (int)-n), NULL);
		if (n == 0)
			return (*ret = 0, NULL);
	}
}

/* Does it come after the one before? */
static int read_judge(struct log_reader *r, const char *line, size_t size, uint64_t *ret_seq)
{
	const char *prev;

	if (!log_split_line(line, size, ret_seq, &prev) || *ret_seq == UINT64_MAX)
		return fail_line(r, "is not written as an event is");
	if (r->is_continued && r->tail.count == 0) {
		r->tail.count = *ret_seq;
		return 0;
	}
	if (*ret_seq != r->tail.count)
		return fail_line(r, "has another number: lines were removed or put between");
	if (memcmp(prev, r->tail.last, HEX_SIZE) != 0)
		return fail_line(
			r, "does not have the digest of the one before, which was changed");
	return 0;
}

int log_read_line(struct log_reader *r, struct log_line *ret)
{
	const char *line;
	char *newline;
	size_t size;
	int n = 0;

	if (r->failure.kind != ERR_NONE)
		return -r->failure.num;
	newline = find_newline(r, &n);
	if (!newline && n == 0) {
		/* Read anew if asked again: a piece may be taken back, and another line be there.
		 */
		r->is_torn = r->len > r->at;
		r->at = r->len = 0;
	}
	if (!newline)
		return n;
	line = r->bytes + r->at;
	size = (size_t)(newline - line);
	n = read_judge(r, line, size, &ret->seq);
	if (n < 0)
		return n;
	*newline = '\0';
	ret->text = line;
	ret->size = size;
	sha256_hex(line, size, r->tail.last);
	r->tail.count++;
	r->tail.size += size + 1;
	r->at += size + 1;
	return 1;
}
