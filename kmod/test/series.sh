#!/usr/bin/env bash
# Check the series of patches that kmod/series/make.sh makes. It says nothing if all is well.
#
#	series.sh CHECKPATCH OUT          its files, the order of its patches, and their sum
#	series.sh CHECKPATCH OUT KDIR     also checkpatch of each patch, and each compiled
#
# CHECKPATCH is below scripts of a kernel's tree. KDIR has the headers of the newest
# kernel: what older ones need is not in the series.
set -euo pipefail
checkpatch=$(realpath "$1") out=$(realpath -m "$2") kdir=${3:-}
cd "$(dirname "$0")/.."
tree=$out/tree driver=drivers/misc/nfcomms
export GIT_AUTHOR_NAME=${GIT_AUTHOR_NAME:-A Test} GIT_AUTHOR_EMAIL=${GIT_AUTHOR_EMAIL:-test@localhost}
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
bad=0
mkdir -p "$(dirname "$out")"

# same WHAT ONE OTHER: two lists are alike.
same() {
	diff <(sort <<<"$2") <(sort <<<"$3") >"$out.diff" && return
	echo "series: $1:"
	cat "$out.diff"
	bad=1
}

# included FILE…: what each includes from the driver and its interface is there by now.
included() {
	local file name
	sed -n 's/^#include \("\|<uapi\/misc\/\)\([a-z_/]*\.h\).*/\2/p' "$@" | sort -u | while read -r name; do
		for file in "$tree/$driver/$name" "$tree/$driver/core/$name" "$tree/include/uapi/misc/$name"; do
			[ ! -e "$file" ] || continue 2
		done
		echo "$name"
	done
}

# step: the patch whose tree is there.
step() {
	local objects makefile=$tree/$driver/Makefile
	[ -e "$makefile" ] || return 0
	objects=$(sed -n 's/^nfcomms-y += //p' "$makefile")
	same "$1: sources and objects" "$(cd "$tree/$driver" && ls ./*.c core/*.c 2>/dev/null | sed 's,^\./,,')" "${objects//.o/.c}"
	same "$1: headers that come later" "" "$(included "$tree/$driver"/*.[ch] "$tree/$driver"/core/*.[ch] 2>/dev/null)"
	[ -z "$kdir" ] || compile "$1" "$objects"
}

# compile PATCH OBJECTS: without a warning. Objects of earlier patches are not made again.
compile() {
	# shellcheck disable=SC2086 # a list
	if ! MAKEFLAGS= make -s -C "$kdir" M="$tree/$driver" W=1 KCPPFLAGS="-I$tree/include" CONFIG_NFCOMMS=m \
		PAHOLE_VERSION= CONFIG_PAHOLE_VERSION= $2 >"$out/log" 2>&1 || [ -s "$out/log" ]; then
		echo "series: $1 does not compile:"
		cat "$out/log"
		bad=1
	fi
}

# style PATCH: trace.h is as trace headers are, and patch 1 has the entry in MAINTAINERS for all.
style() {
	perl "$checkpatch" --no-tree --strict --quiet --ignore "FILE_PATH_CHANGES,CAMELCASE,$TRACE_IGNORE" "$1" 2>"$out/log" || { cat "$out/log" && bad=1; }
}

series/make.sh "$(dirname "$checkpatch")/.." "$out" >"$out.log" || { cat "$out.log"; exit 1; }
same "files that are not in one patch" "$(ls ./*.[ch] core/*.[ch] uapi/*.h Documentation/ABI/*/* | sed -e '/nfcm_user\.h/d' -e '/\.mod\.c$/d' -e 's,^\(\./\)\?,kmod/,')" \
	"$(awk '$2 ~ "^kmod/" && $2 !~ "/series/" {print $2}' series/files)"
patches=("$out"/*.patch)
[ ${#patches[@]} -le 11 ] || { echo "series: more than ten patches and a letter" && bad=1; }
whole=$(git -C "$tree" rev-parse HEAD^{tree})
git -C "$tree" checkout -q --detach "HEAD~$((${#patches[@]} - 1))"
for patch in "${patches[@]:1}"; do
	git -C "$tree" am -q "$patch"
	step "$(basename "$patch")"
	[ -z "$kdir" ] || style "$patch"
done
same "the sum of the patches" "$whole" "$(git -C "$tree" rev-parse HEAD^{tree})"
same "objects of the module" "$(sed -n '/^nfcomms-y/,/[^\\]$/p' Kbuild | tr -s ' \t\\' '\n' | grep '\.o$')" \
	"$(sed -n 's/^nfcomms-y += //p' "$tree/$driver/Makefile")"
same "what only others need" "" "$(grep -l '__KERNEL__\|LINUX_VERSION_CODE\|UNLOCKED' -r --include='*.[ch]' "$tree/$driver")"
[ -z "$kdir" ] || compile "the module" ""
exit $bad
