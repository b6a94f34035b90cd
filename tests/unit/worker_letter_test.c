/* What the processes of a worker tell each other, and what they do not believe. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "check.h"
#include "session/worker/worker_inside.h"
#include "wire/wire.h"

/* As worker_letter.c has it. */
struct note {
	uint32_t kind, slot, count;
	int32_t number;
	uint64_t sizes[WORKER_MAX_PARTS];
};

static void test_parts(void)
{
	own_free char *large = malloc(3 << 20);
	const struct worker_part parts[] = { { "head", 4 }, { "text", 5 }, { "", 0 },
		{ large, 3 << 20 } };
	struct worker_letter l;
	int ends[2];

	if (!large || wire_pair(ends) < 0)
		return;
	memset(large, 'x', 3 << 20);
	CHECK(worker_send(ends[0], WORKER_DONE, parts, 4) == 0);
	CHECK(worker_receive(ends[1], &l) == 0 && l.kind == WORKER_DONE && l.count == 4);
	CHECK(worker_struct(&l, 0, 4) && !worker_struct(&l, 0, 5) && !worker_struct(&l, 4, 0));
	CHECK(!worker_text(&l, 0) && !worker_text(&l, 2) && !worker_text(&l, 4));
	CHECK_STR(worker_text(&l, 1), "text");
	CHECK(l.parts[2].size == 0 && l.parts[3].size == 3 << 20);
	CHECK(memcmp(l.parts[3].bytes, large, 3 << 20) == 0);
	worker_letter_done(&l);
	CHECK(worker_send(ends[0], WORKER_YES, NULL, 0) == 0);
	CHECK(worker_receive(ends[1], &l) == 0 && l.kind == WORKER_YES && l.count == 0);
	worker_letter_done(&l);
	CHECK(worker_send_note(ends[0], WORKER_STARTED, 7, 3, ends[0]) == 0);
	CHECK(worker_receive(ends[1], &l) == 0 && l.slot == 7 && l.number == 3 && l.fd >= 0);
	worker_letter_done(&l);
	close(ends[0]);
	CHECK(worker_receive(ends[1], &l) == -EPIPE);
	close(ends[1]);
}

/* A note about `size` bytes of memory that has `real` of them, sealed or not. */
static int receive_odd(const struct note *n, size_t real, int seals)
{
	own_fd int memory = memfd_create("odd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct worker_letter l;
	int ends[2], r;

	if (memory < 0 || ftruncate(memory, (off_t)real) < 0 || wire_pair(ends) < 0)
		return 0;
	if (seals)
		fcntl(memory, F_ADD_SEALS, seals);
	(void)wire_send_message(ends[0], n, sizeof(*n), memory);
	r = worker_receive(ends[1], &l);
	if (r == 0)
		worker_letter_done(&l);
	close(ends[0]);
	close(ends[1]);
	return r;
}

static void test_odd(void)
{
	const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct note n = { .kind = WORKER_DONE, .count = 2, .sizes = { 10, 20 } };

	CHECK(receive_odd(&n, 30, all) == 0);
	CHECK(receive_odd(&n, 30, 0) == -EBADMSG);
	CHECK(receive_odd(&n, 30, F_SEAL_WRITE) == -EBADMSG);
	CHECK(receive_odd(&n, 29, all) == -EBADMSG);
	CHECK(receive_odd(&n, 31, all) == -EBADMSG);
	n.sizes[0] = UINT64_MAX - 19;
	CHECK(receive_odd(&n, 0, all) == -EBADMSG);
	n = (struct note){ .kind = WORKER_DONE, .count = 5 };
	CHECK(receive_odd(&n, 0, all) == -EBADMSG);
	n = (struct note){ .kind = WORKER_KIND_COUNT };
	CHECK(receive_odd(&n, 0, all) == -EBADMSG);
}

int main(void)
{
	test_parts();
	test_odd();
	return check_report();
}
