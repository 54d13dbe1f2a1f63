#!/usr/bin/env bash
# Build the module with every warning, sparse it, and hold it to checkpatch.
#
#	static.sh KDIR CHECKPATCH BUILD TRACE_IGNORE
set -euo pipefail
cd "$(dirname "$0")/.."

kdir=$1 checkpatch=$2 build=$3 trace=$4
rm -rf "$build"
mkdir -p "$build/kmod" "$build/firmware"
cp -r Makefile Kbuild ./*.c ./*.h uapi "$build/kmod/"
rm -f "$build"/kmod/*.mod.c
cp ../firmware/nfc_abi.h ../firmware/nfc_pci.h "$build/firmware/"

log=$build/log
make -s -C "$build/kmod" KDIR="$kdir" W=1 C=2 CF=-D__CHECK_ENDIAN__ CONFIG_DEBUG_INFO_BTF_MODULES= >"$log" 2>&1 || {
	cat "$log"
	exit 1
}
if grep -E 'warning|error' "$log"; then
	echo "static: the build or sparse complains" >&2
	exit 1
fi
# The versions of the kernel are told apart in one header, nfc_compat.h.
perl "$checkpatch" --no-tree --strict --quiet --ignore LINUX_VERSION_CODE -f nfc_*.c nfc_*.h uapi/*.h
perl "$checkpatch" --no-tree --strict --quiet --ignore "$trace" -f trace.h
echo "static: no warning of gcc W=1, sparse or checkpatch --strict"
