#!/usr/bin/env bash
# Obtain a static busybox for the guest's shell, from Debian, and print its path.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

vm_lock busybox
file=$VM_CACHE/busybox
if [ ! -x "$file" ]; then
	codename=$(vm_codename)
	site=
	[ -z "$codename" ] || site=$(vm_site "$codename")
	[ -n "$site" ] || vm_die "needs Debian's busybox-static, and there is no Debian mirror in the apt configuration"
	vm_open "$site $codename"
	vm_download busybox-static
	dpkg-deb -x "$VM_TMP"/debs/*.deb "$VM_TMP/root"
	vm_log busybox
	find "$VM_TMP/root" -name busybox -type f -exec mv {} "$file" \;
fi
echo "$file"
