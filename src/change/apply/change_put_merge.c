/* change_put_merge - what the host and the run made of a text, together. Reads; changes nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "change/apply/change_put.h"
#include "change/text/change_text.h"

int change_put_read_whole(int fd, size_t max, char **ret, size_t *ret_size)
{
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return file_read_all(fd, max, ret, ret_size);
}

static bool has_hash(const char *bytes, size_t n, const struct change_state *state)
{
	uint8_t hash[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes, n);
	sha256_finish(&s, hash);
	return state->has_hash && memcmp(hash, state->hash, SHA256_SIZE) == 0;
}

int change_put_read_base(const struct change_job *j, const struct change_put *p, size_t max,
	char **ret, size_t *ret_size)
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

struct three {
	char *base, *host, *now;
	struct change_text was, ours, theirs;
};

static void three_done(struct three *t)
{
	free(t->base);
	free(t->host);
	free(t->now);
}

/* All three; the verdict is given where one of them cannot be had. */
static bool read_three(
	const struct change_job *j, struct change_put *p, int layer, struct three *ret)
{
	int r = change_put_read_base(j, p, CHANGE_MAX_BASE, &ret->base, &ret->was.size);

	if (r < 0) {
		change_put_fail(p, -r, "cannot read what it was when the run ended");
		return false;
	}
	r = change_put_read_whole(p->host, CHANGE_MAX_TEXT, &ret->host, &ret->ours.size);
	if (r < 0) {
		change_put_fail_host(p, -r);
		return false;
	}
	r = change_put_read_whole(layer, CHANGE_MAX_TEXT, &ret->now, &ret->theirs.size);
	if (r == 0 && !has_hash(ret->now, ret->theirs.size, &p->x->after))
		r = -EBADMSG;
	if (r < 0)
		change_put_fail_layer(p, -r);
	ret->was.bytes = ret->base;
	ret->ours.bytes = ret->host;
	ret->theirs.bytes = ret->now;
	return r == 0;
}

bool change_put_is_merged(const struct change_job *j, const struct change_put *p, int layer)
{
	own(buf) struct buf both = { .max = 2 * CHANGE_MAX_TEXT };
	own(three) struct three t = { 0 };
	struct change_put asked = *p; /* of which the verdict does not count */
	size_t conflicts = 0;

	return read_three(j, &asked, layer, &t) &&
	       change_text_merge(&t.was, &t.ours, &t.theirs, "host", "run", &both, &conflicts) ==
		       0 &&
	       !both.failed && conflicts == 0 && both.len == t.ours.size &&
	       memcmp(buf_text(&both), t.host, both.len) == 0;
}

bool change_put_merge(const struct change_job *j, struct change_put *p, int layer, struct buf *out)
{
	own(three) struct three t = { 0 };
	size_t conflicts = 0;
	int r;

	if (!read_three(j, p, layer, &t))
		return false;
	if (!change_is_text(&t.ours)) {
		change_put_decide(
			p, CHANGE_CONFLICT, "the host made something of it that is no text");
		return false;
	}
	r = change_text_merge(&t.was, &t.ours, &t.theirs, "host", "run", out, &conflicts);
	if (r < 0 || out->failed)
		change_put_fail(p, r < 0 ? -r : EFBIG, "cannot merge it");
	else if (conflicts)
		change_put_decide(p, CHANGE_CONFLICT,
			"the host and the run changed the same lines, in %zu place%s", conflicts,
			conflicts == 1 ? "" : "s");
	return p->verdict == CHANGE_UNDECIDED;
}
