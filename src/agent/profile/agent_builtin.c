#include "agent/profile/agent.h"

/* data/agents/NAME.yaml, as they are. */
#define EACH_PROFILE(X)                                                                            \
	X(any)                                                                                     \
	X(claude)                                                                                  \
	X(codex)                                                                                   \
	X(gemini)                                                                                  \
	X(opencode)                                                                                \
	X(shell)

#define DECLARE(name) extern const char agent_text_##name[];
#define ROW(name)     { #name, agent_text_##name },

EACH_PROFILE(DECLARE)

const struct agent_builtin agent_builtins[] = { EACH_PROFILE(ROW){ NULL, NULL } };
