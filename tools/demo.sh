#!/bin/sh
# Shows in a few seconds what a cage is: what a command in it sees, what it does not reach, and how
# long it takes to make one.
#
#   tools/demo.sh BAWN        in the folder to be caged
set -eu

bawn=$1
state=$(mktemp -d)
secret=$(mktemp)
trap 'rm -rf "$state" "$secret" ./.bawn-demo' EXIT
export XDG_STATE_HOME="$state"
echo 'a secret of yours' >"$secret"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
	bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi
title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

title "A command in a cage around $(pwd) sees"
# shellcheck disable=SC2016 # expanded in the cage
"$bawn" run -- sh -c '
	echo "  itself:     $(id -un), process $$ of $(ls -d /proc/[0-9]* | wc -l), on the host called $(hostname)"
	echo "  its folder: $(pwd), with $(ls -A | wc -l) entries: $(ls -A | head -4 | tr "\n" " ")…"
	echo "  its root:   $(ls / | tr "\n" " ")"
	echo "  network:    $(sed -n "s/^ *\([^:]*\):.*/\1/p" /proc/self/net/dev | tr "\n" " ")and nothing else"
	echo "  variables:  $(env | wc -l), all of them made for it"
'

title "It does not reach"
# shellcheck disable=SC2016
"$bawn" run -- sh -c '
	try() { what=$1; shift; if "$@" >/dev/null 2>&1; then echo "  REACHED     $what"; else echo "  out of reach: $what"; fi; }
	try "a file of yours outside the folder ($1)" cat "$1"
	try "your home ($2)" ls "$2"
	try "the passwords of this host (/etc/shadow)" cat /etc/shadow
	try "the processes of this host (pid $3)" ls "/proc/$3/root"
	try "the internet" timeout 2 bash -c "echo >/dev/tcp/1.1.1.1/443"
	try "the system, to change it (/usr/bin)" touch /usr/bin/demo
	try "a new namespace" unshare -U true
' demo "$secret" "${HOME-/root}" "$PPID"

title "What it writes is captured"
# shellcheck disable=SC2016
"$bawn" run -- sh -c 'echo changed >.bawn-demo && echo "  inside:  $(cat .bawn-demo)"'
if [ -e .bawn-demo ]; then echo "  outside: changed"; else echo "  outside: nothing has changed"; fi
"$bawn" diff --stat | sed 's/^/  bawn diff: /'
"$bawn" discard | sed 's/^/  bawn discard: /'

title "How long it takes"
"$bawn" run --timing -- true 2>&1 | grep -E '=|look|clone|command'

title "What was enforced is on record"
set -- "$state"/bawn/runs/*/record.intoto.jsonl
sed 's/.*"payload":"\([^"]*\)".*/\1/;q' "$1" | base64 -d |
	grep -o '"[a-z.]*":{"need":"must"[^}]*"holds":true' | wc -l |
	sed 's/$/ guarantees declared, and seen to hold before the command ran/; s/^ */  /'
