# shellcheck shell=bash
# Two runs alike, the record of the first as a file, and a policy that it meets.
mkdir -p ~/project && cd ~/project || exit 1
bawn run --quiet -- true && cp ~/.local/state/bawn/runs/*/record.intoto.jsonl other.intoto.jsonl
bawn run --quiet -- true && cp -r "$HOME/.local/state/bawn/runs/$(newest)/." .
bawn key show --pem >ci.pub
bawn record export -o run.tar
printf 'version: 1\nnetwork: none\n' >policy.yaml
