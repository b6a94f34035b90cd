#include <string.h>

#include "base/own.h"
#include "cli/commands.h"

int cmd_preflight(struct cli *cli)
{
	own(buf) struct buf out = { .max = (size_t)64 * 1024 };
	char digest[SHA256_HEX_SIZE];
	struct json j;

	if (!cli->is_json) {
		buf_puts(&out, plan_preflight_text);
		return cli_write(&out, CLI_OK);
	}
	plan_preflight_digest(digest);
	cli_json_begin(&j, &out);
	json_text(&j, "sha256", digest);
	json_text(&j, "text", plan_preflight_text);
	cli_json_end(&j);
	return cli_write(&out, CLI_OK);
}
