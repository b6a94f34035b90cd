/*
 * log - says what happened.
 *
 * Runs as:  the keeper, or a command of the operator's.
 * Leaves:   lines at the ends of the run's chain and of the state's, whole ones only.
 * Must not: write over what is there; go on after a failure, which would leave a hole that nobody
 *           sees.
 *
 * What both chains have is the same text in both; its number and the digest are not.
 */
#include "proof/log/log.h"
#include "base/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/log/log_inside.h"

/*
 * log_chain - one file of a chain: finds its end, and adds to it.
 *
 * Runs as:  whoever says what happened, and has locked the file's folder.
 * Must not: follow a link; leave a piece of a line where there is anything it can do about it.
 */

/* The last line, and a piece of another: most often both are in the first few. */
#define NEAR ((size_t)4096)
#define FAR  (2 * LOG_LINE_SIZE)

/* --- the end --- */

static ssize_t chain_read_at(int fd, char *ret, size_t n, off_t at)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, ret + got, n - got, at + (off_t)got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

static int take_tail(const char *line, size_t size, struct log_tail *ret)
{
	const char *prev;
	uint64_t seq;

	if (!log_split_line(line, size, &seq, &prev) || seq == UINT64_MAX)
		return -EBADMSG;
	ret->count = seq + 1;
	sha256_hex(line, size, ret->last);
	return 0;
}

/* The tail by the last `most` bytes: 0, -errno, or 1 where it begins before them. */
static int look_back(int fd, size_t size, size_t most, char *bytes, struct log_tail *ret)
{
	size_t start = size > most ? size - most : 0;
	ssize_t n = chain_read_at(fd, bytes, size - start, (off_t)start);
	const char *end, *before;
	const char *line = bytes;

	if (n < 0)
		return (int)n;
	end = memrchr(bytes, '\n', (size_t)n);
	if (!end && start)
		return 1;
	if (!end) {
		*ret = (struct log_tail){ 0 };
		memcpy(ret->last, log_no_line, sizeof(ret->last));
		return 0;
	}
	before = memrchr(bytes, '\n', (size_t)(end - bytes));
	if (!before && start)
		return 1;
	if (before)
		line = before + 1;
	ret->size = start + (size_t)(end - bytes) + 1;
	return take_tail(line, (size_t)(end - line), ret);
}

static int look_far_back(int fd, size_t size, struct log_tail *ret)
{
	char bytes[FAR];
	int r = look_back(fd, size, sizeof(bytes), bytes, ret);

	return r == 1 ? -EBADMSG : r;
}

static int find_tail(int fd, size_t size, struct log_tail *ret)
{
	char bytes[NEAR];
	int r;

	if (!size) {
		*ret = (struct log_tail){ 0 };
		memcpy(ret->last, log_no_line, sizeof(ret->last));
		return 0;
	}
	r = look_back(fd, size, sizeof(bytes), bytes, ret);
	return r == 1 ? look_far_back(fd, size, ret) : r;
}

/* Where a chain ends in a file of this size, which has nothing behind it then. 0 or -errno. */
static int settle_tail(int fd, uint64_t size, struct log_tail *ret)
{
	struct log_tail tail;
	int r = find_tail(fd, (size_t)size, &tail);

	if (r < 0)
		return r;
	if (tail.size < size && ftruncate(fd, (off_t)tail.size) < 0)
		return -errno;
	*ret = tail;
	return 0;
}

/*
 * Opens a file of a chain, and makes it where missing: -EPERM if it is not a plain file of ours.
 * *ret is the tail; what stands behind it has been cut off.
 */
static int log_open_file(int folder, const char *name, struct log_tail *ret, struct stat *st)
{
	own_fd int fd = -1;
	int r;

	fd = openat(folder, name,
		O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode) || st->st_uid != ids_user() || st->st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM; /* cppcheck-suppress resourceLeak */
	r = settle_tail(fd, (uint64_t)st->st_size, ret);
	return r < 0 ? r : take_fd(&fd);
}

/* --- adding --- */

/* One event as the next line. */
static void chain_add_line(struct buf *out, struct log_tail *tail, const char *event, size_t n)
{
	size_t start = out->len;

	buf_printf(out, "{\"seq\":%" PRIu64 ",", tail->count++);
	buf_add(out, event, n);
	buf_puts(out, ",\"prev\":\"");
	buf_puts(out, tail->last);
	buf_puts(out, "\"}");
	if (!out->failed)
		sha256_hex(out->data + start, out->len - start, tail->last);
	buf_putc(out, '\n');
}

