#include <string.h>

#include "base/own.h"
#include "cli/commands.h"
#include "filter/filter.h"

#define MOST_NAMED 3

/* The first row of its call that is news: rows of one call differ by program and error. */
static bool is_first(const struct record *r, size_t i)
{
	if (record_is_tried_only(&r->denials[i]))
		return false;
	for (size_t k = 0; k < i; k++)
		if (r->denials[k].number == r->denials[i].number)
			return false;
	return true;
}

void cli_say_denied(const struct cli *cli, const struct record *r)
{
	own(buf) struct buf calls = { .max = 4096 };
	size_t count = 0;

	for (size_t i = 0; i < r->denial_count; i++) {
		const char *program = r->denials[i].program;
		char name[FILTER_NAME_SIZE];

		if (!is_first(r, i) || count++ >= MOST_NAMED)
			continue;
		filter_name_call(r->denials[i].number, name);
		buf_printf(&calls, "%s%s", calls.len ? ", " : "", name);
		if (!program[0])
			continue;
		buf_puts(&calls, " (by ");
		buf_add_visible(&calls, program, strlen(program));
		buf_puts(&calls, ")");
	}
	if (count > MOST_NAMED)
		buf_printf(&calls, " and %zu more", count - MOST_NAMED);
	if (count && !cli->is_quiet)
		cli_complain("system calls: denied %s; why: bawn log --denials %s",
			buf_text(&calls), r->run);
}
