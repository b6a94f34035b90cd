/*
 * A log of anybody's bytes; and one that is a chain, in which the first two bytes say what is
 * changed.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"
#include "fuzz.h"
#include "proof/log/log.h"

static int make_file(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

/* Reads to the end, or to where it is wrong. */
static void read_log(int fd, struct log_reader *r)
{
	struct log_line line;

	log_reader_init(r, fd);
	while (log_read_line(r, &line) > 0)
		if (line.seq + 1 != r->tail.count || memchr(line.text, '\n', line.size))
			abort();
}

static void read_any(const uint8_t *data, size_t size)
{
	own_fd int fd = make_file();
	own(log_reader) struct log_reader r;

	if (pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	read_log(fd, &r);
	if (r.tail.size > size || (!r.is_broken && !r.is_torn && r.tail.size != size))
		abort();
}

/* Writes the lines of `text` as events, and returns the tail. */
static struct log_tail write_chain(int fd, char *text)
{
	struct log_tail tail;
	struct log l;

	log_init(&l, -1, "run", NULL);
	l.chain = dup(fd);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		json_text(log_begin(&l, "fuzz"), "text", line);
		log_end(&l);
	}
	if (log_write(&l) < 0)
		abort();
	tail = l.tail;
	log_done(&l);
	return tail;
}

static bool is_at(const struct log_reader *r, const struct log_tail *tail)
{
	return !r->is_broken && !r->is_torn && r->tail.count == tail->count &&
	       r->tail.size == tail->size && strcmp(r->tail.last, tail->last) == 0;
}

static void change_one(const uint8_t *data, size_t size)
{
	own_free char *text = fuzz_text(data + 2, size - 2);
	own_fd int fd = make_file();
	struct log_tail tail = write_chain(fd, text);
	own(log_reader) struct log_reader whole, changed;
	off_t at;
	uint8_t byte;

	read_log(fd, &whole);
	if (!is_at(&whole, &tail))
		abort();
	log_reader_init(&changed, fd);
	if (!tail.size)
		return;
	at = (off_t)((data[0] * (uint64_t)251 + data[1]) % tail.size);
	if (pread(fd, &byte, 1, at) != 1)
		abort();
	byte ^= (uint8_t)(1 << (data[1] % 8));
	if (pwrite(fd, &byte, 1, at) != 1)
		abort();
	read_log(fd, &changed);
	if (is_at(&changed, &tail))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_any(data, size);
	if (size > 2)
		change_one(data, size);
	return 0;
}
