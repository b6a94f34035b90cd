/* Memory in all its disguises. Each takes so many MB, holds them, and says whether it got them. */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#define MB     ((size_t)1024 * 1024)
#define MB_MAX 300 /* of a machine that may be small */

static size_t size_of(const char *mb)
{
	size_t n = strtoul(mb, NULL, 10);

	return (n < MB_MAX ? n : MB_MAX) * MB;
}

static int had(size_t got, size_t wanted, const char *what)
{
	int error = errno;

	return got >= wanted ? worked("%zu MB of %s", got / MB, what)
			     : refused("%zu MB of %s: %s", got / MB, what, error_name(error));
}

static char *map(size_t size, int more)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
}

static size_t touch(char *memory, size_t size)
{
	size_t at = 0;

	while (memory != MAP_FAILED && at < size) {
		memory[at] = 1;
		at += 4096;
	}
	return at;
}

static int attack_heap(char **args)
{
	size_t size = size_of(args[0]);

	return had(touch(map(size, 0), size), size, "memory");
}

/* Each is small, and nobody has more than its share. */
static int attack_heaps(char **args)
{
	size_t size = size_of(args[0]), part = size / 10, got = 0;
	int ends[2];
	char byte;

	if (pipe(ends) < 0)
		return untried("pipe: %s", error_name(errno));
	for (size_t i = 0; i < 10; i++) {
		if (fork() == 0) {
			touch(map(part, 0), part);
			if (write(ends[1], "", 1) == 1)
				usleep(300000);
			_exit(0);
		}
	}
	close(ends[1]);
	while (read(ends[0], &byte, 1) == 1)
		got += part;
	return had(got, part * 10, "memory in ten processes");
}

static size_t write_all(int fd, size_t size)
{
	static char block[65536];
	size_t at = 0;
	ssize_t n;

	memset(block, 'x', sizeof(block));
	while (at < size && (n = write(fd, block, sizeof(block))) > 0)
		at += (size_t)n;
	return at;
}

static int attack_memory_file(char **args)
{
	size_t size = size_of(args[0]);
	int fd = memfd_create("escape", 0);

	return had(fd < 0 ? 0 : write_all(fd, size), size, "a file without a name");
}

static int attack_fill(char **args)
{
	size_t size = size_of(args[1]);
	int fd = open(args[0], O_WRONLY | O_CREAT | O_TRUNC, 0600);

	return had(fd < 0 ? 0 : write_all(fd, size), size, args[0]);
}

static int attack_read_all(char **args)
{
	static char block[65536];
	int fd = open(args[0], O_RDONLY);
	size_t size = 0;
	ssize_t n;

	while (fd >= 0 && (n = read(fd, block, sizeof(block))) > 0)
		size += (size_t)n;
	return had(size, 1, "reading");
}

static int attack_segment(char **args)
{
	size_t size = size_of(args[0]);
	int id = shmget(IPC_PRIVATE, size, 0600);
	char *memory = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL); /* it goes with us */
	return had(touch(memory, size), size, "System V memory");
}

static int attack_lock(char **args)
{
	size_t size = size_of(args[0]);
	char *memory = map(size, 0);

	if (memory == MAP_FAILED)
		return untried("mmap: %s", error_name(errno));
	if (mlock(memory, size) == 0 || mlock2(memory, size, MLOCK_ONFAULT) == 0)
		return worked("mlock of %zu MB", size / MB);
	if (mlockall(MCL_CURRENT) == 0)
		return worked("mlockall of %zu MB", size / MB);
	return outcome(map(size, MAP_LOCKED) != MAP_FAILED, "lock memory");
}

/* --- of the kernel --- */

static int attack_pipes(char **args)
{
	size_t size = size_of(args[0]), got = 0;
	int ends[2];

	while (got < size && pipe2(ends, O_NONBLOCK) == 0) {
		fcntl(ends[1], F_SETPIPE_SZ, (int)MB);
		got += write_all(ends[1], MB);
	}
	return had(got, size, "pipes");
}

static int attack_sockets(char **args)
{
	size_t size = size_of(args[0]), got = 0;
	int ends[2];

	while (got < size && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0) {
		got += write_all(ends[0], MB);
		got += write_all(ends[1], MB);
	}
	return had(got, size, "sockets");
}

/* Each watch of an event is more than 100 bytes of the kernel's. */
static int attack_watches(char **args)
{
	size_t size = size_of(args[0]), got = 0;
	int events[800], count = 0, watcher;

	while (count < (int)ELEMENTS(events) && (events[count] = eventfd(0, 0)) >= 0)
		count++;
	while (got < size && (watcher = epoll_create1(0)) >= 0) {
		for (int i = 0; i < count; i++) {
			struct epoll_event event = { .events = EPOLLIN };

			if (epoll_ctl(watcher, EPOLL_CTL_ADD, events[i], &event) == 0)
				got += 100;
		}
	}
	return had(got, size, "watched events");
}

const struct attack attacks_memory[] = {
	{ "heap", "MB", attack_heap, "has memory" },
	{ "heaps", "MB", attack_heaps, "has memory in ten processes" },
	{ "memory-file", "MB", attack_memory_file, "has memory in a memfd" },
	{ "fill", "FILE MB", attack_fill, "writes a large file" },
	{ "read-all", "FILE", attack_read_all, "reads a file" },
	{ "segment", "MB", attack_segment, "has System V shared memory" },
	{ "lock", "MB", attack_lock, "locks memory" },
	{ "pipes", "MB", attack_pipes, "fills pipes" },
	{ "sockets", "MB", attack_sockets, "fills sockets" },
	{ "watches", "MB", attack_watches, "watches events" },
	{ 0 },
};
