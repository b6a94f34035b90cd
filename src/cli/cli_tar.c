/* cli_tar - writes a tar archive that every tar reads. */
#include "cli/cli_tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/own.h"

#define BLOCK 512

/* POSIX.1-1988, ustar. Numbers are octal digits. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "one block");

static void fill(struct header *h, const char *prefix, const char *name, const struct stat *st)
{
	const unsigned char *bytes = (const unsigned char *)h;
	unsigned sum = 0;

	snprintf(h->name, sizeof(h->name), "%s/%s", prefix, name);
	snprintf(h->mode, sizeof(h->mode), "%07o", 0644);
	snprintf(h->uid, sizeof(h->uid), "%07o", 0);
	snprintf(h->gid, sizeof(h->gid), "%07o", 0);
	snprintf(h->size, sizeof(h->size), "%011llo", (unsigned long long)st->st_size);
	snprintf(h->mtime, sizeof(h->mtime), "%011llo", (unsigned long long)st->st_mtim.tv_sec);
	h->type = '0';
	memcpy(h->magic, "ustar", sizeof(h->magic));
	memcpy(h->version, "00", sizeof(h->version));
	/* Its own place counts as blanks. */
	memset(h->sum, ' ', sizeof(h->sum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += bytes[i];
	snprintf(h->sum, sizeof(h->sum), "%06o", sum & 0777777);
}

/* As many bytes as the header says, whatever becomes of the file meanwhile. */
static int copy(int to, int from, uint64_t size)
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

int cli_tar_add(int to, int folder, const char *prefix, const char *name, struct err *e)
{
	own_fd int fd = file_open_name(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct header h = { 0 };
	struct stat st;
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (r == -ENOENT)
		return 0;
	if (r == 0 && !S_ISREG(st.st_mode))
		r = -EINVAL;
	/* What the digits of a size have room for. */
	if (r == 0 && st.st_size > 0777777777777LL)
		r = -EFBIG;
	if (r == 0) {
		fill(&h, prefix, name, &st);
		r = file_write_all(to, &h, sizeof(h));
	}
	if (r == 0)
		r = copy(to, fd, (uint64_t)st.st_size);
	return r < 0 ? err_set(e, ERR_SYS, -r, "%s: %s", name, strerror(-r)) : 0;
}

int cli_tar_end(int to, struct err *e)
{
	static const char zeros[2 * BLOCK];
	int r = file_write_all(to, zeros, sizeof(zeros));

	return r < 0 ? err_set(e, ERR_SYS, -r, "%s", strerror(-r)) : 0;
}
