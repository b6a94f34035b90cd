/* Writing: both chains, by many at once, when there is no room, and from file to file. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "log_place.h"

#define STATE_FILE LOG_STATE_DIR "/" LOG_STATE_FILE

static struct log_place place;

static mode_t mode_of(const char *name)
{
	struct stat st = { 0 };

	CHECK(fstatat(place.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return st.st_mode & 07777;
}

static uint64_t size_of(const char *name)
{
	struct stat st = { 0 };

	CHECK(fstatat(place.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	return (uint64_t)st.st_size;
}

static void test_both(void)
{
	struct err e = { 0 };
	struct log_reader r;
	struct log l;

	log_init(&l, place.fd, "r", "s");
	CHECK(log_write(&l) == 0);
	CHECK(faccessat(place.fd, LOG_STATE_DIR, F_OK, 0) < 0);
	log_place_say(&l, 2);
	CHECK(log_write(&l) == 0);
	CHECK(log_open_chain(&l, place.fd, &e) == 0);
	CHECK(l.tail.count == 0);
	CHECK_STR(l.tail.last, log_no_line);
	log_place_say(&l, 3);
	CHECK(size_of(LOG_RUN_FILE) == 0);
	CHECK(log_write(&l) == 0 && log_write(&l) == 0);
	log_done(&l);
	CHECK(log_place_read(place.fd, LOG_RUN_FILE, &r) == 3);
	CHECK_STR(r.tail.last, l.tail.last);
	CHECK(r.tail.count == l.tail.count && r.tail.size == l.tail.size);
	CHECK(log_place_read(place.fd, STATE_FILE, NULL) == 5);
	CHECK(mode_of(LOG_STATE_DIR) == 0700 && mode_of(STATE_FILE) == 0600);
	CHECK(mode_of(LOG_RUN_FILE) == 0600);
}

/* What is too long for a line is not in the way of what is not. */
static void test_too_long(void)
{
	static char text[2 * LOG_LINE_SIZE];
	own_fd int fd = -1;
	own(log_reader) struct log_reader r;
	struct log_line line;
	struct err e = { 0 };
	struct log l;

	unlinkat(place.fd, LOG_RUN_FILE, 0);
	log_init(&l, -1, "r", NULL);
	CHECK(log_open_chain(&l, place.fd, &e) == 0);
	memset(text, '\1', sizeof(text) - 1);
	json_text(log_begin(&l, "long"), "text", text);
	log_end(&l);
	log_place_say(&l, 1);
	CHECK(log_write(&l) == 0);
	log_done(&l);
	fd = openat(place.fd, LOG_RUN_FILE, O_RDONLY | O_CLOEXEC);
	log_reader_init(&r, fd);
	CHECK(log_read_line(&r, &line) == 1);
	CHECK(strstr(line.text,
		"\"type\":\"long\",\"run\":\"r\",\"session\":null,\"cut\":true,\"prev\""));
	CHECK(log_read_line(&r, &line) == 1 && log_read_line(&r, &line) == 0);
}

/* As much as nobody writes at once is written in between. */
static void test_many(void)
{
	struct err e = { 0 };
	struct log l;

	unlinkat(place.fd, LOG_RUN_FILE, 0);
	log_init(&l, -1, "r", NULL);
	CHECK(log_open_chain(&l, place.fd, &e) == 0);
	log_place_say(&l, 20000);
	CHECK(l.tail.count > 10000 && l.for_run.len < (size_t)1 << 20);
	CHECK(log_write(&l) == 0);
	log_done(&l);
	CHECK(log_place_read(place.fd, LOG_RUN_FILE, NULL) == 20000);
}

/* --- what is not ours, or no chain --- */

static int try_chain(void)
{
	struct err e = { 0 };
	struct log l;
	int r;

	log_init(&l, -1, "r", NULL);
	r = log_open_chain(&l, place.fd, &e);
	CHECK((r < 0) == (e.kind != ERR_NONE));
	log_done(&l);
	return r;
}

static int try_state(void)
{
	struct log l;
	int r;

	log_init(&l, place.fd, NULL, NULL);
	log_place_say(&l, 1);
	r = log_write(&l);
	/* It sticks. */
	log_place_say(&l, 1);
	CHECK(log_write(&l) == r && (r < 0) == (l.failure.kind != ERR_NONE));
	log_done(&l);
	return r;
}

