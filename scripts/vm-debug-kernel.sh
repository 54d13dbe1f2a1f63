#!/usr/bin/env bash
# Build a debug kernel for QEMU from Debian's kernel source (tinyconfig and
# debug.config) and print its folder.
#
# The folder holds the kernel (bzImage), config, build.log and build, the KDIR for
# modules. It is kept below .cache/vm, keyed by the version of the source and the
# hash of the configuration: some twelve minutes of processor time, once.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

fragment=$PWD/internal/vmtest/config/debug.config
hash=$(sha256sum <"$fragment" | cut -c1-12)

# have: the kernel of this hash that is complete and was not moved.
have() {
	local dir
	for dir in "$VM_CACHE/debug-"*"-$hash"; do
		[ "$(cat "$dir/complete" 2>/dev/null)" = "$dir" ] && echo "$dir" && return
	done
	return 1
}

# obtain_source: unpack Debian's kernel source; sets version and source.
obtain_source() {
	local codename
	for source in "$VM_CACHE"/source-*; do
		[ -e "$source/complete" ] || continue
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
	touch "$source/complete"
}

# configure DIR: the base configuration and the fragment. A line of the fragment
# that the kernel does not take would weaken every run: it is an error.
configure() {
	local build=$1 line lost=()
	make -C "$source" O="$build" ARCH=x86_64 tinyconfig
	"$source/scripts/kconfig/merge_config.sh" -m -O "$build" "$build/.config" "$fragment"
	make -C "$source" O="$build" ARCH=x86_64 olddefconfig
	while read -r line; do
		case $line in
		CONFIG_*=n) grep -q "^${line%=n}=" "$build/.config" && lost+=("$line") ;;
		CONFIG_*) grep -qxF "$line" "$build/.config" || lost+=("$line") ;;
		esac
	done <"$fragment"
	[ ${#lost[@]} -eq 0 ] || vm_die "the kernel does not take: ${lost[*]}"
}

vm_lock debug
if dir=$(have); then
	echo "$dir"
	exit
fi
obtain_source
dir=$VM_CACHE/debug-$version-$hash
rm -rf "$dir"
mkdir -p "$dir/build"
echo "$(basename "$0"): building $dir, about twelve minutes of processor time" >&2
start=$SECONDS
# In the background, as bash forgets -e inside a condition.
(
	configure "$dir/build"
	make -C "$source" O="$dir/build" ARCH=x86_64 -j"$(nproc)" bzImage modules
) >"$dir/build.log" 2>&1 &
if ! wait $!; then
	tail -n 30 "$dir/build.log" >&2
	vm_die "the build failed: $dir/build.log"
fi
cp "$dir/build/arch/x86/boot/bzImage" "$dir/build/.config" "$dir/"
mv "$dir/.config" "$dir/config"
echo "built in $((SECONDS - start)) s" | tee -a "$dir/build.log" >&2
echo "$dir" >"$dir/complete"
echo "$dir"
