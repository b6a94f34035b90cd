/*
 * record_parts - the spec and the plan of a run, which most runs share with others.
 *
 * Runs as:  the keeper; whoever looks at runs later.
 * Leaves:   STATE/specs and STATE/plans, where a file's name is the digest of what is in it. It is
 *           written once; who removes those that no run names any more may do so at any time.
 * Must not: take a file for what its name says without having read it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/own.h"
#include "proof/record/record.h"

static const struct {
	const char *name, *folder; /* in a run's folder, in the state */
	const char *member;        /* of the first line of a run's log */
} parts[] = {
	[RECORD_SPEC] = { RECORD_SPEC_FILE, RECORD_SPECS_DIR, ",\"spec_sha256\":\"" },
	[RECORD_PLAN] = { RECORD_PLAN_FILE, RECORD_PLANS_DIR, ",\"plan_sha256\":\"" },
};

#define PATH_SIZE 128

static void print_path(enum record_part part, const char *sha256, char ret[static PATH_SIZE])
{
	snprintf(ret, PATH_SIZE, "%s/%.64s.json", parts[part].folder, sha256);
}

const char *record_part_name(enum record_part part)
{
	return parts[part].name;
}

#define TOUCH_S  3600         /* a text that is used again is touched, once in an hour */
#define UNUSED_S (24 * 3600L) /* one that nobody has touched since may be removed */

/* Whoever prunes at this moment may not know of the run that uses the text yet. */
static void touch_part(int fd, const struct stat *st)
{
	if (time(NULL) - st->st_mtime > TOUCH_S)
		(void)futimens(fd, NULL);
}

/* Is the text there already, in a plain file that nobody else can write to? */
static bool is_kept(int state, const char *path, const struct buf *text)
{
	own_fd int fd =
		openat(state, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	own_free char *bytes = malloc(text->len + 1);
	struct stat st;

	if (fd < 0 || !bytes || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		st.st_uid != ids_user() || st.st_mode & (S_IWGRP | S_IWOTH) ||
		(uint64_t)st.st_size != text->len ||
		file_read_up_to(fd, bytes, text->len) != (ssize_t)text->len ||
		memcmp(bytes, text->data, text->len) != 0)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): own_free frees it */
		return false;
	touch_part(fd, &st);
	return true;
}

/* Under a name that is nobody else's, and then under its own. */
static int write_part(int state, enum record_part part, const char *run, const char *path,
	const struct buf *text, bool is_synced)
{
	char draft[PATH_SIZE];
	own_fd int fd = -1;
	int r = 0;

	snprintf(draft, sizeof(draft), "%s/%s.new", parts[part].folder, run);
	fd = openat(state, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* Another run may make the folder at the same time. */
	if (fd < 0 && errno == ENOENT &&
		(mkdirat(state, parts[part].folder, 0700) == 0 || errno == EEXIST))
		fd = openat(
			state, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* The run is tried a second time, in another way. */
	if (fd < 0 && errno == EEXIST)
		fd = openat(state, draft, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : file_write_all(fd, text->data, text->len);
	if (r == 0 && is_synced && fdatasync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(state, draft, state, path) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(state, draft, 0);
	return r;
}

int record_keep_part(int state, enum record_part part, const char *run, const char *sha256,
	const struct buf *text, bool is_synced, struct err *e)
{
	char path[PATH_SIZE];
	int r;

	print_path(part, sha256, path);
	if (is_kept(state, path, text))
		return 0;
	r = write_part(state, part, run, path, text, is_synced);
	return r < 0 ? err_sys(e, -r, "cannot write the run's %s", parts[part].name) : 0;
}

bool record_find_part(int folder, enum record_part part, char ret[static SHA256_HEX_SIZE])
{
	own_fd int fd = file_open_name(folder, LOG_RUN_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	own_free char *line = malloc(LOG_LINE_SIZE);
	uint8_t bytes[SHA256_SIZE];
	const char *at;

	if (!line || file_read_text(fd, line, LOG_LINE_SIZE) < 0)
		return false;
	line[strcspn(line, "\n")] = '\0';
	/* No text in a line of JSON can look like a member. */
	at = strstr(line, parts[part].member);
	if (!at)
		return false;
	snprintf(ret, SHA256_HEX_SIZE, "%.64s", at + strlen(parts[part].member));
	return sha256_parse(ret, bytes) == 0;
}

int record_open_part(int folder, enum record_part part, const char *sha256)
{
	int fd = file_open_name(folder, parts[part].name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char path[PATH_SIZE], up[PATH_SIZE + sizeof("../../")], found[SHA256_HEX_SIZE];

	if (fd != -ENOENT || (!sha256 && !record_find_part(folder, part, found)))
		return fd;
	if (!sha256)
		sha256 = found;
	print_path(part, sha256, path);
	snprintf(up, sizeof(up), "../../%s", path);
	fd = openat(folder, up, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* cppcheck-suppress resourceLeak */
	return fd < 0 ? -errno : fd;
}

/* --- those that no run names --- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The digests that the logs of all runs name, in order, each with its NUL. */
static int find_used(int runs, enum record_part part, struct buf *ret)
{
	own_fd int fd = openat(runs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct file_entries entries = { .fd = fd };
	const struct file_entry *entry;

	while (fd >= 0 && (entry = file_next_entry(&entries))) {
		own_fd int folder = file_open_name(runs, entry->name, O_RDONLY | O_DIRECTORY);
		char sha256[SHA256_HEX_SIZE];

		if (folder >= 0 && record_find_part(folder, part, sha256))
			buf_add(ret, sha256, sizeof(sha256));
	}
	if (fd < 0 || entries.failure)
		return fd < 0 ? -errno : -entries.failure;
	if (ret->failed)
		return -ENOMEM;
	if (ret->len)
		qsort(ret->data, ret->len / SHA256_HEX_SIZE, SHA256_HEX_SIZE, compare_names);
	return 0;
}

static bool is_used(const struct buf *used, const char *name)
{
	char sha256[SHA256_HEX_SIZE];

	snprintf(sha256, sizeof(sha256), "%s", name);
	return used->len && bsearch(sha256, used->data, used->len / SHA256_HEX_SIZE,
				    SHA256_HEX_SIZE, compare_names);
}

static int prune_part(int state, int runs, enum record_part part)
{
	own_fd int folder = file_open_name(state, parts[part].folder, O_RDONLY | O_DIRECTORY);
	struct file_entries entries = { .fd = folder };
	own(buf) struct buf used = { .max = (size_t)1 << 30 };
	const struct file_entry *entry;
	int r = folder == -ENOENT ? 0 : folder < 0 ? folder : find_used(runs, part, &used);

	while (r == 0 && folder >= 0 && (entry = file_next_entry(&entries))) {
		struct stat st;

		if (fstatat(folder, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(st.st_mode) || time(NULL) - st.st_mtime <= UNUSED_S ||
			is_used(&used, entry->name))
			continue;
		if (unlinkat(folder, entry->name, 0) < 0)
			r = -errno;
	}
	return r;
}

int record_prune_parts(int state, int runs)
{
	int r = prune_part(state, runs, RECORD_SPEC);

	return r < 0 ? r : prune_part(state, runs, RECORD_PLAN);
}
