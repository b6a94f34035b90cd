#!/usr/bin/awk -f
# Passes TAP on, of one suite or of several in a row, and ends with: N passed, N failed, N skipped.
# Fails if a case failed, if fewer ran than a plan announced, or if none did. With CI=true a skip is a failure.
{ print; fflush() }
/^1\.\.[0-9]+/ { planned += substr($1, 4) }
/^(not )?ok / {
	ran++
	if (/# *SKIP/) { if (ENVIRON["CI"] == "true") { failed++; bad = bad "failed: skipped: " $0 "\n" } else skipped++ }
	else if (/^not/ && !/# *TODO/) { failed++; bad = bad "failed: " $0 "\n" }
	else if (!/^not/) passed++
}
END {
	if (ran != planned || !ran) { failed++; bad = bad "failed: " ran + 0 " cases ran of " planned + 0 "\n" }
	printf "%s%d passed, %d failed, %d skipped\n", bad, passed, failed, skipped
	exit failed > 0
}
