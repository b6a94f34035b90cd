/*
 * keeper_cast - what the command prints, with its times, as an asciicast.
 *
 * Runs as:  the keeper.
 * Must not: cost the run anything but the time to write: a cast that cannot be written is told at
 *           the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "keeper/stream/keeper_streams.h"

#define MAX_TITLE 1024
#define MAX_EVENT ((size_t)8 * KEEPER_STREAM_SIZE) /* every byte may become six of JSON */

struct keeper_cast {
	int fd, failure;
	struct buf title;
	uint64_t began;
	bool has_header;
	struct winsize size;
	struct term_cast cast;
	struct buf out;
};

/* What runs, as it was typed but for quotes. */
static void put_title(struct keeper_cast *c, const struct plan *p)
{
	for (uint32_t i = 0; i < p->op_count; i++) {
		if (plan_ops(p)[i].kind != PLAN_ARGUMENT)
			continue;
		if (c->title.len)
			buf_putc(&c->title, ' ');
		buf_puts(&c->title, plan_str(p, plan_ops(p)[i].a));
	}
}

int keeper_cast_open(struct keeper_cast **ret, int fd, const struct plan *p)
{
	struct keeper_cast *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->fd = fd;
	buf_init(&c->title, MAX_TITLE);
	put_title(c, p);
	c->began = clock_ns();
	c->size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	buf_init(&c->out, MAX_EVENT);
	*ret = c;
	return 0;
}

static void cast_write_out(struct keeper_cast *c)
{
	int r = c->out.failed ? -ENOMEM : file_write_all(c->fd, c->out.data, c->out.len);

	if (r < 0 && !c->failure)
		c->failure = r;
	c->out.len = 0;
}

/* Late, because only then the size is known. */
static void put_header(struct keeper_cast *c)
{
	struct timespec now;

	if (c->has_header)
		return;
	c->has_header = true;
	clock_gettime(CLOCK_REALTIME, &now);
	term_cast_header(&(struct term_cast_header){ .width = c->size.ws_col,
				 .height = c->size.ws_row,
				 .timestamp = now.tv_sec,
				 .title = buf_text(&c->title),
				 .term = "xterm-256color" },
		&c->out);
}

void keeper_cast_output(struct keeper_cast *c, const char *bytes, size_t n, bool is_terminal)
{
	if (c->failure)
		return;
	put_header(c);
	c->cast.is_plain = !is_terminal;
	term_cast_output(&c->cast, clock_ns() - c->began, bytes, n, &c->out);
	cast_write_out(c);
}

void keeper_cast_resize(struct keeper_cast *c, int fd)
{
	struct winsize now;

	/* One that does not know its size is as good as none. */
	if (ioctl(fd, TIOCGWINSZ, &now) == 0 && now.ws_row && now.ws_col)
		c->size = now;
	if (c->failure || !c->has_header)
		return;
	term_cast_resize(&c->cast, clock_ns() - c->began, c->size.ws_col, c->size.ws_row, &c->out);
	cast_write_out(c);
}

int keeper_cast_close(struct keeper_cast *c)
{
	int r;

	if (!c->failure) {
		put_header(c);
		term_cast_end(&c->cast, clock_ns() - c->began, &c->out);
		cast_write_out(c);
	}
	r = c->failure;
	buf_done(&c->out);
	buf_done(&c->title);
	free(c);
	return r;
}
