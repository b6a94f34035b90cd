#!/bin/sh
# Fuzzes every target with ASan and UBSan for a number of seconds each, as many side by side as
# there are processors. A target is tests/fuzz/fuzz_NAME.c, its seeds are tests/fuzz/corpus/NAME.
#
#   tools/fuzz.sh SECONDS
set -eu
cd "$(dirname "$0")/.."

build='build-fuzz'

# Fuzzes one target and tells it in one line, or shows all there is to know of a crash.
fuzz_one() {
	name=${1##*/fuzz_} seconds=$2
	found=$build/corpus/$name seeds=tests/fuzz/corpus/$name log=$build/fuzz-$name.log

	# libFuzzer writes what it finds into the first folder: never into the seeds we keep.
	mkdir -p "$found"
	[ -d "$seeds" ] || { echo "no seeds for fuzz target '$name': make $seeds" >&2; return 1; }
	if "$1" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 \
		-artifact_prefix="$build/$name-" "$found" "$seeds" >"$log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "ok  fuzz $name: $seconds s, $runs inputs"
	else
		cat "$log"
		echo "bad fuzz $name: the input is $build/$name-…; once fixed, keep it in $seeds"
		return 1
	fi
}

if [ "${1-}" = --one ]; then
	fuzz_one "$3" "$2"
	exit
fi

seconds=${1:?usage: tools/fuzz.sh SECONDS}
[ -f $build/build.ninja ] || CC=clang meson setup $build -Dfuzzing=true -Dstatic_bawn=false \
	-Db_sanitize=address,undefined -Db_lundef=false >$build.log || { cat $build.log; exit 1; }
rm -f $build.log
ninja --quiet -C $build

set --
for target in "$build"/tests/fuzz/fuzz_*; do
	[ -f "$target" ] && [ -x "$target" ] && set -- "$@" "$target"
done
[ $# -gt 0 ] || { echo "no fuzz target in $build/tests/fuzz" >&2; exit 1; }
# A timeout of libFuzzer's own cannot end a target that hangs before its first input; this can.
printf '%s\n' "$@" |
	xargs -P "$(nproc)" -n 1 timeout "$((seconds + 120))" tools/fuzz.sh --one "$seconds"
