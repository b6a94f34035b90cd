#include <limits.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"
#include "session/store/store.h"

static void add_count(struct buf *out, size_t n, const char *what)
{
	if (n)
		buf_printf(out, "%s%zu %s", out->len ? ", " : "", n, what);
}

/* "1 added, 2 changed; …"; nothing where there is none. */
static void add_sum(struct buf *line, const struct record_effects *x)
{
	add_count(line, x->changed, "changed");
	add_count(line, x->added, "added");
	add_count(line, x->deleted, "deleted");
	add_count(line, x->renamed, "renamed");
}

static void effects_add_held(struct buf *line, const struct record_effects *x)
{
	if (x->held)
		buf_printf(line, "; %zu of them run%s on the host by %s", (size_t)x->held,
			x->held == 1 ? "s" : "", x->held == 1 ? "itself" : "themselves");
}

static void say_sum(
	const struct cli *cli, const struct record_effects *x, const char *run, const char *project)
{
	own(buf) struct buf line = { .max = 1024 };
	char here[PATH_MAX];
	/* Here the newest run is meant by itself. */
	bool is_here = getcwd(here, sizeof(here)) && str_path_within(here, project);

	add_sum(&line, x);
	if (cli->is_quiet || !line.len)
		return;
	effects_add_held(&line, x);
	cli_complain("files: %s; see: bawn diff%s%s, then: bawn apply%s%s or bawn discard%s%s",
		buf_text(&line), is_here ? "" : " ", is_here ? "" : run, is_here ? "" : " ",
		is_here ? "" : run, is_here ? "" : " ", is_here ? "" : run);
}

void cli_say_session_effects(const struct record *record, const struct store_session *s)
{
	own(buf) struct buf line = { .max = 1024 };
	const char *name = s->name[0] ? s->name : s->id;

	add_sum(&line, &record->effects);
	if (!line.len)
		return;
	buf_printf(&line, " in session %s", name);
	effects_add_held(&line, &record->effects);
	cli_complain("files: %s; see: bawn session diff %s, then: bawn session apply %s",
		buf_text(&line), name, name);
}

void cli_say_effects(const struct cli *cli, const struct record *record, const char *project)
{
	const struct record_effects *x = &record->effects;

	/* What a session has done so far is said by its commands: cli_say_session_effects. */
	if (record->session)
		return;
	if (x->error.kind != ERR_NONE) {
		cli_complain_about(&x->error, "%s%s",
			str_starts(x->error.text, "cannot find out")
				? ""
				: "cannot find out what the run changed: ",
			x->error.text);
		if (!x->error.hint[0])
			cli_hint("bawn diff tries again");
	} else if (x->is_known) {
		say_sum(cli, x, record->run, project);
	}
}
