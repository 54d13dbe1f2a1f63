#!/usr/bin/env bash
# Obtain a Debian kernel and its headers without installing them, and print its
# folder.
#
#	scripts/vm-kernel.sh release     the kernel of this Debian release
#	scripts/vm-kernel.sh backports   the current stable kernel, from backports
#	scripts/vm-kernel.sh arm64       that of this Debian release for arm64
#	scripts/vm-kernel.sh newest      headers only: the newest kernel, from trixie-backports
#
# The folder holds vmlinuz, config, version, the modules of VFIO in modules, and
# build, the KDIR for modules:
# make -C kmod KDIR=$(scripts/vm-kernel.sh release)/build
# It is kept below .cache/vm; remove it to obtain a newer one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

kind=${1:-}
arch=amd64
case $kind in
release | backports | newest) ;;
arm64)
	arch=arm64
	# shellcheck disable=SC2034 # of vm-apt.sh
	VM_FOREIGN=arm64
	;;
*) vm_die "usage: $0 release|backports|arm64|newest" ;;
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

# fit_headers HEADERS: have this release's compiler do with those of a later one.
# It has not all options, objtool goes, and modpost runs with the later libc.
fit_headers() {
	local headers=$1 modpost
	sed -i 's/gcc-[0-9]*$/gcc/' "$headers/.kernelvariables"
	sed -i '/CONFIG_CC_HAS_\(MIN_FUNCTION_ALIGNMENT\|ASSUME\)\b/d' "$headers"/include/{config/auto.conf,generated/autoconf.h}
	sed -i '/^CONFIG_OBJTOOL=/d' "$headers/include/config/auto.conf"
	mkdir "$dir/lib"
	(cd "$dir/root" && cp -L usr/lib/x86_64-linux-gnu/{ld-linux-x86-64.so.2,libc.so.6} "$dir/lib/")
	modpost=$(realpath "$headers/scripts/mod")/modpost
	printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' "$dir/lib/ld-linux-x86-64.so.2" "$dir/lib" "$modpost.real-lsb-64" >"$modpost"
}

vm_lock "kernel-$kind"
# The headers name their own folder: a cache that was moved is obtained anew. So is one of before.
made="$dir with modules"
if [ "$(cat "$dir/complete" 2>/dev/null)" = "$made" ]; then
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
if [ "$kind" = newest ]; then
	vm_need "the headers of the newest kernel"
	sources=("$site trixie" "$site trixie-backports")
	codename=trixie
fi
vm_open "${sources[@]}"
[[ $kind != backports && $kind != newest ]] || echo "APT::Default-Release \"$codename-backports\";" >>"$APT_CONFIG"

# The headers' tools run here, whatever they are for.
image=$(vm_depends "linux-image-$arch:$arch" '^linux-image-[0-9]')
release=${image#linux-image-}
headers=linux-headers-$release
mapfile -t parts < <(vm_depends "$headers:$arch" '^linux-(headers|kbuild)-')
if [ "$kind" = newest ]; then
	vm_download "$headers" "${parts[@]}" libc6
else
	vm_download "$image:$arch" "$headers:$arch" "${parts[@]}"
fi
rm -rf "$dir"
mkdir -p "$dir/root"
for deb in "$VM_TMP"/debs/*.deb; do
	case $deb in
	*/linux-image-*)
		# Not the other modules (400 MB). tar fails by a pattern that nothing matches.
		unpacked=('./boot/*' './lib/modules/*/kernel/drivers/vfio/*')
		[ "$arch" != amd64 ] || unpacked+=('./lib/modules/*/kernel/virt/lib/*')
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$VM_TMP" --wildcards "${unpacked[@]}"
		mkdir "$dir/modules"
		find "$VM_TMP/lib/modules" -name '*.ko*' -exec mv -t "$dir/modules" {} +
		mv "$VM_TMP"/boot/vmlinuz-* "$dir/vmlinuz"
		mv "$VM_TMP"/boot/config-* "$dir/config"
		;;
	*) dpkg-deb -x "$deb" "$dir/root" ;;
	esac
done
fix_headers "$dir/root" "$dir/root/usr/src/$headers"
[ "$kind" != newest ] || fit_headers "$dir/root/usr/src/$headers"
ln -s "root/usr/src/$headers" "$dir/build"
echo "$release" >"$dir/version"
vm_log "$kind kernel"
echo "$made" >"$dir/complete"
echo "$dir"
