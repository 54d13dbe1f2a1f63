#!/usr/bin/env bash
# Compare this tree with the last release, and refuse what breaks its users.
#
#	scripts/compatible.sh [TREE [RELEASE]]    TREE is a checkout (this one), RELEASE a tag (the last)
#
# Compared are the Go API, device ABI and ioctls (by their mirrors in Go, which tests hold to the
# headers), messages of the control plane, names of metrics and keys of the configuration. What
# breaks is listed. It is an error unless the changelog has an entry [Break] above that release.
set -euo pipefail
export LC_ALL=C GOWORK=off GOFLAGS="${GOFLAGS:-} -trimpath" # equal packages compile once, in whatever folder
here=$(cd "$(dirname "$0")/.." && pwd)
cd "${1:-$here}"

release=${2:-$(git describe --tags --match 'v[0-9]*' --abbrev=0 HEAD~1 2>/dev/null || true)}
[ -n "$release" ] || { echo "compatible: no release to compare with"; exit 0; }
go=${GO:-go}
tool() { "$go" tool -modfile="$here/tools/go.mod" -n "$1"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive --prefix=old/ "$release" | tar -x -C "$work"
breaks=$work/breaks

# api FLAG…: what the public packages lack. The folder decides which module is read.
apidiff=$(cd "$here" && tool apidiff)
public() { "$go" list ./... | grep -vE '/(internal|cmd|examples|spec)(/|$)' || true; }
mirrors() { "$go" list ./bridge/abi ./internal/wire ./internal/kdev/uapi 2>/dev/null || true; }
for package in $( (public; mirrors) | sort -u); do
	(cd "$work/old" && "$go" list "$package" >/dev/null 2>&1) || continue
	(cd "$work/old" && "$apidiff" -allow-internal -w "$work/old.api" "$package")
	"$apidiff" -allow-internal -w "$work/new.api" "$package"
	"$apidiff" -allow-internal -incompatible "$work/old.api" "$work/new.api" | sed "s|^- |$package: |"
done >"$breaks" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
(cd "$work/old" && public) | while read -r package; do
	"$go" list "$package" >/dev/null 2>&1 || echo "$package: removed"
done >>"$breaks"

proto=pkg/control/proto
if [ -e "$work/old/$proto/buf.yaml" ]; then
	"$(cd "$here" && tool buf)" breaking "$proto" --against "$work/old/$proto" >>"$breaks" || true
fi

# metrics FOLDER: the names that the page has.
metrics() { grep -oE '\bnfcomms[a-z]*_[a-z0-9_]+' "$1/docs/metrics.md" | sort -u; }
if [ -e "$work/old/docs/metrics.md" ]; then
	comm -23 <(metrics "$work/old") <(metrics .) | sed 's/^/metric: removed /' >>"$breaks"
fi

config=deploy/config/nfcommsd.yaml
if [ -e "$work/old/$config" ]; then
	"$go" run ./cmd/nfcommsd --check --config "$work/old/$config" 2>&1 | # users and groups are this machine's
		sed -nE '/unknown (user|group)|^exit status|is good$/d; s|^.*nfcommsd.yaml:|configuration: line |p' >>"$breaks" || true
fi

[ -s "$breaks" ] || { echo "compatible: nothing that $release had is gone"; exit 0; }
cat "$breaks"
if sed "/^## \[\{0,1\}$release\b/,\$d" CHANGELOG.md | grep -qF '[Break]'; then
	echo "compatible: the above breaks users of $release, as the changelog announces"
	exit 0
fi
echo "compatible: the above breaks users of $release: undo it, or announce it as [Break] in CHANGELOG.md" >&2
exit 1
