#!/usr/bin/env bash
# Make sure that a Debian with systemd is there to boot as a container, and print
# its archive: the machine's own release, from the machine's own mirror, made once
# below .cache. It needs root and mmdebstrap.
set -euo pipefail
cd "$(dirname "$0")/.."

codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
# sudo is what docs/operations.md uses, gcc and pkg-config what a user of the
# library has.
packages=systemd-sysv,udev,passwd,sudo,gcc,libc6-dev,pkg-config
archive=$PWD/.cache/rootfs/$codename-$(sha256sum <<<"$packages" | cut -c1-8).tar

mkdir -p "$(dirname "$archive")"
exec 9>"$(dirname "$archive")/.lock"
flock 9
if [ ! -e "$archive" ]; then
	log=$(mktemp)
	trap 'rm -f "$log" "$archive.new"' EXIT
	if ! mmdebstrap --variant=minbase --include="$packages" --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' --format=tar "$codename" "$archive.new" >"$log" 2>&1; then
		cat "$log" >&2
		echo "rootfs.sh: could not make a Debian $codename" >&2
		exit 1
	fi
	mv "$archive.new" "$archive"
fi
echo "$archive"
