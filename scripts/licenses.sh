#!/usr/bin/env bash
# Write internal/licenses/licenses.txt: the licences of the modules that the programs
# and libnfcomms link, as go-licenses finds them, and that of Go. A text that several
# modules have in common stands there once.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

# The programs of packages and image, which the test of internal/licenses reads here as well.
programs="./cmd/nfcommsd ./cmd/nfctl ./cmd/nfsim ./kmod/lib/umod ./kubernetes/nfplugin"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go=${GO:-go}
tool=$(GOWORK=off "$go" tool -modfile=tools/go.mod -n go-licenses)
echo '{{range .}}{{.Name}} {{.Version}} {{.LicenseName}} {{.LicensePath}}
{{end}}' >"$work/template"
# shellcheck disable=SC2086
"$tool" report --ignore "$(GOWORK=off "$go" list -m)" --template "$work/template" $programs >"$work/report" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
echo "Go go BSD-3-Clause $("$go" env GOROOT)/LICENSE" >>"$work/report"

grep . "$work/report" | sort -u | while read -r name version license path; do
	text=$work/text
	printf '%s\n' "$path" "${path%/*}"/{LICENSE,NOTICE,COPYRIGHT,COPYING}* | awk '!seen[$0]++' | while read -r file; do
		[ ! -f "$file" ] || { cat "$file"; echo; }
	done | sed 's/[[:space:]]*$//' >"$text"
	sum=$(sha256sum <"$text" | cut -c1-64)
	echo "$name $version $license" >>"$work/$sum.names"
	mv "$text" "$work/$sum.text"
done
echo "Modules in the programs and libraries of NFComms, each with its version and licence." >"$work/all"
for names in $(grep -m1 '' "$work"/*.names | sort -t: -k2 | cut -d: -f1); do
	printf '\n%s\n' "================================================================================"
	cat "$names"
	printf '%s\n\n' "--------------------------------------------------------------------------------"
	cat "${names%.names}.text"
done >>"$work/all"
cp "$work/all" internal/licenses/licenses.txt
