#include <limits.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"

static void add_count(struct buf *out, size_t n, const char *what)
{
	if (n)
		buf_printf(out, "%s%zu %s", out->len ? ", " : "", n, what);
}

static void say_sum(
	const struct cli *cli, const struct work_sum *sum, const char *run, const char *project)
{
	own(buf) struct buf line = { .max = 1024 };
	char here[PATH_MAX];
	/* Here the newest run is meant by itself. */
	bool is_here = getcwd(here, sizeof(here)) && str_path_within(here, project);

	add_count(&line, sum->changed, "changed");
	add_count(&line, sum->added, "added");
	add_count(&line, sum->deleted, "deleted");
	add_count(&line, sum->renamed, "renamed");
	if (cli->is_quiet || !line.len)
		return;
	if (sum->held)
		buf_printf(&line, "; %zu of them run%s on the host by %s", sum->held,
			sum->held == 1 ? "s" : "", sum->held == 1 ? "itself" : "themselves");
	cli_complain("files: %s; see: bawn diff%s%s, then: bawn apply%s%s or bawn discard%s%s",
		buf_text(&line), is_here ? "" : " ", is_here ? "" : run, is_here ? "" : " ",
		is_here ? "" : run, is_here ? "" : " ", is_here ? "" : run);
}

void cli_say_effects(const struct cli *cli, const struct record *record, const char *project)
{
	const struct record_effects *x = &record->effects;
	struct work_sum sum = { .added = x->added,
		.changed = x->changed,
		.deleted = x->deleted,
		.renamed = x->renamed,
		.held = x->held };

	/* What a session has done so far is asked for when it is wanted. */
	if (record->session)
		return;
	if (x->error.kind != ERR_NONE)
		cli_complain("cannot tell what the run changed: %s; bawn diff tries again",
			x->error.text);
	else if (x->is_known)
		say_sum(cli, &sum, record->run, project);
}