/*
 * Adds events, each ended by a newline, to the end of a chain, with one write. All or, with -errno
 * and the tail as it was, nothing.
 */
static int log_add(int fd, struct log_tail *tail, const struct buf *events, bool is_synced)
{
	own(buf) struct buf out = { .max = SIZE_MAX / 2 };
	const char *at = events->data, *end = at ? at + events->len : at;
	struct log_tail next = *tail;
	int r;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		chain_add_line(&out, &next, at, (size_t)(newline - at));
		at = newline + 1;
	}
	if (out.failed || events->failed)
		return -ENOMEM;
	r = file_write_all(fd, out.data, out.len);
	if (r == 0 && is_synced && fdatasync(fd) < 0)
		r = -errno;
	if (r < 0) {
		/* If this fails too, whoever comes next cuts the piece off. */
		(void)!ftruncate(fd, (off_t)tail->size);
		return r;
	}
	next.size += out.len;
	*tail = next;
	return 0;
}

/*
 * log_state - the chain of all the operator's runs.
 *
 * Runs as:  whoever says what happened; alone, because the folder is locked meanwhile.
 * Leaves:   STATE/log/events.jsonl, and what it was called before it grew too large.
 *
 * Folder and file stay open from the first write on. Many bawns write at the same time: each finds
 * the end where the one before left it, and sees when the file was renamed.
 */

#define PATIENCE_NS  ((uint64_t)10000000000)
#define LONG_WAIT_NS 5000000

#define FORMER_SIZE sizeof(((struct log_former *)0)->name)

