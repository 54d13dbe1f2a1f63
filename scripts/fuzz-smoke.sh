#!/usr/bin/env bash
# Run every fuzz target, of Go and of C, for a short while, one after the other.
# FUZZTIME is the time for each, 2s by default, of one processor. What a Go target finds is written
# below the testdata folder of its package and replayed by every later test.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-2s}
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

# fuzz_go NAME FOLDER: one Go target. Before Go 1.27 the end of the time is now and
# then taken for a failure, which found nothing (golang/go#75804): then once more, by a count.
fuzz_go() {
	local budget
	for budget in "$time" 100x; do
		if go test -vet=off -run '^$' -fuzz "^$1\$" -fuzztime "$budget" -parallel 1 "$2" 2>&1 | tee "$log"; then
			return 0
		fi
		grep -q 'Failing input' "$log" && return 1
		grep -qx '    context deadline exceeded' "$log" || return 1
		echo "fuzz: the time was over"
	done
	return 1
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
while IFS=: read -r file name; do
	fuzz fuzz_go "$name" "./$(dirname "$file")"
done < <(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|^\./||; s|func ||' | sort)
for file in firmware/test/fuzz_*.c kmod/test/fuzz_*.c; do
	[ -e "$file" ] || continue
	fuzz make -C "$(dirname "$file")" fuzz-smoke FUZZ_SECONDS="${time%s}" FUZZERS="$(basename "$file" .c)"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
