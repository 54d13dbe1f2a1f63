#!/usr/bin/env bash
# go.mod and go.sum of each module hold what it needs and no more.
#
#	scripts/tidy.sh check MODULE…   say what differs
#	scripts/tidy.sh write MODULE…   write it
#
# MODULE… are the folders of the modules beside the library. They require the library,
# which go mod tidy looks up among releases: here a copy of their go.mod replaces it by
# this tree. No go.mod itself replaces anything, as go install refuses those that do.
set -euo pipefail
cd "$(dirname "$0")/.."

how=$1
shift
export GOWORK=off
go=${GO:-go}
library=$("$go" list -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tidy=("$go" mod tidy)
[ "$how" = write ] || tidy+=(-diff)

"${tidy[@]}"
for module in "$@"; do
	cp "$module/go.mod" "$work/go.mod"
	cp "$module/go.sum" "$work/go.sum"
	"$go" mod edit -replace="$library=$PWD" "$work/go.mod"
	(cd "$module" && "${tidy[@]}" -modfile="$work/go.mod")
	if [ "$how" = write ]; then
		"$go" mod edit -dropreplace="$library" "$work/go.mod"
		cp "$work/go.mod" "$work/go.sum" "$module/"
	fi
done

if grep -n '^replace' go.mod "${@/%//go.mod}"; then
	echo "tidy: a go.mod that replaces a module cannot be installed" >&2
	exit 1
fi
# used: the versions of the modules that the library's packages and tests are built from.
used() { "$go" list -deps -test -f '{{with .Module}}{{.Path}} {{.Version}}{{end}}' ./... | sort -u; }
if ! diff <(used) <(GOWORK='' used); then
	echo "tidy: go.work selects other versions than the library does: require the same" >&2
	exit 1
fi
GOWORK='' "$go" mod verify >/dev/null
