#include "cli/cli_progress.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/own.h"

#define FIRST_NS ((uint64_t)500 * 1000 * 1000) /* what is shorter needs no line */
#define EVERY_NS ((uint64_t)100 * 1000 * 1000)

struct cli_progress cli_progress_begin(const struct cli *cli)
{
	return (struct cli_progress){
		.is_shown = !cli->is_quiet && isatty(STDERR_FILENO) == 1,
		.next = clock_ns() + FIRST_NS,
	};
}

void cli_progress_clear(struct cli_progress *p)
{
	if (p->has_line)
		file_write_all(STDERR_FILENO, "\r\x1b[K", strlen("\r\x1b[K"));
	p->has_line = false;
}

void cli_progress_done(struct cli_progress *p)
{
	cli_progress_clear(p);
}

static void progress_tell(void *of, const char *what, uint64_t done, uint64_t total)
{
	own(buf) struct buf line = { .max = 4096 };
	struct cli_progress *p = of;
	uint64_t now;

	if (!p->is_shown)
		return;
	now = clock_ns();
	if (!what) {
		cli_progress_clear(p);
		p->next = now + FIRST_NS;
		return;
	}
	if (now < p->next)
		return;
	p->next = now + EVERY_NS;
	buf_puts(&line, "\r\x1b[Kbawn: ");
	buf_add_visible(&line, what, strnlen(what, 40));
	buf_printf(&line, ": %" PRIu64, done);
	if (total)
		buf_printf(&line, " of %" PRIu64 ", %" PRIu64 " %%", total, done * 100 / total);
	file_write_all(STDERR_FILENO, buf_text(&line), line.len);
	p->has_line = true;
}

struct change_progress cli_progress_of(struct cli_progress *p)
{
	return (struct change_progress){ .tell = progress_tell, .of = p };
}
