#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/own.h"
#include "cli/commands.h"

const struct cli_option cmd_plan_options[] = {
	CLI_OWN("digest", 0, NULL, "print the plan's sha256 only"),
	{ 0 },
};

/* A refusal as an object, so that programs see it as people do. */
static void print_refusal_json(const struct spec *s, const struct host *h,
	const struct plan_choice *choice, const struct err *e, struct buf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_open_map(&j, NULL);
	json_text(&j, "error", e->text);
	if (e->kind == ERR_REFUSED)
		plan_print_refusal_json(choice, h, &j);
	diags_print_json(&s->diags, &j);
	cli_json_end(&j);
}

static int plan_refuse(const struct cli *cli, const struct spec *s, const struct host *h,
	const struct plan_choice *choice, const struct err *e)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };

	cli_print_diags(cli, s);
	if (cli->is_json) {
		print_refusal_json(s, h, choice, e, &out);
		return cli_write(&out, CLI_NO);
	}
	cli_complain_err(e);
	if (e->kind == ERR_REFUSED) {
		plan_print_refusal(choice, h, &out);
		file_write_all(STDERR_FILENO, buf_text(&out), out.len);
	}
	return e->kind == ERR_SYS ? CLI_FAILED : CLI_NO;
}

static int plan_show(const struct cli *cli, const struct plan *p, const struct run_place *place)
{
	own(buf) struct buf out = { .max = 8 * PLAN_MAX_SIZE };
	char digest[SHA256_HEX_SIZE] = "";

	if (cli_value(cli, CLI_OPT_DIGEST)) {
		if (plan_digest(p, digest) < 0)
			out.failed = true;
		buf_printf(&out, "%s\n", digest);
	} else if (cli->is_json) {
		plan_print_json(p, &out);
	} else {
		plan_print(p, &out, cli->has_color);
		/* Not part of the plan, which is the same for every operator. */
		buf_puts(&out, "\n$PROJECT is ");
		buf_add_visible(&out, place->project, strlen(place->project));
		buf_putc(&out, '\n');
		if (plan_find(p, PLAN_GIT, NULL)) {
			const char *git = place->repository.folder;

			buf_puts(&out, "$GIT is ");
			buf_add_visible(&out, git, strlen(git));
			buf_putc(&out, '\n');
		}
	}
	return cli_write(&out, CLI_OK);
}

int cmd_plan(struct cli *cli)
{
	struct run_place place;
	struct plan_choice choice;
	struct err e = { .kind = ERR_SPEC, .text = "the spec has errors" };
	own_free struct plan *p = NULL;
	struct spec s;
	struct host h;
	int status = cli_load_spec(cli, &s, &place);

	if (status == CLI_NO)
		status = plan_refuse(cli, &s, NULL, NULL, &e);
	else if (status == CLI_OK)
		status = cli_probe(cli, &h);
	if (status == CLI_OK) {
		run_tell_host(&place, &h);
		/* Another host has another project. */
		if (!cli_value(cli, CLI_OPT_HOST))
			run_look_at_project(&h, &place);
		if (plan_build(&s, &h, &p, &choice, &e) < 0) {
			status = plan_refuse(cli, &s, &h, &choice, &e);
		} else {
			cli_print_diags(cli, &s);
			status = plan_show(cli, p, &place);
		}
	}
	spec_done(&s);
	return status;
}
