#!/usr/bin/env bash
# Build a debug kernel from Debian's kernel source and print its folder.
#
#	scripts/vm-debug-kernel.sh x86    for QEMU: tinyconfig and debug-x86.config
#	scripts/vm-debug-kernel.sh um     User-Mode Linux: defconfig and debug-um.config
#
# The folder holds the kernel (bzImage or linux), config, build.log and build, the
# KDIR for modules. It is kept below .cache/vm, keyed by the version of the source
# and the hash of what we add: some twelve minutes of processor time, once.
#
# The source is patched for User-Mode Linux, whose bus is not fit for a device
# that interrupts: see the patch.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

case ${1:-} in
x86) arch=x86_64 base=tinyconfig image=arch/x86/boot/bzImage target=bzImage ;;
um) arch=um base=defconfig image=linux target=linux ;;
*) vm_die "usage: $0 x86|um" ;;
esac
kind=$1
fragment=$PWD/internal/vmtest/config/debug-$kind.config
patch=$PWD/internal/vmtest/config/um-virt-pci.patch
ours=("$fragment")
[ "$kind" = x86 ] || ours+=("$patch")
hash=$(cat "${ours[@]}" | sha256sum | cut -c1-12)

# have: the kernel of this hash that is complete and was not moved.
have() {
	local dir
	for dir in "$VM_CACHE/debug-$kind-"*"-$hash"; do
		[ "$(cat "$dir/complete" 2>/dev/null)" = "$dir" ] && echo "$dir" && return
	done
	return 1
}

# obtain_source: unpack and patch Debian's kernel source; sets version and source.
obtain_source() {
	local codename
	for source in "$VM_CACHE"/source-*; do
		cmp -s "$patch" "$source/complete" || continue
		version=${source##*/source-}
		return
	done
	codename=$(vm_codename)
	[ -n "$codename" ] || vm_die "needs Debian's kernel source, and this is not Debian"
	mapfile -t mirrors < <(vm_mirrors)
	vm_open "${mirrors[@]}"
	name=$(vm_depends linux-source '^linux-source-[0-9]')
	vm_download "$name"
	vm_log "debug kernel source"
	version=$(dpkg-deb -W --showformat '${Version}' "$VM_TMP"/debs/*.deb)
	source=$VM_CACHE/source-$version
	rm -rf "$source"
	mkdir -p "$source"
	dpkg-deb -x "$VM_TMP"/debs/*.deb "$VM_TMP/source"
	tar -xf "$VM_TMP"/source/usr/src/linux-source-*.tar.xz -C "$source" --strip-components=1
	patch -d "$source" -p1 --quiet <"$patch"
	cp "$patch" "$source/complete"
}

# configure DIR: the base configuration and the fragment. A line of the fragment
# that the kernel does not take would weaken every run: it is an error.
configure() {
	local build=$1 line lost=()
	make -C "$source" O="$build" ARCH="$arch" "$base"
	"$source/scripts/kconfig/merge_config.sh" -m -O "$build" "$build/.config" "$fragment"
	make -C "$source" O="$build" ARCH="$arch" olddefconfig
	while read -r line; do
		case $line in
		CONFIG_*=n) grep -q "^${line%=n}=" "$build/.config" && lost+=("$line") ;;
		CONFIG_*) grep -qxF "$line" "$build/.config" || lost+=("$line") ;;
		esac
	done <"$fragment"
	[ ${#lost[@]} -eq 0 ] || vm_die "the kernel does not take: ${lost[*]}"
}

vm_lock "debug-$kind"
if dir=$(have); then
	echo "$dir"
	exit
fi
obtain_source
dir=$VM_CACHE/debug-$kind-$version-$hash
rm -rf "$dir"
mkdir -p "$dir/build"
echo "$(basename "$0"): building $dir, about twelve minutes of processor time" >&2
start=$SECONDS
# In the background, as bash forgets -e inside a condition.
(
	configure "$dir/build"
	make -C "$source" O="$dir/build" ARCH="$arch" -j"$(nproc)" "$target" modules
) >"$dir/build.log" 2>&1 &
if ! wait $!; then
	tail -n 30 "$dir/build.log" >&2
	vm_die "the build failed: $dir/build.log"
fi
cp "$dir/build/$image" "$dir/build/.config" "$dir/"
mv "$dir/.config" "$dir/config"
echo "built in $((SECONDS - start)) s" | tee -a "$dir/build.log" >&2
echo "$dir" >"$dir/complete"
echo "$dir"
