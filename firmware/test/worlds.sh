#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compile in the worlds the firmware must live in.
#
#   worlds.sh header    nfc_abi.h freestanding, and as the kernel includes it
#   worlds.sh bare      the firmware core for bare-metal RISC-V; it may need
#                       memcpy, memmove, memset and memcmp from its host, no more
#   worlds.sh           both
#
# CC, CROSS (prefix of the cross compiler) and BUILD (output folder) may be set.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
firmware=$(dirname "$here")
CC=${CC:-gcc}
CROSS=${CROSS:-riscv64-unknown-elf-}
if [ -z "${BUILD:-}" ]; then
	BUILD=$(mktemp -d)
	trap 'rm -rf "$BUILD"' EXIT
fi
mkdir -p "$BUILD"
warnings="-Wall -Wextra -Wpedantic -Werror"

need() {
	command -v "$1" >/dev/null || {
		echo "worlds.sh: $1 is missing; install it with: apt-get install $2" >&2
		exit 1
	}
}

header() {
	need "$CC" gcc
	include=$("$CC" -print-file-name=include)
	echo '#include "nfc_abi.h"' >"$BUILD/header.c"
	echo 'int header(void) { return (int)nfc_header_type(nfc_header(1, 2, 3, 4, 5)); }' >>"$BUILD/header.c"
	# Freestanding: nothing but the compiler's own headers.
	"$CC" -std=c11 -ffreestanding -nostdinc -isystem "$include" $warnings \
		-I"$firmware" -c -o "$BUILD/header_bare.o" "$BUILD/header.c"
	echo "ok header freestanding"
	# Kernel conventions: nothing but the kernel's headers, here stubs.
	"$CC" -std=gnu11 -D__KERNEL__ -ffreestanding -nostdinc -Wall -Wextra -Werror \
		-Wdeclaration-after-statement -I"$here/kernel_stub" -I"$firmware" \
		-c -o "$BUILD/header_kernel.o" "$BUILD/header.c"
	echo "ok header kernel"
}

bare() {
	need "${CROSS}gcc" gcc-riscv64-unknown-elf
	need "${CROSS}ld" binutils-riscv64-unknown-elf
	objects=
	for source in "$firmware"/core/*.c "$firmware"/link/*.c "$firmware"/programs/*.c; do
		room=$(basename "$(dirname "$source")")
		object=$BUILD/bare_${room}_$(basename "$source" .c).o
		"${CROSS}gcc" -std=c11 -ffreestanding -O2 $warnings -c -o "$object" "$source"
		objects="$objects $object"
	done
	# shellcheck disable=SC2086 # a list of words
	"${CROSS}ld" -r -o "$BUILD/bare.o" $objects
	needs=$("${CROSS}nm" -u "$BUILD/bare.o" | sed 's/^ *U //')
	for symbol in $needs; do
		case $symbol in
		memcpy | memmove | memset | memcmp) ;;
		*)
			echo "worlds.sh: the firmware core needs $symbol" >&2
			exit 1
			;;
		esac
	done
	echo "ok firmware bare metal"
}

case ${1:-all} in
header) header ;;
bare) bare ;;
all)
	header
	bare
	;;
*)
	echo "usage: worlds.sh [header|bare]" >&2
	exit 2
	;;
esac
