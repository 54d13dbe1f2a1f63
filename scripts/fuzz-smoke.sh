#!/usr/bin/env bash
# Run every Go fuzz target for a short while, one after the other.
# FUZZTIME is the time for each, 5s by default. What a target finds is written
# below the testdata folder of its package and replayed by every later test.
set -euo pipefail
cd "$(dirname "$0")/.."

passed=0 failed=0
while IFS=: read -r file name; do
	echo "fuzz $name in $(dirname "$file")"
	if go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-5s}" "./$(dirname "$file")"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done < <(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|^\./||; s|func ||' | sort)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
