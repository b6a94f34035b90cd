#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "check/check.h"
#include "cli/commands.h"

const struct cli_option cmd_check_options[] = {
	CLI_OWN("explain", 0, "KEY", "explain which layer set KEY, and what a project may set"),
	CLI_OWN("schema", 0, NULL, "print the JSON Schema of bawn.yaml, for editors"),
	CLI_OWN("canonical", 0, NULL, "print the canonical form, which is what digests are of"),
	{ 0 },
};

static int print_schema(void)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };

	spec_print_schema(&out);
	return cli_write(&out, CLI_OK);
}

static void explain_json(const struct spec *s, enum spec_key key, struct buf *out)
{
	struct spec_account rows[SPEC_ACCOUNT_MAX];
	size_t n = spec_account(s, key, rows);
	struct json j;

	cli_json_begin(&j, out);
	json_text(&j, "key", spec_keys[key].path);
	json_open_list(&j, "says");
	for (size_t i = 0; i < n; i++) {
		json_open_map(&j, NULL);
		json_text(&j, "role", rows[i].role);
		json_text(&j, "value", rows[i].value);
		json_text(&j, "where", rows[i].where);
		json_close_map(&j);
	}
	json_close_list(&j);
	cli_json_end(&j);
}

static int check_explain(const struct cli *cli, const struct spec *s)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };
	const char *path = cli_value(cli, CLI_OPT_EXPLAIN), *paths[SPEC_KEY_COUNT], *near;
	enum spec_key key = spec_key_find(path);

	for (enum spec_key k = 0; k < SPEC_KEY_COUNT; k++)
		paths[k] = spec_keys[k].path;
	near = str_nearest(path, paths, SPEC_KEY_COUNT);
	if (key == SPEC_KEY_COUNT) {
		cli_complain("cannot explain '%s': a spec has no such key", path);
		if (near)
			cli_hint("did you mean %s?", near);
		return CLI_MISUSE;
	}
	if (cli->is_json)
		explain_json(s, key, &out);
	else
		spec_explain(s, key, &out);
	return cli_write(&out, s->diags.errors ? CLI_NO : CLI_OK);
}

static void check_print_json(const struct spec *s, const char *digest, struct buf *out)
{
	struct json j;

	cli_json_begin(&j, out);
	json_bool(&j, "ok", s->diags.errors == 0);
	json_int(&j, "errors", (int64_t)s->diags.errors);
	json_int(&j, "warnings", (int64_t)s->diags.warnings);
	json_text(&j, "spec_sha256", *digest ? digest : NULL);
	diags_print_json(&s->diags, &j);
	cli_json_end(&j);
}

static int report(const struct cli *cli, const struct spec *s)
{
	own(buf) struct buf out = { .max = (size_t)16 << 20 };
	own(buf) struct buf canonical = { .max = (size_t)16 << 20 };
	char digest[SHA256_HEX_SIZE] = "";
	bool is_good = s->diags.errors == 0;

	if (is_good) {
		spec_print_canonical(s, &canonical);
		sha256_hex(buf_text(&canonical), canonical.len, digest);
	}
	out.failed = canonical.failed;
	cli_print_diags(cli, s);
	if (cli->is_json)
		check_print_json(s, digest, &out);
	else if (is_good && cli_value(cli, CLI_OPT_CANONICAL))
		buf_add(&out, canonical.data, canonical.len);
	else if (!cli->is_quiet)
		buf_printf(&out, "%zu error%s, %zu warning%s%s%s\n", s->diags.errors,
			s->diags.errors == 1 ? "" : "s", s->diags.warnings,
			s->diags.warnings == 1 ? "" : "s", is_good ? "; spec sha256:" : "", digest);
	if (!cli->is_json && !cli->is_quiet && !cli_value(cli, CLI_OPT_CANONICAL) &&
		!cli_value(cli, CLI_OPT_FILE) && access("bawn.yaml", F_OK) < 0)
		buf_puts(&out,
			"there is no bawn.yaml here: this is the spec of a run without one\n");
	return cli_write(&out, is_good ? CLI_OK : CLI_NO);
}

int cmd_check(struct cli *cli)
{
	struct run_place place;
	struct spec s;
	int status;

	if (cli_value(cli, CLI_OPT_SCHEMA))
		return print_schema();
	if (cli->word_count && !cli->has_dashes) {
		cli_complain("cannot check '%s': a file is named with -f", cli->words[0]);
		cli_hint("bawn check -f %s", cli->words[0]);
		return CLI_MISUSE;
	}
	status = cli_load_spec(cli, &s, &place);
	if (status != CLI_FAILED && cli_value(cli, CLI_OPT_EXPLAIN)) {
		/* Also where the spec is refused: then the question is whose word it was. */
		cli_print_diags(cli, &s);
		status = check_explain(cli, &s);
	} else if (status == CLI_OK) {
		struct check_places places = { place.home, place.project };

		plan_check_spec(&s);
		check_settings(&s);
		check_contents(&s, &places);
		status = report(cli, &s);
	} else if (status == CLI_NO) {
		status = report(cli, &s);
	}
	spec_done(&s);
	return status;
}
