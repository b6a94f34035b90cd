#!/bin/sh
# Everything that can be wrong without running bawn, one line for each step that finds nothing.
# All steps run, whatever the ones before found; the status is 0 when none found anything.
# The build folders stay, so that a second run only looks at what changed.
#
#   tools/lint.sh [STEP...]      all steps, or the named ones
# shellcheck disable=SC2317 # the steps are called by name
set -eu
cd "$(dirname "$0")/.."

jobs=$(nproc)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# c_files: every C file of ours, one per line, headers included.
c_files() { find src tests -name '*.[ch]' | sort; }

# configure FOLDER [OPTION...]: sets a build folder up once.
configure() {
	folder=$1
	shift
	[ -f "$folder/build.ninja" ] || said=$(meson setup "$folder" -Dstatic_bawn=false "$@") || {
		echo "$said"
		return 1
	}
}

lint_format() { c_files | xargs clang-format --dry-run -Werror; }

# clang with both sanitizers: its warnings are errors, and the pure tests run checked. The first
# undefined behaviour ends a test, as a wrong address does.
lint_sanitize() {
	export CC=clang UBSAN_OPTIONS=print_stacktrace=1
	configure build-asan -Db_sanitize=address,undefined -Db_lundef=false \
		-Dc_args=-fno-sanitize-recover=undefined
	ninja --quiet -C build-asan
	tools/run-tests.py build-asan --suite pure --suite host --timeout-multiplier 5
}

# The database of the clang build: gcc's has options that clang does not know.
lint_tidy() {
	[ -f build-asan/compile_commands.json ] || lint_sanitize
	sed -n 's|^ *"file": "\.\./\(.*\.c\)".*|\1|p' build-asan/compile_commands.json | grep -v ^tests/ | sort -u |
		xargs -P "$jobs" -n 1 clang-tidy --quiet -p build-asan 2>"$logs/tidy.err" || {
		grep -Ev 'warnings? generated' "$logs/tidy.err"
		return 1
	}
}

lint_cppcheck() {
	mkdir -p build-cppcheck
	cppcheck --quiet -j "$jobs" --cppcheck-build-dir=build-cppcheck --std=c11 --library=posix \
		--enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		-D_GNU_SOURCE -I src src docs
}

lint_analyzer() {
	export CC=gcc
	configure build-analyze -Dc_args=-fanalyzer
	# The program only: a test that aborts is meant to leak. All findings, not only the first.
	ninja --quiet -k 0 -C build-analyze src/cli/bawn
}

# gcc warns of more where it optimises more: what make bench builds has to build.
lint_release() {
	export CC=gcc
	[ -f build-release/build.ninja ] || said=$(meson setup build-release --buildtype=release) || {
		echo "$said"
		return 1
	}
	ninja --quiet -C build-release
}

lint_shell() { grep -rlE '^#! ?/(usr/)?bin/(env )?(ba)?sh' tools tests .ci | xargs shellcheck; }

lint_project() { tools/check-project.py; }

# run_steps STEP...: one after the other. A step that finds something leaves $logs/bad.
run_steps() {
	for step; do
		start=$(date +%s)
		# A subshell of its own, under -e: not as a condition, which would switch -e off within.
		set +e
		(set -e && "lint_$step") >"$logs/$step" 2>&1
		result=$?
		set -e
		if [ $result = 0 ]; then
			echo "ok  $step ($(($(date +%s) - start)) s)"
		else
			touch "$logs/bad"
			echo "bad $step" >>"$logs/$step"
			cat "$logs/$step"
		fi
	done
}

# Two rows beside each other: the tests in one of them wait for their clocks.
if [ $# -gt 0 ]; then
	run_steps "$@"
else
	run_steps sanitize tidy &
	run_steps format project shell cppcheck release analyzer
	wait $!
fi
[ ! -e "$logs/bad" ]
