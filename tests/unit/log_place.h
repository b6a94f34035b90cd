#pragma once

/* A folder made for a test of the log, and what such tests do in it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/own.h"
#include "base/tree.h"
#include "check.h"
#include "proof/log/log.h"

struct log_place {
	char path[64];
	int fd;
};

static inline void log_place_make(struct log_place *p)
{
	snprintf(p->path, sizeof(p->path), "/tmp/bawn-log-XXXXXX");
	CHECK(mkdtemp(p->path) != NULL);
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(p->fd >= 0);
}

static inline void log_place_remove(struct log_place *p)
{
	own_fd int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };

	close(p->fd);
	CHECK(tree_remove(tmp, p->path + 5, &e) == 0);
}

/* Says `count` events that are numbered. */
static inline void log_place_say(struct log *l, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		json_int(log_begin(l, "test"), "i", i);
		log_end(l);
	}
}

/* Says and writes `count` events to the run's chain in the folder. */
static inline void log_place_write(const struct log_place *p, unsigned count)
{
	struct err e = { 0 };
	struct log l;

	log_init(&l, -1, "r", NULL);
	CHECK(log_open_chain(&l, p->fd, &e) == 0);
	log_place_say(&l, count);
	CHECK(log_write(&l) == 0);
	log_done(&l);
}

/* Reads a file to its end: how many lines, or -errno; *ret (may be NULL) is where it ended. */
static inline int log_place_read(int folder, const char *name, struct log_reader *ret)
{
	own_fd int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	own(log_reader) struct log_reader r;
	struct log_line line;
	int n, count = 0;

	log_reader_init(&r, fd);
	while ((n = log_read_line(&r, &line)) > 0)
		CHECK(line.seq == (uint64_t)count++);
	if (ret) {
		*ret = r;
		ret->bytes = NULL;
	}
	return n < 0 ? n : count;
}
