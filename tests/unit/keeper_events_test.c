/* Events on --status-fd: whole lines of JSON, and a run that nobody's reading holds up. */
#include <fcntl.h>
#include <signal.h>

#include "base/clock.h"
#include "base/own.h"
#include "check.h"
#include "is_json.h"
#include "keeper/keeper.h"

static struct wire_decision denied = { .kind = WIRE_NET_DENIED,
	.reason = WIRE_BECAUSE_PORT,
	.protocol = WIRE_TCP,
	.port = 22,
	.name = "github.com",
	.times = 3 };

static struct record record = { .run = "20260102-030405-0a0b0c0d" };

/* What is in a pipe, once its writer is gone. */
static const char *read_rest(int fd)
{
	static char text[1 << 20];
	size_t n = 0;
	ssize_t got;

	while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	return text;
}

static void test_line(void)
{
	int ends[2] = { -1, -1 }, patience_ms = KEEPER_PATIENCE_MS;

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	keeper_say_decided(
		&(struct keeper_request){ .status_fd = ends[1], .patience_ms = &patience_ms },
		&record, &denied);
	close(ends[1]);
	CHECK_STR(read_rest(ends[0]),
		"{\"event\":\"net_denied\",\"run\":\"20260102-030405-0a0b0c0d\","
		"\"name\":\"github.com\",\"port\":22,\"protocol\":\"tcp\",\"reason\":\"port\","
		"\"times\":3,\"text\":\"github.com:22 is not in network.allow, which has the name "
		"with another port\"}\n");
	close(ends[0]);
}

/* The longest that can be said is said. */
static void test_longest(void)
{
	struct wire_decision d = { .kind = WIRE_NET_ALLOWED,
		.reason = WIRE_BECAUSE_RESERVED,
		.port = 65535,
		.times = UINT64_MAX,
		.bytes_in = UINT64_MAX,
		.bytes_out = UINT64_MAX };
	int ends[2] = { -1, -1 };
	const char *text;

	memset(d.name, '"', WIRE_NAME_SIZE - 1);
	memset(d.other, '\\', WIRE_NAME_SIZE - 1);
	CHECK(wire_is_decision(&d) && pipe2(ends, O_CLOEXEC) == 0);
	keeper_say_decided(&(struct keeper_request){ .status_fd = ends[1] }, &record, &d);
	close(ends[1]);
	text = read_rest(ends[0]);
	CHECK(strlen(text) > 4L * WIRE_NAME_SIZE && is_json(text));
	close(ends[0]);
}

/* A flood to somebody who does not read costs one patience in all, and leaves whole lines. */
static void test_stuck_reader(void)
{
	int ends[2] = { -1, -1 }, patience_ms = 50;
	struct keeper_request q = { .patience_ms = &patience_ms };
	uint64_t began = clock_ns();
	const char *text;
	size_t lines = 0;

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	q.status_fd = ends[1];
	for (int i = 0; i < 10000; i++)
		keeper_say_decided(&q, &record, &denied);
	CHECK(patience_ms == 0);
	/* Without a sum it would be 50 ms for nearly each of them. */
	CHECK(clock_ns() - began < 20ULL * 1000000000);
	/* Who reads again is told again, without being waited for. */
	CHECK(read(ends[0], (char[8192]){ 0 }, 8192) == 8192);
	denied.times = 4242;
	keeper_say_decided(&q, &record, &denied);
	close(ends[1]);
	text = read_rest(ends[0]);
	CHECK(strstr(text, "\"times\":4242,") != NULL);
	text = strchr(text, '\n');
	while (text && text[1]) {
		const char *end = strchr(text + 1, '\n');

		CHECK(end && text[1] == '{' && end[-1] == '}');
		lines++;
		text = end;
	}
	CHECK(lines > 100 && lines < 10000);
	close(ends[0]);
}

/* Nobody asked, or nobody is left. */
static void test_nobody(void)
{
	int ends[2] = { -1, -1 }, patience_ms = KEEPER_PATIENCE_MS;
	struct keeper_request q = { .status_fd = -1, .patience_ms = &patience_ms };

	keeper_say_decided(&q, &record, &denied);
	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	close(ends[0]);
	q.status_fd = ends[1];
	keeper_say_decided(&q, &record, &denied);
	CHECK(patience_ms > KEEPER_PATIENCE_MS / 2);
	close(ends[1]);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_line();
	test_longest();
	test_stuck_reader();
	test_nobody();
	return check_report();
}
