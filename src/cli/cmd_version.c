#include "base/own.h"
#include "cli/commands.h"

int cmd_version(struct cli *cli)
{
	own(buf) struct buf out = { .max = 4096 };
	char preflight[SHA256_HEX_SIZE];
	struct json j;

	plan_preflight_digest(preflight);
	if (cli->is_json) {
		cli_json_begin(&j, &out);
		json_text(&j, "bawn", BAWN_VERSION);
		json_text(&j, "preflight_sha256", preflight);
		cli_json_end(&j);
	} else {
		buf_printf(&out, "bawn %s\npreflight sha256:%s\n", BAWN_VERSION, preflight);
	}
	return cli_write(&out, CLI_OK);
}
