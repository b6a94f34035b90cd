/* What runs are called, and in which order they began. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "proof/record/record.h"

#define FIRST_LINE 1024 /* bytes of a log in which its first line says when */

int record_make_run(const struct timespec *when, char ret[static RECORD_RUN_SIZE], struct err *e)
{
	char text[CLOCK_TEXT_SIZE];
	struct timespec now;
	unsigned char chance;

	if (getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		return err_sys(e, errno, "cannot name the run: no random numbers");
	clock_gettime(CLOCK_REALTIME, &now);
	if (!when)
		when = &now;
	clock_print(when, text);
	snprintf(ret, RECORD_RUN_SIZE, "%.4s%.2s%.2s-%.2s%.2s%.2s-%08x", text, text + 5, text + 8,
		text + 11, text + 14, text + 17, (unsigned)when->tv_nsec << 2 | (chance & 3));
	return 0;
}

bool record_is_run(const char *text, bool is_whole)
{
	static const char form[] = "dddddddd-dddddd-xxxxxxxx";
	size_t n = strlen(text);

	if (n > sizeof(form) - 1 || (is_whole && n < sizeof(form) - 1))
		return false;
	for (size_t i = 0; i < n; i++) {
		bool is_hex = str_is_digit(text[i]) || (text[i] >= 'a' && text[i] <= 'f');

		if (form[i] == '-'       ? text[i] != '-'
			: form[i] == 'd' ? !str_is_digit(text[i])
					 : !is_hex)
			return false;
	}
	return true;
}

/* --- when --- */

static void name_read_name(const char *run, struct timespec *ret)
{
	char text[CLOCK_TEXT_SIZE];
	unsigned long part = strtoul(run + strlen("20261115-224501-"), NULL, 16) >> 2;

	snprintf(text, sizeof(text), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", run, run + 4, run + 6,
		run + 9, run + 11, run + 13);
	*ret = (struct timespec){ 0 };
	/* By chance, the last part of an older name may be more than a second has. */
	if (clock_parse(text, ret) == 0)
		ret->tv_nsec = part < 1000000000 ? (long)part : 999999999;
}

/* The value of a member, which no text in a line of JSON can look like. */
static bool name_read_time(const char *line, const char *member, struct timespec *ret)
{
	const char *at = strstr(line, member);
	char text[CLOCK_TEXT_SIZE];

	if (!at)
		return false;
	at += strlen(member);
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, "\""), at);
	return clock_parse(text, ret) == 0;
}

/* The first line of a run's log; "" where there is none. */
static void read_first_line(int runs, const char *run, char ret[static FIRST_LINE])
{
	char path[RECORD_RUN_SIZE + sizeof("/" LOG_RUN_FILE)];
	own_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", run, LOG_RUN_FILE);
	fd = file_open_beneath(runs, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);
	n = fd < 0 ? -1 : read(fd, ret, FIRST_LINE - 1);
	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

static void find_began(const char *line, const char *run, struct timespec *ret)
{
	if (!name_read_time(line, ",\"began\":\"", ret) &&
		!name_read_time(line, ",\"time\":\"", ret))
		name_read_name(run, ret);
}

void record_find_began(int runs, const char *run, struct timespec *ret)
{
	char line[FIRST_LINE];

	read_first_line(runs, run, line);
	find_began(line, run, ret);
}

bool record_find_session(int runs, const char *run, char ret[static 64])
{
	static const char member[] = ",\"session\":\"";
	char line[FIRST_LINE];
	const char *id;
	size_t n;

	read_first_line(runs, run, line);
	id = strstr(line, member);
	if (!id)
		return false;
	id += sizeof(member) - 1;
	n = strcspn(id, "\"");
	if (n >= 64)
		return false;
	snprintf(ret, 64, "%.*s", (int)n, id);
	return n > 0;
}

int record_compare_runs(const void *a, const void *b)
{
	const struct record_run *x = a, *y = b;

	if (x->began.tv_sec != y->began.tv_sec)
		return x->began.tv_sec < y->began.tv_sec ? 1 : -1;
	if (x->began.tv_nsec != y->began.tv_nsec)
		return x->began.tv_nsec < y->began.tv_nsec ? 1 : -1;
	return strcmp(y->id, x->id);
}

int record_list_runs(int runs, const char *session, struct record_run **ret, size_t *ret_count)
{
	char line[FIRST_LINE], member[128] = "";
	struct file_entries entries = { .fd = runs };
	own_free struct record_run *items = NULL;
	const struct file_entry *entry;
	size_t count = 0, room = 0;

	if (session)
		snprintf(member, sizeof(member), ",\"session\":\"%s\"", session);
	while ((entry = file_next_entry(&entries))) {
		if (!record_is_run(entry->name, true))
			continue;
		read_first_line(runs, entry->name, line);
		if (!strstr(line, member))
			continue;
		if (count == room) {
			void *grown = reallocarray(items, room ? 2 * room : 256, sizeof(*items));

			if (!grown)
				return -ENOMEM;
			items = grown;
			room = room ? 2 * room : 256;
		}
		snprintf(items[count].id, sizeof(items[count].id), "%s", entry->name);
		find_began(line, entry->name, &items[count++].began);
	}
	if (entries.failure)
		return -entries.failure;
	if (count)
		qsort(items, count, sizeof(*items), record_compare_runs);
	*ret = take_ptr(items);
	*ret_count = count;
	return 0;
}

/* --- the newest --- */

#define MOST_NEWEST 1024 /* more than that are listed by their names */

struct newest {
	int runs;
	struct record_run *items;
	size_t count, most;
};

static bool newest_has(const struct newest *x, const char *id)
{
	for (size_t i = 0; i < x->count; i++)
		if (str_eq(x->items[i].id, id))
			return true;
	return false;
}

/* A line that says that a run began, which may be gone by now: 1 when there are enough. */
static int newest_see(void *of, const char *line, size_t n)
{
	static const char type[] = "\"type\":\"run_start\",\"run\":\"";
	struct newest *x = of;
	const char *id = memmem(line, n, type, sizeof(type) - 1);
	char run[RECORD_RUN_SIZE];
	struct stat st;

	if (!id || n - (size_t)(id - line) < sizeof(type) - 1 + RECORD_RUN_LENGTH)
		return 0;
	snprintf(run, sizeof(run), "%.*s", RECORD_RUN_LENGTH, id + sizeof(type) - 1);
	if (!record_is_run(run, true) || newest_has(x, run) ||
		fstatat(x->runs, run, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	memcpy(x->items[x->count].id, run, sizeof(run));
	record_find_began(x->runs, run, &x->items[x->count++].began);
	return x->count == x->most;
}

int record_list_newest(int runs, size_t most, struct record_run **ret, size_t *ret_count)
{
	own_free struct record_run *items = NULL;
	struct newest x = { .runs = runs, .most = most };
	own_fd int log = -1;

	if (most && most <= MOST_NEWEST)
		log = openat(
			runs, "../" LOG_STATE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (log >= 0)
		x.items = items = calloc(most, sizeof(*items));
	if (!items || log_read_back(log, newest_see, &x) != 1)
		return record_list_runs(runs, NULL, ret, ret_count);
	qsort(items, x.count, sizeof(*items), record_compare_runs);
	*ret = take_ptr(items);
	*ret_count = x.count;
	return 0;
}
