#!/usr/bin/env bash
# Obtain a static busybox for the guest's shell, from Debian, and print its path.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

vm_lock busybox
file=$VM_CACHE/busybox
if [ ! -x "$file" ]; then
	vm_need busybox-static
	vm_open "$site $codename"
	vm_download busybox-static
	dpkg-deb -x "$VM_TMP"/debs/*.deb "$VM_TMP/root"
	vm_log busybox
	find "$VM_TMP/root" -name busybox -type f -exec mv {} "$file" \;
fi
echo "$file"
