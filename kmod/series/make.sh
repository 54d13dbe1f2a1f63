#!/usr/bin/env bash
# Make the series of patches that adds the driver to a kernel's tree.
#
#	make.sh KERNEL OUT
#
# KERNEL is a kernel's tree, or as much of one as has the files that the series changes.
# OUT gets the patches, and in OUT/tree the repository that they come from. The author is
# that of git. text/ has the messages and files the places of the sources; what only other
# kernels or user space need is taken out on the way.
set -euo pipefail
kernel=$(realpath "$1") out=$(realpath -m "$2")
cd "$(dirname "$0")"
root=../.. tree=$out/tree
ident=$(git var GIT_AUTHOR_IDENT | sed 's/>.*/>/')
driver=drivers/misc/nfcomms
changed=(MAINTAINERS drivers/misc/Kconfig drivers/misc/Makefile tools/testing/selftests/Makefile
	Documentation/misc-devices/index.rst Documentation/userspace-api/ioctl/ioctl-number.rst)

# resolve: a source as the kernel takes it. Conditions that are known there go, and
# headers are those of their new places.
resolve() {
	awk '
	function known(line) {
		if (line ~ /KERNEL_VERSION\(.*> LINUX_VERSION_CODE/)
			return "no"
		if (line ~ /^#ifdef NFCM_LINES_ARE_COUNTED$/)
			return "no"
		return line ~ /^#(ifdef (__KERNEL__|NFCM_ATTACHMENTS_UNLOCKED|DMA_ATTR_DEBUGGING_IGNORE_CACHELINES)|ifndef NFCM_LINES_ARE_COUNTED)$/ ? "yes" : ""
	}
	/^#if/ { state[++depth] = known($0); if (state[depth] != "") next }
	/^#elif/ && known($0) == "no" { hidden[depth] = 1; next }
	/^#else/ {
		delete hidden[depth]
		if (state[depth] != "") { state[depth] = state[depth] == "yes" ? "no" : "yes"; next }
	}
	/^#endif/ { delete hidden[depth]; if (state[depth--] != "") next }
	{
		for (i = 1; i <= depth; i++)
			if (state[i] == "no" || hidden[i])
				next
		print
	}' | cat -s | sed -e 's,"uapi/\(nfcomms[a-z_]*\.h\)",<uapi/misc/\1>,' -e 's,"nfc_abi\.h",<uapi/misc/nfc_abi.h>,' \
		-e '/linux\/version\.h/d' -e 's,firmware/nfc_abi\.h,nfc_abi.h,'
}

# place NUMBER: the files of a patch. nfc_abi.h keeps what user space includes.
place() {
	local number from to
	while read -r number from to; do
		[ "$number" = "$1" ] || continue
		mkdir -p "$tree/$(dirname "$to")"
		case $from in
		*/nfc_abi.h) sed 's/^NFC_ABI_SIZE/\n&/' "$root/$from" >"$tree/$to" ;;
		*series/data/*) cp "$root/$from" "$tree/$to" ;;
		*.[ch]) resolve <"$root/$from" >"$tree/$to" ;;
		*) cp "$root/$from" "$tree/$to" ;;
		esac
	done <files
}

# objects NUMBER: the lines that a patch adds to the driver's Makefile.
objects() {
	local list
	[ -e "$tree/$driver/Makefile" ] || printf '# SPDX-License-Identifier: GPL-2.0-only\n%s\n%s\n' \
		'obj-$(CONFIG_NFCOMMS) += nfcomms.o' 'ccflags-y += -I$(src) -I$(src)/core'
	list=$(awk -v n="$1" -v d="$driver/" '$1 == n && $3 ~ /\.c$/ && index($3, d) == 1 {sub(d, "", $3); sub(/c$/, "o", $3); print "nfcomms-y += " $3}' files)
	[ -z "$list" ] || echo "$list"
}

# before START FILE: standard input goes before the first line of FILE that begins so.
before() {
	local new
	new=$(cat && echo .)
	if ! new=${new%.} awk -v start="$1" '!done && index($0, start) == 1 {printf "%s", ENVIRON["new"]; done = 1} {print} END {exit !done}' \
		"$tree/$2" >"$out/edited"; then
		echo "make.sh: no line of $2 begins with: $1" >&2
		exit 1
	fi
	mv "$out/edited" "$tree/$2"
}

# edit NUMBER: what a patch changes of the kernel's own files.
edit() {
	case $1 in
	1)
		sed "s/@IDENT@/$ident/" data/maintainers | before 'NFS, SUNRPC' MAINTAINERS
		echo '   nfcomms' | before '   oxsemi-tornado' Documentation/misc-devices/index.rst
		echo "0xE2  00-2F  misc/nfcomms.h, misc/nfcomms_debug.h" | before '0xE5' Documentation/userspace-api/ioctl/ioctl-number.rst
		;;
	9)
		echo "source \"$driver/Kconfig\"" | before 'endmenu' drivers/misc/Kconfig
		printf 'obj-$(CONFIG_NFCOMMS)\t\t+= nfcomms/\n' >>"$tree/drivers/misc/Makefile"
		;;
	10) echo 'TARGETS += drivers/nfcomms' | before 'TARGETS += drivers/s390x' tools/testing/selftests/Makefile ;;
	esac
}

rm -rf "$out"
mkdir -p "$tree"
for file in "${changed[@]}"; do
	mkdir -p "$tree/$(dirname "$file")"
	cp "$kernel/$file" "$tree/$file"
done
git init -q "$tree"
git -C "$tree" add -A
git -C "$tree" commit -q -m "The kernel's own files"
for text in text/*.txt; do
	number=$((10#$(basename "$text" .txt)))
	[ $number -gt 0 ] || continue
	place $number
	if [ -d "$tree/$driver" ]; then
		lines=$(objects $number)
		[ -z "$lines" ] || echo "$lines" >>"$tree/$driver/Makefile"
	fi
	edit $number
	git -C "$tree" add -A
	git -C "$tree" commit -q -s -F "$PWD/$text"
done
git -C "$tree" format-patch -q --cover-letter -o "$out" --root HEAD~$number..HEAD
sed -i "s/\*\*\* SUBJECT HERE \*\*\*/$(head -1 text/00.txt | sed 's,[/&],\\&,g')/" "$out"/0000-*.patch
tail -n +3 text/00.txt >"$out/blurb"
sed -i -e "/\*\*\* BLURB HERE \*\*\*/{r $out/blurb" -e 'd}' "$out"/0000-*.patch
rm "$out/blurb"
echo "$number patches in $out"
