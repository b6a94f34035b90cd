/* cli_load - a spec and a host, as the command line names them; what is wrong with them is said. */
#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "base/own.h"
#include "cli/cli.h"

static void print_diags(const struct spec *s, bool color)
{
	own(buf) struct buf out = { .max = (size_t)1 << 20 };

	diags_print(&s->diags, &out, color);
	file_write_all(STDERR_FILENO, buf_text(&out), out.len);
}

void cli_print_diags(const struct cli *cli, const struct spec *s)
{
	if (!cli->is_json && !(cli->is_quiet && !s->diags.errors))
		print_diags(s, cli->has_color);
}

int cli_load_spec(const struct cli *cli, struct spec *s, struct run_place *ret_place)
{
	struct err e = { 0 };

	if (run_load_spec(&cli->request, s, ret_place, &e) == 0)
		return CLI_OK;
	if (e.kind == ERR_SPEC)
		return CLI_NO;
	cli_complain_err(&e);
	return CLI_FAILED;
}

int cli_probe(const struct cli *cli, struct host *ret)
{
	const char *path = cli_value(cli, CLI_OPT_HOST);
	own_free char *bytes = NULL;
	const struct yaml_node *map, *host;
	struct spec s;
	size_t n = 0;
	struct err e = { 0 };
	int r;

	if (!path) {
		if (host_probe(ret, &e) == 0)
			return CLI_OK;
		cli_complain_about(&e, "cannot inspect this host: %s", e.text);
		return CLI_FAILED;
	}
	r = file_read_path(path, YAML_MAX_SIZE, &bytes, &n);
	if (r < 0)
		return (run_fail_reading("host", path, -r, &e), cli_complain_err(&e), CLI_FAILED);
	spec_init(&s);
	map = yaml_read(&s.arena, &s.diags, diags_add_source(&s.diags, path, bytes, n), bytes, n);
	/* Either the whole of `bawn doctor --json`, or its member "host" by itself. */
	host = map ? yaml_get(map, "host") : NULL;
	r = map && host_from_yaml(ret, host ? host : map, &s.diags) == 0 ? CLI_OK : CLI_NO;
	print_diags(&s, cli->has_color);
	spec_done(&s);
	return r;
}
