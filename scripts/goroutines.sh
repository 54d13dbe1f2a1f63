#!/usr/bin/env bash
# Lists the packages whose code or tests start goroutines, or those that start none.
#
#	scripts/goroutines.sh some|none PACKAGE…    internal/lint, which make lint runs, is in neither list
set -euo pipefail
cd "$(dirname "$0")/.."
want=$1
shift
starts='(^|[[:space:];{])go (func\b|[A-Za-z_.]+[[(])|\.Go\(|\.Parallel\(|AfterFunc\('
"${GO:-go}" list -f '{{.ImportPath}} {{.Dir}}' "$@" | while read -r package folder; do
	case $package in */internal/lint) continue ;; esac
	has=none
	if grep -qE "$starts" "$folder"/*.go; then has=some; fi
	if [ "$has" = "$want" ]; then echo "$package"; fi
done
