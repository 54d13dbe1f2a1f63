#!/usr/bin/env bash
# Obtain Debian's udev and kmod without installing them, and print a folder that
# holds them as they lie in a guest's root, with the libraries they load.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

vm_lock udev
dir=$VM_CACHE/udev
if [ -e "$dir/complete" ]; then
	echo "$dir/root"
	exit
fi

codename=$(vm_codename)
site=
[ -z "$codename" ] || site=$(vm_site "$codename")
[ -n "$site" ] || vm_die "needs Debian's udev, and there is no Debian mirror in the apt configuration"
vm_open "$site $codename"
vm_quiet apt-get -q -y --download-only install udev kmod
mkdir -p "$VM_TMP/debs" "$VM_TMP/all"
mv "$VM_TMP"/apt/cache/archives/*.deb "$VM_TMP/debs/"
for deb in "$VM_TMP"/debs/*.deb; do
	dpkg-deb -x "$deb" "$VM_TMP/all"
done

# Programs where they are called, libraries where the loader looks, and the rule
# by which a device gets its driver.
all=$VM_TMP/all
lib=lib/x86_64-linux-gnu
loader=$all/$lib/ld-linux-x86-64.so.2
rm -rf "$dir"
mkdir -p "$dir/root/bin" "$dir/root/lib64" "$dir/root/$lib" "$dir/root/lib/udev/rules.d"
cp "$loader" "$dir/root/lib64/"
for program in bin/udevadm bin/kmod; do
	cp "$all/$program" "$dir/root/$program"
	"$loader" --library-path "$all/$lib:$all/usr/$lib" --list "$all/$program" |
		awk '$2 == "=>" {print $3}' | xargs -I{} cp -L {} "$dir/root/$lib/"
done
cp "$all/lib/udev/rules.d/80-drivers.rules" "$dir/root/lib/udev/rules.d/"
vm_log udev
touch "$dir/complete"
echo "$dir/root"
