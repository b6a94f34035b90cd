#include "base/own.h"
#include "cli/cli_worker.h"
#include "run/run_sessions.h"

#define MOST_LIST ((size_t)16 << 20)

struct listing {
	struct buf out;
	int64_t now_ms;
	size_t count;
};

/* Workers that went without a word are left out: nobody is connected there. */
static int worker_list_see_text(void *of, const struct store_worker *x)
{
	struct listing *l = of;
	own(buf) struct buf line = { .max = 4096 };

	if (!x->is_alive)
		return 0;
	buf_printf(&line,
		"%-32s  %-16s  slots %-4u  sessions %-4llu  runs %-4llu  heard of %llus ago",
		x->name, x->host, x->slots, (unsigned long long)x->sessions,
		(unsigned long long)x->runs, (unsigned long long)(l->now_ms - x->seen_ms) / 1000);
	buf_add_visible(&l->out, buf_text(&line), line.len);
	buf_putc(&l->out, '\n');
	l->count++;
	return 0;
}

static int worker_list_print_text(struct listing *l, struct store *s, struct err *e)
{
	int r = s ? store_now(s, &l->now_ms, e) : 0;

	return r == 0 && s ? store_each_worker(s, worker_list_see_text, l, e) : r;
}

int worker_list(const struct cli *cli)
{
	struct listing l = { .out.max = MOST_LIST };
	struct store *s = NULL;
	struct err e = { 0 };
	int status = CLI_FAILED, r = run_open_store(false, &s, &e);

	/* Nobody has made one: so nobody is connected to it. */
	if (r == 0 || e.kind == ERR_NONE)
		r = worker_list_print_text(&l, s, &e);
	if (r < 0)
		cli_complain_err(&e);
	else
		status = cli_write(&l.out, CLI_OK);
	if (r == 0 && !cli->is_quiet && !l.count)
		cli_complain("no worker is connected to %s%s",
			s ? "the store " : "a store: there is none yet", s ? store_name(s) : "");
	if (s)
		store_close(s);
	buf_done(&l.out);
	return status;
}
