#!/bin/sh
# Every suite of real agents, whole: all.sh BUILD [PART OF A NAME]. Goes on after a failure, and tells of it.
set -u
build=$1
shift
status=0
for suite in turns hostile terminals secret subscriptions registered acceptance; do
	echo "# $suite"
	"${0%/*}/$suite.py" "$build" "$build/src/cli/bawn" "$build/src/cli/bawn-breakable" --all "$@" || status=1
done
exit $status
