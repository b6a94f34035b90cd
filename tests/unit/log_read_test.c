/* What has been done to a chain is seen by whoever reads it, and what was only cut short too. */
#include "base/count.h"
#include "log_place.h"

#define MOST 65536

static struct log_place place;
static char before[MOST];
static size_t size;

static void put(const char *bytes, size_t n)
{
	own_fd int fd =
		openat(place.fd, LOG_RUN_FILE, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && file_write_all(fd, bytes, n) == 0);
}

static void take(void)
{
	own_fd int fd = openat(place.fd, LOG_RUN_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, before, sizeof(before));

	CHECK(n > 0);
	size = n < 0 ? 0 : (size_t)n;
}

/* Line `i`, and what is behind it. */
static char *line_of(char *bytes, unsigned i)
{
	while (i--)
		bytes = strchr(bytes, '\n') + 1;
	return bytes;
}

static void check_broken(const char *bytes, size_t n, uint64_t line, const char *why)
{
	struct log_reader r;

	put(bytes, n);
	CHECK(log_place_read(place.fd, LOG_RUN_FILE, &r) == -EBADMSG);
	CHECK(r.is_broken && r.tail.count == line);
	CHECK(strstr(r.failure.text, why) != NULL);
}

static void test_form(void)
{
	struct log_reader r;
	char *second;

	log_place_write(&place, 3);
	take();
	second = line_of(before, 1);
	CHECK(strncmp(before, "{\"seq\":0,\"time\":\"2", 18) == 0);
	CHECK(strstr(before,
		"Z\",\"type\":\"test\",\"run\":\"r\",\"session\":null,\"i\":0,\"prev\":\"000"));
	CHECK(strncmp(second, "{\"seq\":1,", 9) == 0);
	CHECK(log_place_read(place.fd, LOG_RUN_FILE, &r) == 3);
	CHECK(!r.is_broken && !r.is_torn && r.tail.size == size && r.tail.count == 3);
}

static void test_changed(void)
{
	char bytes[MOST];

	memcpy(bytes, before, size);
	*strstr(line_of(bytes, 1), "\"i\":1") = '_';
	check_broken(bytes, size, 2, "changed");
	memcpy(bytes, before, size);
	*strstr(bytes, "\"i\":0") = '_';
	check_broken(bytes, size, 1, "changed");
	/* The last line is covered by whoever knows its digest. */
	memcpy(bytes, before, size);
	*strstr(line_of(bytes, 2), "\"i\":2") = '_';
	put(bytes, size);
	CHECK(log_place_read(place.fd, LOG_RUN_FILE, NULL) == 3);
}

/* Each digit of the digest before decides, the last one too. */
static void test_digits(void)
{
	const char *prev = strstr(line_of(before, 1), "\"prev\":\"") + strlen("\"prev\":\"");
	size_t at = (size_t)(prev - before);

	for (size_t i = at; i < at + SHA256_HEX_SIZE - 1; i++) {
		char bytes[MOST];

		memcpy(bytes, before, size);
		bytes[i] = bytes[i] == '0' ? '1' : '0';
		check_broken(bytes, size, 1, "does not have the digest of the one before");
	}
}

static void test_moved(void)
{
	size_t one = (size_t)(line_of(before, 1) - before);
	size_t two = (size_t)(line_of(before, 2) - before), n = two - one;
	char bytes[MOST];

	/* removed: the first, one between */
	check_broken(before + one, size - one, 0, "number");
	memcpy(bytes, before, one);
	memcpy(bytes + one, before + two, size - two);
	check_broken(bytes, size - n, 1, "number");
	/* swapped */
	memcpy(bytes, before + one, n);
	memcpy(bytes + n, before, one);
	memcpy(bytes + two, before + two, size - two);
	check_broken(bytes, size, 0, "number");
	/* twice */
	memcpy(bytes, before, two);
	memcpy(bytes + two, before + one, size - one);
	check_broken(bytes, size + n, 2, "number");
	/* and numbered as if it had to be there */
	memcpy(bytes + two + 7, "2", 1);
	check_broken(bytes, two + n, 2, "digest");
}

