/*
 * keeper_output - what the command printed, by its digest, and with `record.output: keep` beside
 * the record.
 *
 * Runs as:  the keeper.
 * Leaves:   RUN/stdout and RUN/stderr, where they are to be kept, as much as may be.
 * Must not: hash what a filter left of it: that depends on the operator's terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "keeper/stream/keeper_streams.h"

void keeper_output_begin(struct keeper_stdio *s, const struct keeper_request *q)
{
	s->request = q;
	for (int i = 0; i < 2; i++) {
		s->hashed[i] = (struct keeper_hashed){ .fd = -1 };
		sha256_init(&s->hashed[i].sha256);
	}
}

static void output_print_digest(struct sha256 sha256, char ret[static SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_SIZE];

	sha256_finish(&sha256, digest);
	sha256_print(digest, ret);
}

/* Opened when there is something to write: a cage that waits has no run yet. */
static int output_open_kept(const struct keeper_stdio *s, int i, int *ret)
{
	if (*ret >= 0)
		return 0;
	*ret = openat(s->request->folder, record_stream_names[i],
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *ret < 0 ? -errno : 0;
}

static void keeper_bytes(struct keeper_stdio *s, int i, const char *bytes, size_t n)
{
	struct keeper_hashed *h = &s->hashed[i];
	int r = output_open_kept(s, i, &h->fd);

	if (r == 0)
		r = file_write_all(h->fd, bytes, n);
	if (r == 0)
		h->kept += n;
	else
		s->keeper_failure = -r;
}

void keeper_output_add(struct keeper_stdio *s, int i, const char *bytes, size_t n)
{
	struct keeper_hashed *h = &s->hashed[i];
	bool is_kept = s->request->output == RECORD_OUTPUT_KEEP && !s->keeper_failure;
	size_t part = is_kept && h->kept == h->bytes ? RECORD_MAX_OUTPUT - h->kept : 0;

	if (s->request->output == RECORD_OUTPUT_NO)
		return;
	part = part < n ? part : n;
	if (part)
		keeper_bytes(s, i, bytes, part);
	sha256_add(&h->sha256, bytes, part);
	if (part < n && h->kept == h->bytes + part)
		output_print_digest(h->sha256, h->kept_sha256);
	sha256_add(&h->sha256, bytes + part, n - part);
	h->bytes += n;
}

void keeper_output_end(const struct keeper_stdio *s, struct record_output *ret)
{
	ret->is_told = s->request->output != RECORD_OUTPUT_NO;
	ret->is_together = s->is_together;
	for (int i = 0; ret->is_told && i < 2; i++) {
		const struct keeper_hashed *h = &s->hashed[i];
		struct record_stream *to = &ret->streams[i];

		to->is_known = h->is_seen;
		to->bytes = h->bytes;
		output_print_digest(h->sha256, to->sha256);
		to->is_kept = h->fd >= 0 && !s->keeper_failure;
		to->kept = h->kept;
		memcpy(to->kept_sha256, h->kept < h->bytes ? h->kept_sha256 : to->sha256,
			sizeof(to->kept_sha256));
	}
	if (s->keeper_failure)
		err_sys(&ret->error, s->keeper_failure, "cannot keep what the command printed");
}

void keeper_output_done(struct keeper_stdio *s)
{
	for (int i = 0; i < 2; i++) {
		if (s->hashed[i].fd >= 0)
			close(s->hashed[i].fd);
		s->hashed[i].fd = -1;
	}
}
