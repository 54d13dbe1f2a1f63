#!/usr/bin/env bash
# Lists the packages that start goroutines, or none: in their code, in their tests, or in what these import of this
# project.
#
#	scripts/goroutines.sh some|none PACKAGE…    internal/lint, which make lint runs, is in neither list
set -euo pipefail
cd "$(dirname "$0")/.."
want=$1
shift
starts='(^|[[:space:];{])go (func\b|[A-Za-z_.]+[[(])|\.Go\(|\.Parallel\(|AfterFunc\('
module=github.com/nfcomms/nfcomms
go=${GO:-go}

# A test's own build of a package is listed as "package [package.test]": the name is enough.
all=$("$go" list -test -deps -f "{{if not .Standard}}{{.ImportPath}}	{{.Dir}}	{{join .Deps \" \"}}{{end}}" "$@" |
	sed 's/ \[[^]]*\]//g' | grep "^$module")
starting=$(cut -f 1,2 <<<"$all" | sort -u | while IFS=$'\t' read -r package folder; do
	if [ "${package%.test}" = "$package" ] && grep -qE "$starts" "$folder"/*.go; then echo "$package"; fi
done)
"$go" list "$@" | awk -F '\t' -v want="$want" '
	FILENAME == ARGV[1] { starts[$1]; next }
	FILENAME == ARGV[2] {
		sub(/\.test$/, "", $1)
		n = split($3, imports, " ")
		for (i = 1; i <= n; i++) if (imports[i] in starts) starting[$1]
		next
	}
	!/\/internal\/lint$/ && want == (($1 in starts || $1 in starting) ? "some" : "none")
' <(echo "$starting") <(echo "$all") -