static void test_odd(void)
{
	static const char *const odd[] = { "\n", "{}\n", "{\"seq\":0,\"prev\":\"\"}\n",
		"{\"seq\":00,\"time\":\"\",\"prev\":\"0000000000000000000000000000000000000000000000"
		"000000000000000000\"}\n",
		"{\"seq\":18446744073709551616,\"time\":\"\",\"prev\":\"000000000000000000000000000"
		"0000000000000000000000000000000000000\"}\n",
		"{\"seq\":0,\"time\":\"\",\"prev\":\"000000000000000000000000000000000000000000000"
		"000000000000000000G\"}\n",
		"{\"seq\":0,\"prev\":\"0000000000000000000000000000000000000000000000000000000000"
		"000000\"}\n" };
	char *many = calloc(1, 5 * LOG_LINE_SIZE);

	for (size_t i = 0; i < COUNT_OF(odd); i++)
		check_broken(odd[i], strlen(odd[i]), 0, "not written as an event");
	memset(many, '{', 5 * LOG_LINE_SIZE - 1);
	many[5 * LOG_LINE_SIZE - 1] = '\n';
	check_broken(many, 5 * LOG_LINE_SIZE, 0, "too long");
	free(many);
}

/* Whatever of it is there, it is a valid prefix; and whoever goes on does so behind that. */
static void test_torn(void)
{
	size_t two = (size_t)(line_of(before, 2) - before);

	for (size_t n = two; n < size; n++) {
		struct log_reader r;

		put(before, n);
		CHECK(log_place_read(place.fd, LOG_RUN_FILE, &r) == 2);
		CHECK(r.is_torn == (n > two) && !r.is_broken && r.tail.size == two);
		if (n % 16 && n != size - 1)
			continue;
		log_place_write(&place, 2);
		CHECK(log_place_read(place.fd, LOG_RUN_FILE, &r) == 4 && !r.is_torn);
	}
}

/* One that follows sees a piece, then that it was taken back, and then what came instead. */
static void test_growing(void)
{
	own_fd int fd = -1;
	own(log_reader) struct log_reader r;
	struct log_line line;

	put(before, size - 5);
	fd = openat(place.fd, LOG_RUN_FILE, O_RDONLY | O_CLOEXEC);
	log_reader_init(&r, fd);
	CHECK(log_read_line(&r, &line) == 1 && log_read_line(&r, &line) == 1);
	CHECK(log_read_line(&r, &line) == 0 && r.is_torn);
	log_place_write(&place, 1);
	CHECK(log_read_line(&r, &line) == 1 && line.seq == 2 &&
		memmem(line.text, line.size, "\"i\":0,", 6));
	CHECK(log_read_line(&r, &line) == 0 && !r.is_torn);
	log_place_write(&place, 1);
	CHECK(log_read_line(&r, &line) == 1 && line.seq == 3 && log_read_line(&r, &line) == 0);
}

/* More than the reader has room for at once, and lines of many lengths. */
static void test_long(void)
{
	char text[LOG_LINE_SIZE];
	struct err e = { 0 };
	struct log_reader r;
	struct log l;

	unlinkat(place.fd, LOG_RUN_FILE, 0);
	log_init(&l, -1, "r", NULL);
	CHECK(log_open_chain(&l, place.fd, &e) == 0);
	memset(text, 'x', sizeof(text));
	for (size_t n = 1; n < sizeof(text) - 256; n += 997) {
		text[n] = '\0';
		json_text(log_begin(&l, "test"), "text", text);
		log_end(&l);
		text[n] = 'x';
	}
	CHECK(log_write(&l) == 0);
	CHECK(log_place_read(place.fd, LOG_RUN_FILE, &r) == (int)l.tail.count);
	CHECK_STR(r.tail.last, l.tail.last);
	CHECK(r.tail.size == l.tail.size);
	log_done(&l);
}

int main(void)
{
	log_place_make(&place);
	test_form();
	test_changed();
	test_digits();
	test_moved();
	test_odd();
	test_torn();
	test_growing();
	test_long();
	log_place_remove(&place);
	return check_report();
}
