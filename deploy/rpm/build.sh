#!/usr/bin/env bash
# Build rpm packages from the Debian packages of user space, which have the list of files.
#
#	deploy/rpm/build.sh DEBS [FOLDER]    from those in DEBS; write them to FOLDER (DEBS)
#
# Equal packages give equal packages: times come from the last commit, or SOURCE_DATE_EPOCH.
set -euo pipefail
mkdir -p "${2:-$1}"
debs=$(realpath "$1") out=$(realpath "${2:-$1}")
cd "$(dirname "$0")/../.."

nfpm=$(GOWORK=off go tool -modfile=tools/go.mod -n nfpm)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# move TREE FROM TO: a folder that has another place in rpm distributions.
move() { [ ! -e "$1/$2" ] || { mkdir -p "$1/$(dirname "$3")" && mv "$1/$2" "$1/$3"; }; }
# needs DEPENDS: the packages that a Debian package depends on, as rpm distributions name them.
needs() { sed -E 's/ ?\|[^,]*//g; s/, */\n/g' <<<"$1" | sed -E 's/^libc6 /glibc /; s/^passwd$/shadow-utils/; s/[()]//g; s/.+/  - "&"/'; }
# indent: text as YAML has it in a block.
indent() { sed 's/^ *\(.*\)$/  \1/'; }

# convert PACKAGE NAME: write the rpm NAME of a Debian package.
convert() {
	local deb tree=$work/$2 version arch part target
	deb=$(echo "$debs/$1"_*.deb)
	field() { dpkg-deb -f "$deb" "$1"; }
	version=$(field Version) arch=$(field Architecture | sed 's/amd64/x86_64/; s/arm64/aarch64/')
	target=$out/$2-$version-1.$arch.rpm
	dpkg-deb -x "$deb" "$tree"
	dpkg-deb -e "$deb" "$work/$2.control"
	move "$tree" "usr/lib/$(gcc -dumpmachine | sed 's/^x86_64-.*/x86_64-linux-gnu/')" usr/lib64
	move "$tree" usr/share/zsh/vendor-completions usr/share/zsh/site-functions
	find "$tree" -name '*.pc' -exec sed -i 's|^libdir=.*|libdir=/usr/lib64|' {} +
	cat >"$work/$2.yaml" <<-END
		name: $2
		version: "$version"
		version_schema: none
		arch: $arch
		maintainer: $(field Maintainer)
		homepage: $(field Homepage)
		license: MIT
		description: |
		$(field Description | indent)
		rpm: {buildhost: localhost, compression: zstd}
		depends:
		$(needs "$(field Depends)")
		contents:
		  - {src: $tree, dst: /, type: tree}
	END
	while read -r part; do # files that the administrator changes
		move "$work" "$2$part" "$2.conf$part"
		echo "  - {src: $work/$2.conf$part, dst: $part, type: config|noreplace}"
	done < <(cat "$work/$2.control/conffiles" 2>/dev/null) >>"$work/$2.yaml"
	echo "scripts:" >>"$work/$2.yaml"
	for part in deploy/rpm/"$2"/*; do
		[ ! -e "$part" ] || echo "  ${part##*/}: $part" >>"$work/$2.yaml"
	done
	"$nfpm" package --config "$work/$2.yaml" --packager rpm --target "$target" >"$work/log" || { cat "$work/log" >&2; return 1; }
	echo "$target"
}

convert nfcomms nfcomms
convert nfcomms-dev nfcomms-devel
convert libnfcomms1 libnfcomms1
convert libnfcomms-dev libnfcomms-devel
