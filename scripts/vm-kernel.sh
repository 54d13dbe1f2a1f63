#!/usr/bin/env bash
# Obtain a Debian kernel and its headers without installing them, and print its
# folder.
#
#	scripts/vm-kernel.sh release     the kernel of this Debian release
#	scripts/vm-kernel.sh backports   the current stable kernel, from backports
#	scripts/vm-kernel.sh arm64       that of this Debian release for arm64
#
# The folder holds vmlinuz, config, version and build, the KDIR for modules:
# make -C kmod KDIR=$(scripts/vm-kernel.sh release)/build
# It is kept below .cache/vm; remove it to obtain a newer one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

kind=${1:-}
arch=amd64
case $kind in
release | backports) ;;
arm64)
	arch=arm64
	# shellcheck disable=SC2034 # of vm-apt.sh
	VM_FOREIGN=arm64
	;;
*) vm_die "usage: $0 release|backports|arm64" ;;
esac
dir=$VM_CACHE/kernel-$kind

# fix_headers FOLDER KBUILD: the packages expect to lie in /usr, and their module
# type information needs a tool and a vmlinux that are not here.
fix_headers() {
	local root=$1 headers=$2 file
	for file in "$headers"/Makefile "$headers"/.kernelvariables; do
		[ -e "$file" ] && sed -i "s#/usr/src/#$root/usr/src/#g" "$file"
	done
	find "$root/usr/src" -type l | while read -r link; do
		target=$(readlink "$link")
		case $target in
		/usr/*) ln -sfn "$root$target" "$link" ;;
		esac
	done
	sed -i '/^CONFIG_DEBUG_INFO_BTF/d' "$headers/include/config/auto.conf"
}

vm_lock "kernel-$kind"
# The headers name their own folder: a cache that was moved is obtained anew.
if [ "$(cat "$dir/complete" 2>/dev/null)" = "$dir" ]; then
	echo "$dir"
	exit
fi

codename=$(vm_codename)
[ -n "$codename" ] || vm_die "needs Debian's kernel packages, and this is not Debian; boot another with: bin/vmtest -kernel DIR"
mapfile -t sources < <(vm_mirrors)
if [ "$kind" = backports ]; then
	site=$(vm_site "$codename")
	[ -n "$site" ] || vm_die "no mirror for $codename in the apt configuration"
	sources+=("$site $codename-backports")
fi
vm_open "${sources[@]}"
[ "$kind" = backports ] && echo "APT::Default-Release \"$codename-backports\";" >>"$APT_CONFIG"

# The headers' tools run here, whatever they are for.
image=$(vm_depends "linux-image-$arch:$arch" '^linux-image-[0-9]')
release=${image#linux-image-}
headers=linux-headers-$release
mapfile -t parts < <(vm_depends "$headers:$arch" '^linux-(headers|kbuild)-')
vm_download "$image:$arch" "$headers:$arch" "${parts[@]}"
rm -rf "$dir"
mkdir -p "$dir/root"
for deb in "$VM_TMP"/debs/*.deb; do
	case $deb in
	*/linux-image-*)
		# Not the modules (400 MB).
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$VM_TMP" --wildcards './boot/*'
		mv "$VM_TMP"/boot/vmlinuz-* "$dir/vmlinuz"
		mv "$VM_TMP"/boot/config-* "$dir/config"
		;;
	*) dpkg-deb -x "$deb" "$dir/root" ;;
	esac
done
fix_headers "$dir/root" "$dir/root/usr/src/$headers"
ln -s "root/usr/src/$headers" "$dir/build"
echo "$release" >"$dir/version"
vm_log "$kind kernel"
echo "$dir" >"$dir/complete"
echo "$dir"
