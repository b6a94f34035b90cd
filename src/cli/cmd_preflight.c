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
	json_init(&j, &out, 0);
	json_open_map(&j, NULL);
	json_int(&j, "version", 1);
	json_text(&j, "sha256", digest);
	json_text(&j, "text", plan_preflight_text);
	json_close_map(&j);
	buf_putc(&out, '\n');
	return cli_write(&out, CLI_OK);
}
