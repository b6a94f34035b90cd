#!/bin/sh
# The pages that come from tables are what the tables say; every command has a manual page, which is clean roff and
# installed; every variable that the program reads is in ENVIRONMENT.
# check.sh GEN_DOCS SOURCES
set -eu
gen_docs=$1 top=$2 failed=0

complain() {
	echo "$*"
	failed=1
}

"$gen_docs" guarantees.md | diff -u "$top/docs/guarantees.md" - ||
	complain "docs/guarantees.md is not what the table says; write it anew: gen_docs guarantees.md"

names=$("$gen_docs" names) || failed=1
for page in bawn.1 bawn.yaml.5 $names; do
	said=$("$gen_docs" "$page" | groff -man -Tutf8 -ww -z -K utf8 2>&1)
	test -z "$said" || complain "$page: $said"
	"$gen_docs" "$page" | grep -q '…' && complain "$page has a character that a plain locale loses: …"
	grep -q "'$page'" "$top/docs/meson.build" || complain "docs/meson.build does not install $page"
done
for page in $names; do
	"$gen_docs" "$page" | grep -q '^\.SH EXAMPLES' || complain "$page has no EXAMPLES"
done

# cage_break.c is in no program that is installed.
page=$("$gen_docs" bawn.1)
variables=$(grep -rhoE --exclude=cage_break.c 'getenv\("[A-Z_]+"' "$top/src" | sed 's/.*"\(.*\)"/\1/' | sort -u)
for variable in $variables; do
	printf '%s\n' "$page" | grep -qE "^(\.B |.fB)$variable(\\\\|$)" || complain "bawn(1) does not have the variable $variable"
done
test "$failed" = 0 || exit 1
echo "everything is documented"
