/*
 * result_archive - all files of a run as one tar archive (ustar) that every tar reads, and back.
 *
 * Must not: make a file that no export has: an archive may be anybody's.
 */
#include "result/result_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "change/project/change_project.h"
#include "proof/record/record.h"

#define BLOCK     512
#define MOST_FILE ((uint64_t)1 << 30)

static const char *const archive_files[] = { RECORD_FILE, LOG_RUN_FILE, RECORD_SPEC_FILE,
	RECORD_PLAN_FILE, RECORD_EFFECTS_FILE, CHANGE_PROJECT_FILE, RECORD_STDOUT_FILE,
	RECORD_STDERR_FILE, NULL };

/* POSIX.1-1988, ustar. Numbers are octal digits. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "one block");

/* Its own place counts as blanks. */
static unsigned sum_of(struct header h)
{
	const unsigned char *bytes = (const unsigned char *)&h;
	unsigned sum = 0;

	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += bytes[i];
	return sum & 0777777;
}

static void tar_fill(struct header *h, const char *prefix, const char *name, const struct stat *st)
{
	snprintf(h->name, sizeof(h->name), "%s/%s", prefix, name);
	snprintf(h->mode, sizeof(h->mode), "%07o", 0644);
	snprintf(h->uid, sizeof(h->uid), "%07o", 0);
	snprintf(h->gid, sizeof(h->gid), "%07o", 0);
	snprintf(h->size, sizeof(h->size), "%011llo", (unsigned long long)st->st_size);
	snprintf(h->mtime, sizeof(h->mtime), "%011llo", (unsigned long long)st->st_mtim.tv_sec);
	h->type = '0';
	memcpy(h->magic, "ustar", sizeof(h->magic));
	memcpy(h->version, "00", sizeof(h->version));
	snprintf(h->sum, sizeof(h->sum), "%06o", sum_of(*h));
}

/* Copies exactly as many bytes as the header says, even if the file changes meanwhile. */
static int tar_copy(int to, int from, uint64_t size)
{
	char bytes[65536];
	int r = 0;

	for (uint64_t left = size; r == 0 && left;) {
		ssize_t n = read(from, bytes, left < sizeof(bytes) ? left : sizeof(bytes));

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		r = file_write_all(to, bytes, (size_t)n);
		left -= (uint64_t)n;
	}
	memset(bytes, 0, BLOCK);
	if (r == 0 && size % BLOCK)
		r = file_write_all(to, bytes, BLOCK - size % BLOCK);
	return r;
}

static int open_file(int folder, const char *name)
{
	for (enum record_part part = RECORD_SPEC; part <= RECORD_PLAN; part++)
		if (str_eq(name, record_part_name(part)))
			return record_open_part(folder, part, NULL);
	return file_open_name(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

static int tar_add(int to, int folder, const char *prefix, const char *name, struct err *e)
{
	own_fd int fd = open_file(folder, name);
	struct header h = { 0 };
	struct stat st;
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (r == -ENOENT)
		return 0;
	if (r == 0 && !S_ISREG(st.st_mode))
		r = -EINVAL;
	/* The largest size that fits into the octal digits. */
	if (r == 0 && st.st_size > 0777777777777LL)
		r = -EFBIG;
	if (r == 0) {
		tar_fill(&h, prefix, name, &st);
		r = file_write_all(to, &h, sizeof(h));
	}
	if (r == 0)
		r = tar_copy(to, fd, (uint64_t)st.st_size);
	return r < 0 ? err_sys(e, -r, "%s", name) : 0;
}

static int tar_end(int to, struct err *e)
{
	static const char zeros[2 * BLOCK];
	int r = file_write_all(to, zeros, sizeof(zeros));

	return r < 0 ? err_set(e, ERR_SYS, -r, "%s", strerror(-r)) : 0;
}

int result_write_archive(int to, int folder, const char *run, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && archive_files[i]; i++)
		r = tar_add(to, folder, run, archive_files[i], e);
	return r == 0 ? tar_end(to, e) : r;
}

/* --- reading --- */

/* 0, or -errno; -ENODATA: there is no more. */
static int tar_read_block(int from, void *ret)
{
	char *to = ret;
	size_t at = 0;

	while (at < BLOCK) {
		ssize_t n = read(from, to + at, BLOCK - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		at += (size_t)n;
	}
	return 0;
}

static const char *tar_find_name(const struct header *h)
{
	const char *slash = memchr(h->name, '/', sizeof(h->name));

	for (size_t i = 0; slash && archive_files[i]; i++)
		if (strncmp(slash + 1, archive_files[i],
			    sizeof(h->name) - 1 - (size_t)(slash - h->name)) == 0)
			return archive_files[i];
	return NULL;
}

static bool is_end(const struct header *h)
{
	static const struct header zeros;

	return memcmp(h, &zeros, sizeof(zeros)) == 0;
}

static int take_file(int from, int folder, const char *name, uint64_t size)
{
	own_fd int fd =
		openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	char block[BLOCK];
	int r = fd < 0 ? -errno : 0;

	while (r == 0 && size) {
		size_t n = size < BLOCK ? (size_t)size : BLOCK;

		r = tar_read_block(from, block);
		if (r == 0)
			r = file_write_all(fd, block, n);
		size -= n;
	}
	return r;
}

bool result_is_archive(int fd)
{
	struct header h = { 0 };

	return pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
	       memcmp(h.magic, "ustar", 5) == 0 && strtoul(h.sum, NULL, 8) == sum_of(h);
}

int result_read_archive(int from, int folder, struct err *e)
{
	for (;;) {
		struct header h = { 0 };
		int r = tar_read_block(from, &h);
		char digits[sizeof(h.size) + 1] = "";
		const char *name = tar_find_name(&h);
		uint64_t size;

		if (r == 0 && is_end(&h))
			return 0;
		memcpy(digits, h.size, sizeof(h.size));
		size = strtoull(digits, NULL, 8);
		if (r == 0 && (memcmp(h.magic, "ustar", 5) != 0 || h.type != '0' || !name ||
				      size > MOST_FILE || strtoul(h.sum, NULL, 8) != sum_of(h)))
			return err_set(e, ERR_REFUSED, EBADMSG,
				"it has an entry that bawn record export never writes");
		if (r == 0)
			r = take_file(from, folder, name, size);
		if (r < 0)
			return err_set(e, ERR_SYS, -r, "%s",
				r == -ENODATA ? "its end is missing" : strerror(-r));
	}
}

void result_remove_archive(int folder, const char *path)
{
	for (size_t i = 0; folder >= 0 && archive_files[i]; i++)
		unlinkat(folder, archive_files[i], 0);
	rmdir(path);
}
