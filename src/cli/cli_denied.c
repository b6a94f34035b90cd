#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"
#include "seccomp/filter.h"

#define MOST_NAMED 3

/*
 * The first row of its call that is news: rows of one call differ by program and error. Of writes,
 * the first of its path.
 */
static bool denied_is_first(const struct record *r, size_t i)
{
	const struct record_denial *d = &r->denials[i];

	if (record_is_tried_only(d))
		return false;
	for (size_t k = 0; k < i; k++)
		if (str_eq(r->denials[k].path, d->path) &&
			(d->path[0] || r->denials[k].number == d->number))
			return false;
	return true;
}

static void denied_add_name(struct buf *names, const struct record_denial *d)
{
	char name[FILTER_NAME_SIZE];

	filter_name_call(d->number, name);
	if (names->len)
		buf_puts(names, ", ");
	if (d->path[0])
		buf_add_visible(names, d->path, strlen(d->path));
	else
		buf_puts(names, name);
	if (!d->program[0])
		return;
	buf_puts(names, " (by ");
	buf_add_visible(names, d->program, strlen(d->program));
	buf_puts(names, ")");
}

/* One line, of the writes or of the others. */
static void denied_say(const struct record *r, bool is_of_writes, const char *what)
{
	own(buf) struct buf names = { .max = 4096 };
	size_t count = 0;

	for (size_t i = 0; i < r->denial_count; i++)
		if ((r->denials[i].path[0] != '\0') == is_of_writes && denied_is_first(r, i) &&
			count++ < MOST_NAMED)
			denied_add_name(&names, &r->denials[i]);
	if (count > MOST_NAMED)
		buf_printf(&names, " and %zu more", count - MOST_NAMED);
	if (count)
		cli_complain("%s %s; why: bawn log --denials %s", what, buf_text(&names), r->run);
}

void cli_say_denied(const struct cli *cli, const struct record *r)
{
	if (cli->is_quiet)
		return;
	denied_say(r, false, "system calls: denied");
	denied_say(r, true, "writes: denied to");
}

void cli_say_missing(const struct cli *cli, const struct spec *s, const struct record *r)
{
	own(buf) struct buf names = { .max = 4096 };
	uint64_t missing = record_degraded(r);
	char folder[PATH_MAX];

	for (enum plan_guarantee g = 0; g < PLAN_GUARANTEE_COUNT; g++)
		if (missing >> g & 1 && !plan_may_be_missing(s, g))
			buf_printf(
				&names, "%s%s", names.len ? ", " : "", plan_guarantee_defs[g].name);
	/* For a person: a script asks the record. */
	if (names.len && !cli->is_quiet && isatty(STDERR_FILENO))
		cli_complain("not given on this machine: %s; why: bawn doctor; to accept it: "
			     "defaults: { allow_degraded: [%s] } in %s/policy.yaml",
			buf_text(&names), buf_text(&names),
			run_config_folder(run_home(), folder) == 0 ? folder : "/etc/bawn");
}