static int state_open_folder(int state)
{
	own_fd int fd = file_open_name(state, LOG_STATE_DIR, O_RDONLY | O_DIRECTORY);
	struct stat st;

	if (fd == -ENOENT) {
		if (mkdirat(state, LOG_STATE_DIR, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = file_open_name(state, LOG_STATE_DIR, O_RDONLY | O_DIRECTORY);
	}
	if (fd < 0)
		return take_fd(&fd);
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != ids_user() || st.st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return take_fd(&fd);
}

/* Who has it writes a few lines. One that was stopped just then must not stop everybody. */
static int lock(int folder)
{
	uint64_t end_ns = clock_ns() + PATIENCE_NS;
	struct timespec wait = { .tv_nsec = 50000 };

	while (flock(folder, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_ns() > end_ns)
			return -EBUSY;
		nanosleep(&wait, NULL);
		if (wait.tv_nsec < LONG_WAIT_NS)
			wait.tv_nsec *= 2;
	}
	return 0;
}

/* --- files that have grown too large --- */

/* The number in the name of one; false: it is none. */
static bool is_former(const char *name, uint64_t *ret)
{
	char same[FORMER_SIZE];

	if (!str_starts(name, "events-") || !num_scan(name + strlen("events-"), 10, ret, 1))
		return false;
	snprintf(same, sizeof(same), "events-%" PRIu64 ".jsonl", *ret);
	return str_eq(name, same);
}

/* An empty file continues the newest one before it, if there is one. */
static int find_former(int folder, struct log_tail *ret)
{
	struct file_entries entries = { .fd = folder };
	const struct file_entry *entry;
	char newest[FORMER_SIZE] = "";
	uint64_t highest = 0, number;
	struct stat st;
	int fd;

	while ((entry = file_next_entry(&entries))) {
		if (!is_former(entry->name, &number) || number < highest)
			continue;
		highest = number;
		snprintf(newest, sizeof(newest), "events-%" PRIu64 ".jsonl", number);
	}
	if (entries.failure)
		return -entries.failure;
	if (!newest[0])
		return 0;
	fd = log_open_file(folder, newest, ret, &st);
	if (fd < 0)
		return fd;
	close(fd);
	ret->size = 0;
	return ret->count == highest ? 0 : -EBADMSG;
}

static int compare_former(const void *a, const void *b)
{
	const struct log_former *x = a, *y = b;

	return (x->tail.count > y->tail.count) - (x->tail.count < y->tail.count);
}

/* Finds where the chain ends in one of them, which nobody writes to any more. */
static int read_former(int folder, const char *name, struct log_former *ret)
{
	own_fd int fd = file_open_name(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if (!S_ISREG(st.st_mode))
		return -EPERM;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	ret->changed = st.st_mtim;
	return find_tail(fd, (size_t)st.st_size, &ret->tail);
}

int log_list_former(int folder, struct log_former **ret, size_t *ret_count)
{
	struct file_entries entries = { .fd = folder };
	own_free struct log_former *found = NULL;
	const struct file_entry *entry;
	size_t count = 0;
	uint64_t number;

	while ((entry = file_next_entry(&entries))) {
		struct log_former *grown;
		int r;

		if (!is_former(entry->name, &number))
			continue;
		grown = reallocarray(found, count + 1, sizeof(*found));
		if (!grown)
			return -ENOMEM;
		found = grown;
		r = read_former(folder, entry->name, &found[count]);
		if (r < 0)
			return r;
		/* Another name than its chain says is somebody's own file. */
		count += found[count].tail.count == number;
	}
	if (entries.failure)
		return -entries.failure;
	if (count)
		qsort(found, count, sizeof(*found), compare_former);
	*ret = take_ptr(found);
	*ret_count = count;
	return 0;
}

static int rename_file(int folder, const struct log_tail *tail)
{
	char former[FORMER_SIZE];
	struct stat st;

	snprintf(former, sizeof(former), "events-%" PRIu64 ".jsonl", tail->count);
	if (fstatat(folder, former, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(folder, LOG_STATE_FILE, folder, former) < 0 ? -errno : 0;
}

/* --- adding --- */

/* Opens what is written to, and finds where the chain ends. */
static int open_end(int folder, uint64_t most, struct log_tail *ret, struct stat *st)
{
	own_fd int fd = log_open_file(folder, LOG_STATE_FILE, ret, st);
	struct log_tail none;
	int r = 0;

	if (fd < 0)
		return take_fd(&fd);
	if (ret->size == 0)
		r = find_former(folder, ret);
	if (r < 0 || ret->size <= most)
		return r < 0 ? r : take_fd(&fd);
	r = rename_file(folder, ret);
	if (r < 0)
		return r;
	ret->size = 0;
	return log_open_file(folder, LOG_STATE_FILE, &none, st);
}

/* Is the file that is open still the one that is written to? Then *ret is its size. */
static bool state_is_current(const struct log_state *s, uint64_t most, uint64_t *ret)
{
	struct stat st;

	if (s->fd < 0 || fstatat(s->folder, LOG_STATE_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	*ret = (uint64_t)st.st_size;
	return st.st_ino == s->inode && st.st_dev == s->device && *ret && *ret <= most;
}

/* The folder is locked: opens the file, or goes on with it. */
static int state_find_end(struct log_state *s, uint64_t most)
{
	uint64_t size;
	struct stat st = { 0 };

	if (state_is_current(s, most, &size))
		return size == s->tail.size ? 0 : settle_tail(s->fd, size, &s->tail);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = open_end(s->folder, most, &s->tail, &st);
	s->inode = st.st_ino;
	s->device = st.st_dev;
	return s->fd < 0 ? s->fd : 0;
}

static int state_add(struct log *l)
{
	struct log_state *s = &l->of_state;
	int r;

	if (s->folder < 0)
		s->folder = state_open_folder(l->state);
	r = s->folder < 0 ? s->folder : lock(s->folder);
	if (r < 0)
		return r;
	r = state_find_end(s, l->state_size);
	if (r == 0)
		r = log_add(s->fd, &s->tail, &l->for_state, l->is_synced);
	/* A process that was started meanwhile may have the descriptor too. */
	flock(s->folder, LOCK_UN);
	return r;
}

static void state_close(struct log_state *s)
{
	if (s->fd >= 0)
		close(s->fd);
	if (s->folder >= 0)
		close(s->folder);
	s->fd = s->folder = -1;
}

static const char *reason(int num)
{
	switch (num) {
	case EPERM:
		return "it must be yours, and others must not be able to write to it";
	case EBADMSG:
		return "it does not end with an event; with that file moved away a new log begins";
	case EBUSY:
		return "another bawn has locked it and does not go on";
	default:
		return strerror(num);
	}
}

/* Adds what waits to the state's chain, alone. */
static int log_add_to_state(struct log *l, struct err *e)
{
	int r = state_add(l);

	return r < 0 ? err_set(e, ERR_SYS, -r, "cannot write to the log of all runs, %s/%s: %s",
			       LOG_STATE_DIR, LOG_STATE_FILE, reason(-r))
		     : 0;
}

/* What is said and not written takes no more: it is written then. */
#define MOST_WAITING ((size_t)256 << 10)

const char log_no_line[SHA256_HEX_SIZE] =
	"0000000000000000000000000000000000000000000000000000000000000000";

void log_init(struct log *l, int state, const char *run, const char *session)
{
	*l = (struct log){ .run = run,
		.session = session,
		.chain = -1,
		.state = state,
		.state_size = LOG_STATE_SIZE,
		.of_state = { -1, -1 } };
	buf_init(&l->event, LOG_LINE_SIZE - LOG_FRAME_SIZE);
	buf_init(&l->for_run, MOST_WAITING + LOG_LINE_SIZE);
	buf_init(&l->for_state, MOST_WAITING + LOG_LINE_SIZE);
	memcpy(l->tail.last, log_no_line, sizeof(l->tail.last));
}

void log_done(struct log *l)
{
	if (l->chain >= 0)
		close(l->chain);
	l->chain = -1;
	state_close(&l->of_state);
	buf_done(&l->event);
	buf_done(&l->for_run);
	buf_done(&l->for_state);
}

int log_open_chain(struct log *l, int folder, struct err *e)
{
	struct stat st;
	int fd = log_open_file(folder, LOG_RUN_FILE, &l->tail, &st);

	if (fd == -EBADMSG)
		return err_set(e, ERR_REFUSED, EBADMSG,
			"cannot append to the run's %s: it does not end with an event",
			LOG_RUN_FILE);
	if (fd < 0)
		return err_set(e, ERR_SYS, -fd, "cannot open the run's %s: %s", LOG_RUN_FILE,
			fd == -EPERM ? "it is not a plain file of yours that others cannot write to"
				     : strerror(-fd));
	if (l->chain >= 0)
		close(l->chain);
	l->chain = fd;
	return 0;
}

/* --- saying --- */

struct json *log_begin(struct log *l, const char *type)
{
	char text[CLOCK_TEXT_SIZE];
	struct timespec now;

	l->type = type;
	l->event.len = 0;
	l->event.failed = false;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_print(&now, text);
	json_init(&l->json, &l->event, 0);
	json_open_map(&l->json, NULL);
	json_text(&l->json, "time", text);
	json_text(&l->json, "type", type);
	json_text(&l->json, "run", l->run);
	json_text(&l->json, "session", l->session);
	return &l->json;
}

static bool takes_run(const struct log *l)
{
	return l->chain >= 0 && !l->is_chain_over;
}

static bool takes_state(const struct log *l)
{
	return l->state >= 0 && !l->is_state_over;
}

static void wait_to_write(const struct log *l, struct buf *waiting)
{
	/* Without its brackets: what is around it depends on the chain. */
	if (!l->event.failed) {
		buf_add(waiting, l->event.data + 1, l->event.len - 2);
		buf_putc(waiting, '\n');
	}
	waiting->failed |= l->event.failed;
}

static void say(struct log *l, bool is_for_run, bool is_for_state)
{
	json_close_map(&l->json);
	if (l->event.failed) {
		json_bool(log_begin(l, l->type), "cut", true);
		json_close_map(&l->json);
	}
	if (is_for_run && takes_run(l))
		wait_to_write(l, &l->for_run);
	if (is_for_state && takes_state(l))
		wait_to_write(l, &l->for_state);
	if (l->for_run.len >= MOST_WAITING || l->for_state.len >= MOST_WAITING)
		log_write(l);
}

void log_end(struct log *l)
{
	say(l, true, true);
}

void log_end_of_run(struct log *l)
{
	say(l, true, false);
}

void log_end_of_state(struct log *l)
{
	say(l, false, true);
}

/* --- writing --- */

static void note_failure(struct log *l, const struct err *e)
{
	if (l->failure.kind == ERR_NONE)
		l->failure = *e;
}

static void write_chain(struct log *l)
{
	int r = log_add(l->chain, &l->tail, &l->for_run, l->is_synced);
	struct err e;

	if (r == 0)
		return;
	l->is_chain_over = true;
	err_sys(&e, -r, "cannot write to the run's %s", LOG_RUN_FILE);
	note_failure(l, &e);
}

static void write_state(struct log *l)
{
	struct err e;

	if (log_add_to_state(l, &e) == 0)
		return;
	l->is_state_over = true;
	note_failure(l, &e);
}

static bool waits(const struct buf *b)
{
	return b->len || b->failed;
}

static void forget(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

int log_write(struct log *l)
{
	if (waits(&l->for_run) && takes_run(l))
		write_chain(l);
	if (waits(&l->for_state) && takes_state(l))
		write_state(l);
	forget(&l->for_run);
	forget(&l->for_state);
	return l->failure.kind == ERR_NONE ? 0 : -l->failure.num;
}
