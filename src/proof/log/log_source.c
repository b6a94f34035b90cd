/*
 * log_source - reads the lines of a chain, from all files that it is in.
 *
 * Runs as:  the operator.
 * Reads:    events.jsonl of a run, or of the state with the files it was renamed to.
 * Must not: hide what stands behind a break, or wait for what is no plain file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/log/log_source.h"

#define NAME_SIZE   64
#define MOST_BREAKS 16 /* that are said one by one */

static void close_file(struct log_source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void log_source_init(struct log_source *s, int folder, bool is_state, const char *whose)
{
	*s = (struct log_source){ .folder = folder,
		.is_state = is_state,
		.whose = whose,
		.fd = -1,
		.notice = s->notice,
		.is_pruned = s->is_pruned,
		.of = s->of };
	log_source_rewind(s);
}

void log_source_done(struct log_source *s)
{
	close_file(s);
	log_reader_done(&s->reader);
	if (s->folder >= 0)
		close(s->folder);
	s->folder = -1;
}

void log_source_rewind(struct log_source *s)
{
	close_file(s);
	log_reader_done(&s->reader);
	log_reader_init(&s->reader, -1);
	/* The operator may have put the oldest files elsewhere. */
	s->reader.is_continued = s->is_state;
	s->file = 0;
	s->count = 0;
}

static int log_source_fail(struct log_source *s, const char *name, const char *why)
{
	return err_set(&s->failure, ERR_SYS, EIO, "cannot read %s of %s: %s", name, s->whose, why);
}

/* Says to whoever listens what is odd about the log. */
static void __attribute__((format(printf, 3, 4)))
notice(const struct log_source *s, const struct err *e, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	if (s->is_silent || !s->notice)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	s->notice(s->of, text, e ? e->hint : "");
}

/* --- files --- */

static void log_source_print_name(uint64_t number, char ret[static NAME_SIZE])
{
	if (number == UINT64_MAX)
		snprintf(ret, NAME_SIZE, "%s", LOG_RUN_FILE);
	else
		snprintf(ret, NAME_SIZE, "events-%" PRIu64 ".jsonl", number);
}

/* events-N.jsonl; false: it is called something else. */
static bool log_source_read_number(const char *name, uint64_t *ret)
{
	char again[NAME_SIZE];

	if (!str_starts(name, "events-") || !num_scan(name + strlen("events-"), 10, ret, 1) ||
		*ret == UINT64_MAX)
		return false;
	log_source_print_name(*ret, again);
	return str_eq(name, again);
}

/* The file behind number `after`: the renamed one that comes next, or the one that grows. */
static uint64_t log_source_find_file(const struct log_source *s, uint64_t after)
{
	own_fd int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct file_entries entries = { .fd = fd };
	const struct file_entry *entry;
	uint64_t best = UINT64_MAX, n;

	while (s->is_state && fd >= 0 && (entry = file_next_entry(&entries)))
		if (log_source_read_number(entry->name, &n) && n > after && n < best)
			best = n;
	return best;
}

/* 1, 0 where there is none, or -errno. */
static int open_next(struct log_source *s, uint64_t after)
{
	char name[NAME_SIZE];
	uint64_t number;
	own_fd int fd = -1;
	struct stat st;

	do {
		if (fd >= 0)
			close(fd);
		number = log_source_find_file(s, after);
		log_source_print_name(number, name);
		fd = file_open_name(s->folder, name, O_RDONLY | O_NOCTTY | O_NONBLOCK);
		/* Renamed between the two looks, what was opened is not the next one. */
	} while (number == UINT64_MAX && fd >= 0 && log_source_find_file(s, after) != UINT64_MAX);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return log_source_fail(s, name, strerror(-fd));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return log_source_fail(s, name, "it is not a plain file");
	close_file(s);
	s->file = number;
	s->fd = take_fd(&fd);
	s->is_there = true;
	s->is_over = false;
	s->mended_at = UINT64_MAX;
	log_reader_next_file(&s->reader, s->fd);
	return 1;
}

static bool log_source_is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is the file that grows another one by now? Then ours was renamed, and is complete. */
static bool is_renamed(const struct log_source *s)
{
	struct stat ours, theirs;

	return s->is_state && fstat(s->fd, &ours) == 0 &&
	       fstatat(s->folder, LOG_STATE_FILE, &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
	       !log_source_is_same_file(&ours, &theirs);
}

/* The number that the file being read has got; of one that is gone, the highest there is. */
static uint64_t find_number(const struct log_source *s)
{
	uint64_t number = 0, next;
	struct stat ours, theirs;
	char name[NAME_SIZE];

	if (fstat(s->fd, &ours) < 0)
		return 0;
	while ((next = log_source_find_file(s, number)) != UINT64_MAX) {
		number = next;
		log_source_print_name(number, name);
		if (fstatat(s->folder, name, &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
			log_source_is_same_file(&ours, &theirs))
			break;
	}
	return number;
}

/* --- breaks --- */

static void say_broken(struct log_source *s)
{
	s->is_broken = true;
	if (s->is_silent || s->break_count > MOST_BREAKS)
		return;
	if (s->break_count++ == MOST_BREAKS)
		notice(s, NULL, "the log of %s is broken in more places than these", s->whose);
	else
		notice(s, &s->reader.failure, "the log of %s is broken: %s", s->whose,
			s->reader.failure.text);
}

/* The line that is not written as one, or as much as there is room for: 1, or -errno. */
static int take_odd_line(struct log_source *s, struct log_line *ret)
{
	struct log_tail *tail = &s->reader.tail;
	char rest[4096];
	const char *newline;
	ssize_t n = pread(s->fd, s->odd, sizeof(s->odd), (off_t)tail->size);

	if (n < 0)
		return log_source_fail(s, LOG_RUN_FILE, strerror(errno));
	newline = memchr(s->odd, '\n', (size_t)n);
	*ret = (struct log_line){ .text = s->odd,
		.size = newline ? (size_t)(newline - s->odd) : (size_t)n };
	tail->size += ret->size + (newline != NULL);
	while (!newline && n > 0) {
		n = pread(s->fd, rest, sizeof(rest), (off_t)tail->size);
		newline = n > 0 ? memchr(rest, '\n', (size_t)n) : NULL;
		tail->size += newline ? (uint64_t)(newline - rest) + 1 : (uint64_t)(n > 0 ? n : 0);
	}
	return 1;
}

/* Says what is wrong, and lets the line be read as if it were the first; false: that was tried. */
static bool mend(struct log_source *s)
{
	struct log_reader *r = &s->reader;
	bool is_new = s->mended_at != r->tail.size;

	if (is_new)
		say_broken(s);
	s->mended_at = r->tail.size;
	r->failure = (struct err){ 0 };
	r->is_broken = false;
	r->is_continued = true;
	r->tail.count = 0;
	r->at = r->len = 0;
	return is_new;
}

/* --- lines --- */

static void note_torn(struct log_source *s)
{
	if (!s->reader.is_torn || s->is_torn)
		return;
	s->is_torn = true;
	notice(s, NULL,
		"the log of %s ends with a piece of a line, which is no event: whoever wrote it "
		"was killed",
		s->whose);
}

static void note_beginning(const struct log_source *s, const struct log_line *first)
{
	if (s->count != 0 || !s->is_state || !first->seq || s->is_silent)
		return;
	if (s->is_pruned && s->is_pruned(s->of, first))
		notice(s, NULL,
			"the log of %s begins with line %" PRIu64
			": those before were pruned, as a signed line says",
			s->whose, first->seq);
	else
		notice(s, NULL,
			"the log of %s begins with line %" PRIu64
			": those before are in files that are not here",
			s->whose, first->seq);
}

/* At the end of a file: 1 where there is more to read, 0 where not yet, or -errno. */
static int log_source_go_on(struct log_source *s)
{
	bool is_last = s->file == UINT64_MAX;

	if (is_last && !s->is_over) {
		s->is_over = is_renamed(s);
		/* Once more: it may have grown before it was renamed. */
		if (s->is_over)
			return 1;
		if (!s->is_growing)
			note_torn(s);
		return 0;
	}
	note_torn(s);
	return open_next(s, is_last ? find_number(s) : s->file);
}

/* The next line of the file, however odd: 1, 0 at its end, or -errno. */
static int log_source_read_line(struct log_source *s, struct log_line *ret)
{
	int r = log_read_line(&s->reader, ret);

	while (r < 0 && s->reader.is_broken) {
		if (!mend(s))
			return take_odd_line(s, ret);
		r = log_read_line(&s->reader, ret);
	}
	return r < 0 ? log_source_fail(s, LOG_RUN_FILE, s->reader.failure.text) : r;
}

int log_source_next(struct log_source *s, struct log_line *ret)
{
	int r = 1;

	if (s->folder < 0)
		return 0;
	if (s->fd < 0)
		r = open_next(s, 0);
	while (r > 0) {
		r = log_source_read_line(s, ret);
		if (r > 0) {
			note_beginning(s, ret);
			s->count++;
			return 1;
		}
		if (r == 0)
			r = log_source_go_on(s);
	}
	return r;
}

/* --- what is said again --- */

#define FIRST_ROOM 1024              /* powers of two */
#define MOST_ROOM  ((size_t)1 << 21) /* with more rows than half of that, some are shown again */

/* `last` is counted from 1: 0 is a slot that is free. */
struct log_row {
	uint8_t key[SHA256_SIZE];
	uint64_t last;
};

void log_rows_done(struct log_rows *r)
{
	free(r->slots);
	*r = (struct log_rows){ 0 };
}

static struct log_row *log_rows_find(
	const struct log_rows *r, const uint8_t key[static SHA256_SIZE])
{
	uint64_t at;

	memcpy(&at, key, sizeof(at));
	for (;; at++) {
		struct log_row *slot = &r->slots[at & (r->room - 1)];

		if (!slot->last || memcmp(slot->key, key, SHA256_SIZE) == 0)
			return slot;
	}
}

/* Half of the slots stay free. */
static bool log_rows_grow(struct log_rows *r)
{
	struct log_rows grown = { .room = r->room ? 2 * r->room : FIRST_ROOM, .count = r->count };

	if (2 * r->count < r->room)
		return true;
	if (grown.room > MOST_ROOM)
		return false;
	grown.slots = calloc(grown.room, sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (size_t i = 0; i < r->room; i++)
		if (r->slots[i].last)
			*log_rows_find(&grown, r->slots[i].key) = r->slots[i];
	free(r->slots);
	*r = grown;
	return true;
}

bool log_rows_add(struct log_rows *r, const struct log_event *x, uint64_t number)
{
	uint8_t key[SHA256_SIZE];
	struct log_row *slot;
	bool is_new;

	if (!log_event_row(x, key) || !log_rows_grow(r))
		return true;
	slot = log_rows_find(r, key);
	is_new = !slot->last;
	memcpy(slot->key, key, SHA256_SIZE);
	slot->last = number;
	r->count += is_new;
	return is_new;
}

bool log_rows_is_old(const struct log_rows *r, const struct log_event *x, uint64_t number)
{
	uint8_t key[SHA256_SIZE];

	return r->count && log_event_row(x, key) && log_rows_find(r, key)->last > number;
}

/* --- which events --- */

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static bool has_type(const struct log_filter *w, const char *type)
{
	for (size_t i = 0; i < w->type_count; i++)
		if (str_eq(w->types[i], type))
			return true;
	return w->type_count == 0;
}

bool log_filter_takes(const struct log_filter *w, const struct log_event *x)
{
	struct timespec time;

	/* One whose time cannot be read is rather shown than not. */
	if (w->has_since && clock_parse(x->time, &time) == 0 && is_before(&time, &w->since))
		return false;
	return has_type(w, x->type) && (!w->is_denials || log_is_denial(x)) &&
	       (!w->run || str_eq(w->run, x->run)) &&
	       (!w->session || str_eq(w->session, x->session));
}
