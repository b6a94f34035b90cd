#!/bin/sh
# The pages that come from tables are what the tables say, and the man pages are clean roff.
# check.sh GEN_DOCS GUARANTEES_MD
set -eu

"$1" guarantees.md | diff -u "$2" - || {
	echo "docs/guarantees.md is not what the table says; write it anew: gen_docs guarantees.md"
	exit 1
}
for page in bawn.1 bawn.yaml.5; do
	said=$("$1" "$page" | groff -man -Tutf8 -ww -z -K utf8 2>&1)
	test -z "$said" || {
		echo "$page: $said"
		exit 1
	}
done
echo "3 passed, 0 failed"
