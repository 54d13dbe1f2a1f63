#!/usr/bin/env bash
# Run every fuzz target, of Go and of C, for a short while, one after the other.
# FUZZTIME is the time for each, 5s by default. What a Go target finds is written
# below the testdata folder of its package and replayed by every later test.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-5s}
passed=0 failed=0

# fuzz COMMAND…: run one and count it.
fuzz() {
	echo "fuzz: $*"
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
}

while IFS=: read -r file name; do
	fuzz go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "./$(dirname "$file")"
done < <(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|^\./||; s|func ||' | sort)
for file in firmware/test/fuzz_*.c kmod/test/fuzz_*.c; do
	[ -e "$file" ] || continue
	fuzz make -C "$(dirname "$file")" fuzz-smoke FUZZ_SECONDS="${time%s}" FUZZERS="$(basename "$file" .c)"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
