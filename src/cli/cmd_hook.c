/*
 * cmd_hook - what an agent asks before it calls a tool.
 *
 * Must not: fail in a way that an agent takes for an answer.
 */
#include <unistd.h>

#include "agent/hook/hook.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "cli/commands.h"

/* 2 would be taken for a refusal of the call. */
#define NOT_UNDERSTOOD 1

static enum wire_agent find_agent(const struct cli *cli)
{
	enum wire_agent agent = 0;

	while (agent < WIRE_AGENT_COUNT &&
		(cli->word_count != 1 || !str_eq(wire_agent_names[agent], cli->words[0])))
		agent++;
	return agent;
}

int cmd_hook(struct cli *cli)
{
	own(buf) struct buf out = { .max = 65536 };
	enum wire_agent agent = find_agent(cli);

	if (agent == WIRE_AGENT_COUNT) {
		cli_complain("cannot run the hook: name one agent: claude, codex or gemini");
		return NOT_UNDERSTOOD;
	}
	hook_run(agent, STDIN_FILENO, &out);
	(void)file_write_all(STDOUT_FILENO, buf_text(&out), out.len);
	return CLI_OK;
}