/* A crash within the very first write leaves half a line and no whole one: it is cut off too. */
static void test_torn_first(void)
{
	static const char half[] = "{\"seq\":0,\"time\":\"20";
	own_fd int run = -1, state = -1;

	unlinkat(place.fd, LOG_RUN_FILE, 0);
	run = openat(place.fd, LOG_RUN_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(file_write_all(run, half, strlen(half)) == 0);
	CHECK(try_chain() == 0 && size_of(LOG_RUN_FILE) == 0);
	CHECK(file_write_all(run, half, strlen(half)) == 0);
	log_place_write(&place, 2);
	CHECK(log_place_read(place.fd, LOG_RUN_FILE, NULL) == 2);
	CHECK(renameat(place.fd, STATE_FILE, place.fd, "aside") == 0);
	state = openat(place.fd, STATE_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(file_write_all(state, half, strlen(half)) == 0 && try_state() == 0);
	CHECK(log_place_read(place.fd, STATE_FILE, NULL) == 2);
	CHECK(renameat(place.fd, "aside", place.fd, STATE_FILE) == 0);
}

static void test_strange(void)
{
	own_fd int fd = -1;

	unlinkat(place.fd, LOG_RUN_FILE, 0);
	CHECK(symlinkat("elsewhere", place.fd, LOG_RUN_FILE) == 0);
	CHECK(try_chain() == -ELOOP);
	CHECK(faccessat(place.fd, "elsewhere", F_OK, 0) < 0);
	unlinkat(place.fd, LOG_RUN_FILE, 0);
	CHECK(mkfifoat(place.fd, LOG_RUN_FILE, 0600) == 0);
	CHECK(try_chain() == -EPERM);
	unlinkat(place.fd, LOG_RUN_FILE, 0);
	fd = openat(place.fd, LOG_RUN_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fchmod(fd, 0620) == 0 && try_chain() == -EPERM);
	CHECK(fchmod(fd, 0600) == 0 && try_chain() == 0);
	CHECK(write(fd, "no event\n", 9) == 9 && try_chain() == -EBADMSG);
	CHECK(size_of(LOG_RUN_FILE) == 9);
	unlinkat(place.fd, LOG_RUN_FILE, 0);
}

static void test_strange_state(void)
{
	own_fd int fd = openat(place.fd, STATE_FILE, O_WRONLY | O_APPEND | O_CLOEXEC);
	uint64_t size = size_of(STATE_FILE);

	/* A piece of a line is nobody's, and is cut off. */
	CHECK(write(fd, "{\"seq\":77", 9) == 9 && try_state() == 0);
	CHECK(log_place_read(place.fd, STATE_FILE, NULL) == 7);
	/* A whole one that is no event is not ours to take away. */
	size = size_of(STATE_FILE);
	CHECK(write(fd, "no event\n", 9) == 9 && try_state() == -EBADMSG);
	CHECK(size_of(STATE_FILE) == size + 9);
	CHECK(ftruncate(fd, (off_t)size) == 0 && try_state() == 0);
	CHECK(fchmodat(place.fd, LOG_STATE_DIR, 0770, 0) == 0 && try_state() == -EPERM);
	CHECK(fchmodat(place.fd, LOG_STATE_DIR, 0700, 0) == 0);
	CHECK(renameat(place.fd, LOG_STATE_DIR, place.fd, "other") == 0);
	CHECK(symlinkat("other", place.fd, LOG_STATE_DIR) == 0 && try_state() == -ENOTDIR);
	CHECK(unlinkat(place.fd, LOG_STATE_DIR, 0) == 0);
	CHECK(renameat(place.fd, "other", place.fd, LOG_STATE_DIR) == 0);
	CHECK(log_place_read(place.fd, STATE_FILE, NULL) == 9);
}

/* --- no room --- */

static void limit_files(uint64_t most)
{
	struct rlimit limit = { .rlim_cur = most, .rlim_max = RLIM_INFINITY };

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = most;
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* At every size at which a write can end in between. */
static void test_full(void)
{
	uint64_t whole;

	signal(SIGXFSZ, SIG_IGN);
	log_place_write(&place, 2);
	whole = size_of(LOG_RUN_FILE);
	for (uint64_t most = whole; most < whole + 600; most += 37) {
		struct err e = { 0 };
		struct log l;

		log_init(&l, -1, "r", NULL);
		CHECK(log_open_chain(&l, place.fd, &e) == 0);
		limit_files(most);
		log_place_say(&l, 5);
		CHECK(log_write(&l) == -EFBIG);
		CHECK(l.is_chain_over && strstr(l.failure.text, "File too large"));
		limit_files(RLIM_INFINITY);
		/* There would be room again; but then there would be a hole. */
		log_place_say(&l, 1);
		CHECK(log_write(&l) == -EFBIG && l.tail.count == 2 && l.tail.size == whole);
		log_done(&l);
		CHECK(size_of(LOG_RUN_FILE) == whole);
	}
	CHECK(log_place_read(place.fd, LOG_RUN_FILE, NULL) == 2);
}

/* Where one of both fails the other goes on. */
static void test_half_full(void)
{
	int before = log_place_read(place.fd, STATE_FILE, NULL);
	struct err e = { 0 };
	struct log l;

	unlinkat(place.fd, LOG_RUN_FILE, 0);
	log_init(&l, place.fd, "r", NULL);
	CHECK(log_open_chain(&l, place.fd, &e) == 0);
	limit_files(size_of(STATE_FILE) + 100);
	log_place_say(&l, 1);
	CHECK(log_write(&l) == -EFBIG);
	limit_files(RLIM_INFINITY);
	log_place_say(&l, 1);
	CHECK(log_write(&l) == -EFBIG && l.is_state_over && !l.is_chain_over);
	log_done(&l);
	CHECK(log_place_read(place.fd, LOG_RUN_FILE, NULL) == 2);
	CHECK(log_place_read(place.fd, STATE_FILE, NULL) == before);
}

/* --- many at once, and one file after the other --- */

#define WRITERS 3
#define TURNS   60

static pid_t start_writer(uint64_t size)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	for (unsigned i = 0; i < TURNS; i++) {
		struct log l;

		log_init(&l, place.fd, "r", NULL);
		l.state_size = size;
		log_place_say(&l, 1 + i % 3);
		if (log_write(&l) < 0)
			_exit(1);
		log_done(&l);
	}
	_exit(0);
}

static void write_at_once(uint64_t size)
{
	pid_t pids[WRITERS];

	for (size_t i = 0; i < WRITERS; i++)
		pids[i] = start_writer(size);
	for (size_t i = 0; i < WRITERS; i++) {
		int status = -1;

		CHECK(pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	}
}

/* Reads the files of the state's chain in their order: how many lines, or -1. */
static int read_files(const uint64_t *numbers, size_t count)
{
	own(log_reader) struct log_reader r;
	struct log_line line;

	log_reader_init(&r, -1);
	for (size_t i = 0; i <= count; i++) {
		char name[64] = STATE_FILE;
		own_fd int fd = -1;

		if (i < count)
			snprintf(name, sizeof(name), LOG_STATE_DIR "/events-%" PRIu64 ".jsonl",
				numbers[i]);
		fd = openat(place.fd, name, O_RDONLY | O_CLOEXEC);
		log_reader_next_file(&r, fd);
		while (log_read_line(&r, &line) > 0)
			;
		if (r.is_torn || r.failure.kind != ERR_NONE)
			return -1;
		CHECK(i == count || r.tail.count == numbers[i]);
	}
	return (int)r.tail.count;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static size_t list_files(uint64_t *ret, size_t most)
{
	own_fd int folder = openat(place.fd, LOG_STATE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	size_t count = 0;

	while ((entry = file_next_entry(&entries)))
		if (sscanf(entry->name, "events-%20" SCNu64 ".jsonl", &ret[count]) == 1 &&
			++count == most)
			break;
	qsort(ret, count, sizeof(*ret), compare);
	return count;
}

static void test_at_once(void)
{
	int before = log_place_read(place.fd, STATE_FILE, NULL);

	write_at_once(LOG_STATE_SIZE);
	CHECK(log_place_read(place.fd, STATE_FILE, NULL) == before + WRITERS * 2 * TURNS);
}

static void test_files(void)
{
	uint64_t numbers[64];
	int before = log_place_read(place.fd, STATE_FILE, NULL);
	int all = before + WRITERS * 2 * TURNS;
	own_fd int fd = -1;
	struct log_line line;
	own(log_reader) struct log_reader r;
	size_t count;

	write_at_once(8192);
	count = list_files(numbers, 64);
	CHECK(count > 5 && count < 60);
	CHECK(size_of(STATE_FILE) < 8192 + 1024);
	CHECK(read_files(numbers, count) == all);
	/* One alone is a chain only for whoever knows that it goes on from another. */
	CHECK(log_place_read(place.fd, STATE_FILE, NULL) == -EBADMSG);
	fd = openat(place.fd, STATE_FILE, O_RDONLY | O_CLOEXEC);
	log_reader_init(&r, fd);
	r.is_continued = true;
	CHECK(log_read_line(&r, &line) == 1 && line.seq == numbers[count - 1]);
	/* Killed between renaming and writing: with no file, and with an empty one. */
	CHECK(unlinkat(place.fd, STATE_FILE, 0) == 0);
	CHECK(try_state() == 0 && read_files(numbers, count) == (int)numbers[count - 1] + 2);
}

int main(void)
{
	log_place_make(&place);
	test_both();
	test_too_long();
	test_many();
	test_torn_first();
	test_strange();
	test_strange_state();
	test_full();
	test_half_full();
	test_at_once();
	test_files();
	log_place_remove(&place);
	return check_report();
}
