# shellcheck shell=bash
# The events of a run.
mkdir -p ~/project && cd ~/project || exit 1
bawn run --quiet -- true && cp ~/.local/state/bawn/runs/*/events.jsonl .
