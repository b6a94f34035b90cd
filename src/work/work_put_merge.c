/* work_put_merge - what the host and the run made of a text, together. Reads; changes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "work/work_put.h"
#include "work/work_text.h"

/* All of `fd` from its beginning. */
static int read_whole(int fd, size_t max, char **ret, size_t *ret_size)
{
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return file_read_all(fd, max, ret, ret_size);
}

static bool has_hash(const char *bytes, size_t n, const struct work_state *state)
{
	uint8_t hash[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes, n);
	sha256_finish(&s, hash);
	return state->has_hash && memcmp(hash, state->hash, SHA256_SIZE) == 0;
}

int work_put_read_base(const struct work_job *j, const struct work_put *p, size_t max, char **ret,
	size_t *ret_size)
{
	own_free char *bytes = NULL;
	own_fd int fd = -1;
	char path[40];
	int r;

	snprintf(path, sizeof(path), "base/%zu", p->index);
	fd = file_open_beneath(j->q->folder, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	r = file_read_all(fd, max, &bytes, ret_size);
	if (r < 0)
		return r;
	if (!has_hash(bytes, *ret_size, &p->x->before))
		return -EBADMSG;
	*ret = take_ptr(bytes);
	return 0;
}

bool work_put_is_merged(const struct work_job *j, struct work_put *p, int layer)
{
	own_free char *base = NULL, *host = NULL, *now = NULL;
	own(buf) struct buf both = { .max = WORK_MAX_TEXT * 2 };
	struct work_text was = { 0 }, ours = { 0 }, theirs = { 0 };
	size_t conflicts = 0;

	if (work_put_read_base(j, p, WORK_MAX_BASE, &base, &was.size) < 0 ||
		read_whole(p->host, WORK_MAX_TEXT, &host, &ours.size) < 0 ||
		read_whole(layer, WORK_MAX_TEXT, &now, &theirs.size) < 0)
		return false;
	was.bytes = base;
	ours.bytes = host;
	theirs.bytes = now;
	return work_text_merge(&was, &ours, &theirs, "host", "run", &both, &conflicts) == 0 &&
	       !both.failed && conflicts == 0 && both.len == ours.size &&
	       memcmp(buf_text(&both), host, ours.size) == 0;
}

bool work_put_merge(const struct work_job *j, struct work_put *p, int layer, struct buf *out)
{
	own_free char *base = NULL, *host = NULL, *now = NULL;
	struct work_text was = { 0 }, ours = { 0 }, theirs = { 0 };
	size_t conflicts = 0;
	int r = work_put_read_base(j, p, WORK_MAX_BASE, &base, &was.size);

	if (r < 0) {
		work_put_fail(p, -r, "cannot read what it was when the run ended");
		return false;
	}
	r = read_whole(p->host, WORK_MAX_TEXT, &host, &ours.size);
	if (r < 0) {
		work_put_fail_host(p, -r);
		return false;
	}
	r = read_whole(layer, WORK_MAX_TEXT, &now, &theirs.size);
	if (r == 0 && !has_hash(now, theirs.size, &p->x->after))
		r = -EBADMSG;
	if (r < 0) {
		work_put_fail_layer(p, -r);
		return false;
	}
	was.bytes = base;
	ours.bytes = host;
	theirs.bytes = now;
	if (!work_is_text(&ours)) {
		work_put_decide(p, WORK_CONFLICT, "the host made something of it that is no text");
		return false;
	}
	r = work_text_merge(&was, &ours, &theirs, "host", "run", out, &conflicts);
	if (r < 0 || out->failed) {
		work_put_fail(p, r < 0 ? -r : EFBIG, "cannot merge it");
		return false;
	}
	if (conflicts)
		work_put_decide(p, WORK_CONFLICT,
			"the host and the run changed the same lines, in %zu place%s", conflicts,
			conflicts == 1 ? "" : "s");
	return conflicts == 0;
}
