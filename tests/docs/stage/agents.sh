# shellcheck shell=bash
# A project, and agents that only say who they are.
mkdir -p ~/project ~/.local/bin && cd ~/project || exit 1
export PATH=~/.local/bin:$PATH ANTHROPIC_API_KEY=sk-example OPENAI_API_KEY=sk-example GEMINI_API_KEY=sk-example
for name in claude codex gemini opencode; do
	printf '#!/bin/sh\necho "this is %s"\n' $name >~/.local/bin/$name && chmod +x ~/.local/bin/$name
done
# Accounts that somebody has logged in to.
mkdir -p ~/.claude ~/.codex ~/.gemini ~/.local/share/opencode
for file in ~/.claude/.credentials.json ~/.codex/auth.json ~/.gemini/oauth_creds.json ~/.local/share/opencode/auth.json; do
	echo '{}' >"$file"
done
