#!/usr/bin/env bash
# Build the module with every warning, sparse it, and hold it to checkpatch. The
# last line is a summary, "N passed, N failed".
#
#	static.sh CHECKPATCH BUILD TRACE_IGNORE NEWEST KDIR…
#
# Against the headers of NEWEST it is only built: sparse and kernel-doc of this
# system do not know what is new there.
set -euo pipefail
cd "$(dirname "$0")/.."

checkpatch=$1 build=$2 trace=$3 newest=$4
shift 4
passed=0 failed=0

# check NAME COMMAND…: a check that is clean says nothing.
check() {
	local name=$1
	shift
	if "$@" >"$build/log" 2>&1 && ! grep -E 'warning|error' "$build/log"; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	echo "FAIL: static: $name"
	cat "$build/log"
}

# compile KDIR [VARIABLE=VALUE…]: the module, in a folder of its own, as another
# build may be under way.
compile() {
	local kdir=$1
	shift
	rm -rf "$build/kmod"
	mkdir -p "$build/kmod"
	cp -r Makefile Kbuild ./*.c ./*.h core uapi "$build/kmod/"
	rm -f "$build"/kmod/core/*.o "$build"/kmod/core/.*.cmd
	rm -f "$build"/kmod/*.mod.c
	make -s -C "$build/kmod" KDIR="$kdir" W=1 CONFIG_DEBUG_INFO_BTF_MODULES= "$@"
}

rm -rf "$build"
mkdir -p "$build/firmware"
cp ../firmware/nfc_abi.h ../firmware/nfc_pci.h "$build/firmware/"
check "gcc W=1 against $newest" compile "$newest" PAHOLE_VERSION= CONFIG_PAHOLE_VERSION=
for kdir in "$@"; do
	check "gcc W=1 and sparse against $kdir" compile "$kdir" C=2 CF=-D__CHECK_ENDIAN__
	documented() { "$kdir/scripts/kernel-doc" -none -Werror "$@"; }
	check "kernel-doc of $kdir" documented uapi/*.h core/nfcm_*.h nfcm_*.h trace.h
	# A member that is not described is found.
	sed '/^ \* @width/d' uapi/nfcomms_debug.h >"$build/undescribed.h"
	forgotten() { ! documented "$build/undescribed.h" 2>"$build/forgotten"; }
	check "kernel-doc of $kdir: a member forgotten" forgotten
done
# Without the list of upcalls each of them is a call upwards, which is found.
upward() { ! ORDER=<(sed 's/---- upcalls ----/---- none ----/' nfcm_kmod.h) test/layers.sh "$build"/kmod/nfcm_*.o; }
check "layers of the module" test/layers.sh "$build"/kmod/nfcm_*.o
check "layers: an upward call" upward
# The versions of the kernel are told apart in one header, nfcm_compat.h.
# nfcm_user.h stands in for the kernel, in user space.
check "checkpatch --strict" perl "$checkpatch" --no-tree --strict --quiet --ignore LINUX_VERSION_CODE -f nfcm_*.c nfcm_*.h core/*.c core/nfcm_[!u]*.h uapi/*.h
check "checkpatch --strict trace.h" perl "$checkpatch" --no-tree --strict --quiet --ignore "$trace" -f trace.h
check "the series of patches" test/series.sh "$checkpatch" "$build/series"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
