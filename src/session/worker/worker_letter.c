/*
 * worker_letter - what coordinator, warden and runners tell each other.
 *
 * A letter is one message; what does not fit into it is in a file in memory that comes along. It is
 * sealed, so that it can be mapped: who sent it cannot take it away while it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "session/worker/worker_inside.h"
#include "wire/wire.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct note {
	uint32_t kind, slot, count;
	int32_t number;
	uint64_t sizes[WORKER_MAX_PARTS];
};

static int letter_write_parts(int fd, const struct worker_part *parts, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = parts[i].size ? file_write_all(fd, parts[i].bytes, parts[i].size) : 0;
	if (r == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		r = -errno;
	return r;
}

int worker_send(int channel, enum worker_kind kind, const struct worker_part *parts, size_t count)
{
	struct note n = { .kind = kind, .count = (uint32_t)count };
	own_fd int fd = count ? memfd_create("bawn-letter", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
	int r;

	if (count && fd < 0)
		return -errno;
	r = count ? letter_write_parts(fd, parts, count) : 0;
	for (size_t i = 0; i < count; i++)
		n.sizes[i] = parts[i].size;
	return r == 0 ? wire_send_message(channel, &n, sizeof(n), fd) : r;
}

int worker_send_note(int channel, enum worker_kind kind, unsigned slot, int number, int fd)
{
	struct note n = { .kind = kind, .slot = slot, .number = number };

	return wire_send_message(channel, &n, sizeof(n), fd);
}

/* --- receiving --- */

static int map_parts(struct worker_letter *l, const struct note *n)
{
	uint64_t size = 0;
	struct stat st;
	char *at;

	for (size_t i = 0; i < n->count; i++) {
		if (n->sizes[i] > SIZE_MAX / (2 * WORKER_MAX_PARTS))
			return -EBADMSG;
		size += n->sizes[i];
	}
	if (l->fd < 0 || fstat(l->fd, &st) < 0 || (uint64_t)st.st_size != size || size == 0 ||
		(fcntl(l->fd, F_GET_SEALS) & SEALS) != SEALS)
		return -EBADMSG;
	at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, l->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	l->map = at;
	l->map_size = size;
	for (size_t i = 0; i < n->count; i++) {
		l->parts[i] = (struct worker_part){ at, n->sizes[i] };
		at += n->sizes[i];
	}
	close(l->fd);
	l->fd = -1;
	return 0;
}

int worker_receive(int channel, struct worker_letter *ret)
{
	struct note n = { 0 };
	struct worker_letter l = { .fd = -1 };
	int r = wire_receive_message(channel, &n, sizeof(n), &l.fd);

	if (r == 0 && (n.kind >= WORKER_KIND_COUNT || n.count > WORKER_MAX_PARTS))
		r = -EBADMSG;
	if (r == 0) {
		l.kind = n.kind;
		l.slot = n.slot;
		l.number = n.number;
		l.count = n.count;
		r = n.count ? map_parts(&l, &n) : 0;
	}
	if (r < 0) {
		worker_letter_done(&l);
		return r;
	}
	*ret = l;
	return 0;
}

void worker_letter_done(struct worker_letter *l)
{
	if (l->map)
		munmap(l->map, l->map_size);
	if (l->fd >= 0)
		close(l->fd);
	*l = (struct worker_letter){ .fd = -1 };
}

const void *worker_struct(const struct worker_letter *l, size_t i, size_t size)
{
	return i < l->count && l->parts[i].size == size ? l->parts[i].bytes : NULL;
}

const char *worker_text(const struct worker_letter *l, size_t i)
{
	const struct worker_part *p = &l->parts[i];

	if (i >= l->count || p->size == 0 ||
		memchr(p->bytes, '\0', p->size) != (const char *)p->bytes + p->size - 1)
		return NULL;
	return p->bytes;
}
