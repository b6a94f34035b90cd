/*
 * log_state - the chain of all the operator's runs.
 *
 * Runs as:  whoever says what happened; alone, because the folder is locked meanwhile.
 * Leaves:   STATE/log/events.jsonl, and what it was called before it grew too large.
 *
 * Nothing is kept open between two writes: many bawns write at the same time, and each finds the
 * end where the one before left it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
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

#define PATIENCE_NS  ((uint64_t)10000000000)
#define LONG_WAIT_NS 5000000

#define FORMER_SIZE 48 /* events-N.jsonl */

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
	if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
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
	fd = log_open_file(folder, newest, ret);
	if (fd < 0)
		return fd;
	close(fd);
	ret->size = 0;
	return ret->count == highest ? 0 : -EBADMSG;
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
static int open_end(int folder, uint64_t most, struct log_tail *ret)
{
	own_fd int fd = log_open_file(folder, LOG_STATE_FILE, ret);
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
	return log_open_file(folder, LOG_STATE_FILE, &none);
}

static int state_add(const struct log *l)
{
	own_fd int folder = state_open_folder(l->state), fd = -1;
	struct log_tail tail;
	int r = folder < 0 ? folder : lock(folder);

	if (r < 0)
		return r;
	fd = open_end(folder, l->state_size, &tail);
	return fd < 0 ? fd : log_add(fd, &tail, &l->waiting, l->is_synced);
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

int log_add_to_state(const struct log *l, struct err *e)
{
	int r = state_add(l);

	return r < 0 ? err_set(e, ERR_SYS, -r, "cannot write to the log of all runs, %s/%s: %s",
			       LOG_STATE_DIR, LOG_STATE_FILE, reason(-r))
		     : 0;
}
