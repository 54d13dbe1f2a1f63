#!/usr/bin/env bash
# Make sure that the tools of a make target are there.
#
#	scripts/deps.sh build    what a build and the demo need
#	scripts/deps.sh test     what the tests and the linters need as well
#	scripts/deps.sh packages what building the packages needs
#	scripts/deps.sh kubernetes what a control plane of Kubernetes needs
#	scripts/deps.sh vm       what a virtual machine with the kernel module needs
#	scripts/deps.sh vm-debug what the build of a debug kernel needs as well
#	scripts/deps.sh vm-arm what one of another processor needs as well
#
# As root on a machine with apt-get, missing Debian packages are installed;
# otherwise the script says which they are and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-test}
missing=()

# need COMMAND PACKAGE…: the command comes with these packages.
need() {
	local cmd=$1
	shift
	command -v "$cmd" >/dev/null || missing+=("$@")
}

# A Go older than go.mod asks for fetches a newer one by itself, if it may.
if ! command -v go >/dev/null; then
	echo "deps: go is missing: install Go $(awk '$1 == "go" {print $2}' go.mod) or later (https://go.dev/doc/install)" >&2
	exit 1
fi
need gcc gcc libc6-dev
need make make
if command -v gcc >/dev/null && ! echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1; then
	missing+=(libc6-dev)
fi
if [ "$what" = test ]; then
	need git git
	need gdb gdb
	need gpg gpg
	need gpg-agent gpg-agent
	need addr2line binutils
	need systemd-analyze systemd
	need mandoc mandoc
	need perl perl
	need python3 python3
	need sparse sparse
	need spin spin
	need pkg-config pkg-config
	need clang-format-14 clang-format-14
	need clang-14 clang-14 libclang-rt-14-dev
	need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross
	need qemu-aarch64 qemu-user
	need riscv64-unknown-elf-gcc gcc-riscv64-unknown-elf
	need riscv64-unknown-elf-ld binutils-riscv64-unknown-elf
fi
if [ "$what" = packages ]; then
	need dkms dkms
	need dpkg-deb dpkg
	need gpg gpg
	need gpg-agent gpg-agent
	need objdump binutils
	need mmdebstrap mmdebstrap
	need podman podman
	need rpm rpm
	need systemd-nspawn systemd-container
	need nsenter util-linux
	need perl perl
fi
if [ "$what" = kubernetes ]; then
	need etcd etcd-server
	need unshare util-linux
fi
case $what in
vm* | packages)
	need strip binutils
	need flock util-linux
	need xz xz-utils
	need zstd zstd
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
	# The tools in the kernel's headers load it.
	/sbin/ldconfig -p | grep -q 'libelf\.so\.1' || missing+=(libelf1)
	;;
esac
if [ "$what" = vm-arm ]; then
	need aarch64-linux-gnu-gcc-12 gcc-aarch64-linux-gnu gcc-12-aarch64-linux-gnu libc6-dev-arm64-cross
fi
if [ "$what" = vm-debug ]; then
	need bc bc
	need bison bison
	need flex flex
	need patch patch
	echo '#include <gelf.h>' | gcc -E - >/dev/null 2>&1 || missing+=(libelf-dev)
fi

# Prometheus is unpacked, not installed; the script says what is wrong.
if [ "$what" = test ]; then
	scripts/prometheus.sh >/dev/null
fi

[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
	echo "deps: installing ${missing[*]}" >&2
	export DEBIAN_FRONTEND=noninteractive
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	# The package lists of a fresh image are empty or old: read them once.
	if ! { apt-get update -q && apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
		cat "$log" >&2
		echo "deps: could not install ${missing[*]}" >&2
		exit 1
	fi
	exit 0
fi
echo "deps: missing Debian packages: ${missing[*]}" >&2
echo "deps: install them with: sudo apt-get install ${missing[*]}" >&2
exit 1
