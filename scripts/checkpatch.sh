#!/usr/bin/env bash
# Obtain the kernel's checkpatch.pl and print its path: out of Debian's kernel
# source, of which only what kmod/series/make.sh changes is kept besides. An unpacked
# source is used as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

for source in "$VM_CACHE"/source-*; do
	[ -e "$source/complete" ] || continue
	echo "$source/scripts/checkpatch.pl"
	exit
done

vm_lock checkpatch
dir=$VM_CACHE/checkpatch
if [ ! -e "$dir/scripts/checkpatch.pl" ]; then
	[ -n "$(vm_codename)" ] || vm_die "needs Debian's kernel source, and this is not Debian: give CHECKPATCH=FILE"
	mapfile -t mirrors < <(vm_mirrors)
	vm_open "${mirrors[@]}"
	vm_download "$(vm_depends linux-source '^linux-source-[0-9]')"
	vm_log checkpatch
	rm -rf "$dir"
	mkdir -p "$dir"
	dpkg-deb --fsys-tarfile "$VM_TMP"/debs/*.deb | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | xz -dc -T0 |
		tar -x -C "$dir" --strip-components=1 --wildcards '*/Documentation/misc-devices/index.rst' \
			'*/Documentation/userspace-api/ioctl/ioctl-number.rst' 'linux-source-*/MAINTAINERS' '*/drivers/misc/Kconfig' \
			'*/drivers/misc/Makefile' '*/tools/testing/selftests/Makefile' '*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' \
			'*/scripts/checkpatch.pl'
fi
echo "$dir/scripts/checkpatch.pl"
