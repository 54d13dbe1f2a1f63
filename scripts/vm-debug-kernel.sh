#!/usr/bin/env bash
# Build a debug kernel for QEMU from Debian's kernel source (tinyconfig and
# fragments of internal/vmtest/config) and print its folder.
#
#	scripts/vm-debug-kernel.sh debug   this Debian release's: KASAN and all other checks
#	scripts/vm-debug-kernel.sh newer   the same of Debian's next kernel
#	scripts/vm-debug-kernel.sh kcsan   that one with KCSAN in place of KASAN
#
# The folder holds the kernel (bzImage), config, build.log and build, the KDIR for
# modules. It is kept below .cache/vm, keyed by the version of the source and the
# hash of the configuration: some twelve minutes of processor time, once.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/vm-apt.sh

package=linux-source-6.12
options=()
case ${1:-debug} in
debug)
	fragments=(debug)
	package= # which one linux-source says
	;;
newer) fragments=(debug newer) ;;
kcsan)
	fragments=(debug newer kcsan)
	options=(KCSAN_SANITIZE=n) # of the kernel: modules are built without this
	;;
*) vm_die "usage: $0 [debug|newer|kcsan]" ;;
esac
fragments=("${fragments[@]/#/$PWD/internal/vmtest/config/}")
fragments=("${fragments[@]/%/.config}")
hash=$(cat "${fragments[@]}" | sha256sum | cut -c1-12)

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
		[ -e "$source/complete" ] && [ "$(cat "$source/complete")" = "$package" ] || continue
		version=${source##*/source-}
		return
	done
	codename=$(vm_codename)
	[ -n "$codename" ] || vm_die "needs Debian's kernel source, and this is not Debian"
	mapfile -t mirrors < <(vm_mirrors)
	vm_open "${mirrors[@]}"
	name=${package:-$(vm_depends linux-source '^linux-source-[0-9]')}
	vm_download "$name"
	vm_log "debug kernel source"
	version=$(dpkg-deb -W --showformat '${Version}' "$VM_TMP"/debs/*.deb | tr '~' -)
	source=$VM_CACHE/source-$version
	rm -rf "$source"
	mkdir -p "$source"
	dpkg-deb -x "$VM_TMP"/debs/*.deb "$VM_TMP/source"
	tar -xf "$VM_TMP"/source/usr/src/linux-source-*.tar.xz -C "$source" --strip-components=1
	printf %s "$package" >"$source/complete"
}

# wanted: the lines of the fragments, of each option the last one.
wanted() { cat "${fragments[@]}" | tac | awk -F= '!seen[$1]++'; }

# configure DIR: the base configuration and the fragments. A line that the kernel
# does not take would weaken every run: it is an error.
configure() {
	local build=$1 line lost=()
	make -C "$source" O="$build" ARCH=x86_64 tinyconfig
	"$source/scripts/kconfig/merge_config.sh" -m -O "$build" "$build/.config" "${fragments[@]}"
	make -C "$source" O="$build" ARCH=x86_64 olddefconfig
	while read -r line; do
		case $line in
		CONFIG_*=n) grep -q "^${line%=n}=" "$build/.config" && lost+=("$line") ;;
		CONFIG_*) grep -qxF "$line" "$build/.config" || lost+=("$line") ;;
		esac
	done < <(wanted)
	[ ${#lost[@]} -eq 0 ] || vm_die "the kernel does not take: ${lost[*]}"
}

# Others use kernels that are complete while one is built.
if dir=$(have); then
	echo "$dir"
	exit
fi
vm_lock "debug-$hash"
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
	make -C "$source" O="$dir/build" ARCH=x86_64 -j"$(nproc)" "${options[@]}" bzImage modules
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
