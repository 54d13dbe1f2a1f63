#!/usr/bin/env bash
# Obtain a QEMU that can attach a vfio-user device (10.1 or later) and print the
# command that runs it: the system's own if it can, otherwise one from Debian's
# trixie-backports below .cache/vm, with its libraries and nothing installed.
#
#	scripts/vm-qemu.sh          one for guests like this machine
#	scripts/vm-qemu.sh arm64    one for guests of arm64
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

# able COMMAND: does this QEMU run, and know the device? It loads no more modules
# for that than the device needs.
able() {
	[[ $("$@" -device vfio-user-pci,help 2>/dev/null) == "vfio-user-pci options:"* ]]
}

case ${1:-} in
'')
	program=qemu-system-x86_64 package=qemu-system-x86 dir=$VM_CACHE/qemu
	roms=(qemu/linuxboot_dma.bin qemu/pvh.bin qemu/kvmvapic.bin seabios/bios-256k.bin)
	;;
arm64)
	program=qemu-system-aarch64 package=qemu-system-arm dir=$VM_CACHE/qemu-arm64
	roms=()
	;;
*) vm_die "usage: $0 [arm64]" ;;
esac
if command -v "$program" >/dev/null && able "$program"; then
	command -v "$program"
	exit
fi

vm_lock "$(basename "$dir")"
# QEMU takes a folder of this name beside its program, here the loader, for the
# root of its modules and settings. It is empty: modules of /usr/lib are those of
# the system's QEMU, and one of another build may end the program that loads it.
bundle=$dir/lib/qemu-bundle
if [ -e "$dir/complete" ]; then
	mkdir -p "$bundle"
	echo "$dir/qemu"
	exit
fi

vm_need "a QEMU with vfio-user-pci (10.1 or later, which can also be installed)"
vm_open "$site trixie" "$site trixie-backports"
echo 'APT::Default-Release "trixie-backports";' >>"$APT_CONFIG"
vm_unpack "$package"

# Keep the program, the libraries it loads and the firmware the machine needs.
lib=usr/lib/x86_64-linux-gnu
loader=$VM_TMP/all/$lib/ld-linux-x86-64.so.2
rm -rf "$dir"
mkdir -p "$dir/bin" "$bundle" "$dir/share"
cp "$VM_TMP/all/usr/bin/$program" "$dir/bin/qemu"
cp "$loader" "$dir/lib/"
vm_libraries "$loader" "$VM_TMP/all/$lib" "$dir/bin/qemu" "$dir/lib"
for rom in "${roms[@]}"; do
	cp -L "$VM_TMP/all/usr/share/$rom" "$dir/share/"
done
cat >"$dir/qemu" <<'END'
#!/bin/sh
# QEMU with its own loader and libraries; exec keeps the process id.
here=${0%/*}
exec "$here/lib/ld-linux-x86-64.so.2" --library-path "$here/lib" "$here/bin/qemu" -L "$here/share" "$@"
END
chmod +x "$dir/qemu"
able "$dir/qemu" || vm_die "$package of trixie-backports does not run or has no vfio-user-pci"
vm_log "$(basename "$dir")"
touch "$dir/complete"
echo "$dir/qemu"
