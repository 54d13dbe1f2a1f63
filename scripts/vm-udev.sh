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

vm_need udev
vm_open "$site $codename"
vm_unpack udev kmod

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
	vm_libraries "$loader" "$all/$lib:$all/usr/$lib" "$all/$program" "$dir/root/$lib"
done
cp "$all/lib/udev/rules.d/80-drivers.rules" "$dir/root/lib/udev/rules.d/"
vm_log udev
touch "$dir/complete"
echo "$dir/root"
