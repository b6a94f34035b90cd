/*
 * stream - both ends of a connection that is to be measured, and as little work as possible at
 * each.
 *
 *   stream serve PORT                       on the host's loopback, until it is ended
 *   stream send|receive HOST PORT BYTES     prints the seconds it took
 *   stream ping HOST PORT COUNT             prints the median of connect and a byte there and back,
 * in µs stream hold HOST PORT COUNT             holds so many connections open until its input ends
 *
 * What is sent are the pages of one file in memory, again and again, and what is received is
 * discarded in the kernel: neither end copies anything, so what lies between them is measured.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

#define PIECE     ((size_t)1 << 20)
#define MAX_COUNT 100000

/* The first byte of a connection says what it is for. */
enum {
	FOR_ECHO = 'e',
	FOR_SINK = 's',
	FOR_SOURCE = 'g'
};

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "stream: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void write_all(int fd, const void *bytes, size_t n)
{
	if (send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		fail("send");
}

static void read_all(int fd, void *ret, size_t n)
{
	if (recv(fd, ret, n, MSG_WAITALL) != (ssize_t)n)
		fail("receive");
}

/* --- both ends --- */

static void pour(int fd, uint64_t bytes)
{
	static int pages = -1;

	if (pages < 0) {
		pages = memfd_create("stream", MFD_CLOEXEC);
		if (pages < 0 || posix_fallocate(pages, 0, PIECE) != 0)
			fail("memory");
	}
	while (bytes) {
		off_t at = 0;
		ssize_t n = sendfile(fd, pages, &at, bytes < PIECE ? bytes : PIECE);

		if (n <= 0)
			fail("sendfile");
		bytes -= (uint64_t)n;
	}
	shutdown(fd, SHUT_WR);
}

static uint64_t drain(int fd)
{
	uint64_t bytes = 0;
	ssize_t n;

	while ((n = recv(fd, NULL, PIECE, MSG_TRUNC)) > 0)
		bytes += (uint64_t)n;
	if (n < 0)
		fail("receive");
	return bytes;
}

/* Neither end waits to fill a packet, or paces what it sends, as with bbr it would. */
static void hurry(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

/* --- the server --- */

static void serve_one(int fd)
{
	uint64_t bytes = 0;
	char what = 0;

	if (recv(fd, &what, 1, 0) != 1) {
		close(fd);
		return;
	}
	switch (what) {
	case FOR_ECHO:
		write_all(fd, &what, 1);
		return;
	case FOR_SINK:
		bytes = drain(fd);
		write_all(fd, &bytes, sizeof(bytes));
		break;
	case FOR_SOURCE:
		read_all(fd, &bytes, sizeof(bytes));
		pour(fd, bytes);
		break;
	default:
		break;
	}
	close(fd);
}

static int serve(unsigned long port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0), on = 1;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 1024) < 0 ||
		epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0)
		fail("listen");
	puts("ready");
	fflush(stdout);
	for (;;) {
		if (epoll_wait(epoll, &event, 1, -1) != 1)
			fail("wait");
		if (event.data.fd != listener) {
			serve_one(event.data.fd);
			continue;
		}
		event.data.fd = accept(listener, NULL, NULL);
		if (event.data.fd < 0)
			fail("accept");
		hurry(event.data.fd);
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event) < 0)
			fail("epoll");
	}
}

/* --- the client --- */

static struct addrinfo *find(const char *host, const char *port)
{
	struct addrinfo wanted = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;

	if (getaddrinfo(host, port, &wanted, &found) != 0)
		fail(host);
	return found;
}

static int connect_to(const struct addrinfo *to)
{
	int fd = socket(to->ai_family, to->ai_socktype, 0);

	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) < 0)
		fail("connect");
	hurry(fd);
	return fd;
}

static int measure(const struct addrinfo *to, bool is_sent, uint64_t bytes)
{
	uint64_t start = clock_ns(), seen = 0;
	int fd = connect_to(to);

	write_all(fd, (char[]){ is_sent ? FOR_SINK : FOR_SOURCE }, 1);
	if (is_sent) {
		pour(fd, bytes);
		read_all(fd, &seen, sizeof(seen));
	} else {
		write_all(fd, &bytes, sizeof(bytes));
		seen = drain(fd);
	}
	if (seen != bytes) {
		fprintf(stderr, "stream: %ju of %ju bytes arrived\n", (uintmax_t)seen,
			(uintmax_t)bytes);
		return 1;
	}
	printf("%.6f\n", (double)(clock_ns() - start) / 1e9);
	return 0;
}

static int open_one(const struct addrinfo *to)
{
	int fd = connect_to(to);
	char byte = FOR_ECHO;

	write_all(fd, &byte, 1);
	read_all(fd, &byte, 1);
	return fd;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int ping(const struct addrinfo *to, size_t count)
{
	uint64_t *took = calloc(count, sizeof(*took)), middle;

	if (!took)
		fail("memory");
	for (size_t i = 0; i < count; i++) {
		uint64_t start = clock_ns();
		int fd = open_one(to);

		took[i] = clock_ns() - start;
		close(fd);
	}
	qsort(took, count, sizeof(*took), compare);
	middle = took[count / 2];
	printf("%.3f\n", (double)middle / 1e3);
	free(took);
	return 0;
}

static int hold(const struct addrinfo *to, size_t count)
{
	char end;

	for (size_t i = 0; i < count; i++)
		(void)open_one(to);
	puts("held");
	fflush(stdout);
	return read(STDIN_FILENO, &end, 1) == 0 ? 0 : 1;
}

static void raise_files(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv)
{
	const struct addrinfo *to;
	uint64_t n;

	raise_files();
	if (argc == 3 && str_eq(argv[1], "serve"))
		return serve(strtoul(argv[2], NULL, 10));
	n = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;
	if (!n) {
		fputs("stream: see the head of stream.c\n", stderr);
		return 2;
	}
	to = find(argv[2], argv[3]);
	if (str_eq(argv[1], "send") || str_eq(argv[1], "receive"))
		return measure(to, str_eq(argv[1], "send"), n);
	if (n > MAX_COUNT)
		return 2;
	return str_eq(argv[1], "ping") ? ping(to, n) : hold(to, n);
}
