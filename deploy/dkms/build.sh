#!/usr/bin/env bash
# Build the Debian package of the kernel module.
#
#	deploy/dkms/build.sh [FOLDER]    write nfcomms-dkms_VERSION_all.deb to FOLDER (bin)
#
# The version stands in one place, kmod/nfcm_kmod.h. Equal sources give an equal
# package: times come from the last commit, or SOURCE_DATE_EPOCH.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${1:-bin}
version=$(sed -n 's/^#define NFCM_MODULE_VERSION "\(.*\)"$/\1/p' kmod/nfcm_kmod.h)
[ -n "$version" ] || { echo "build.sh: kmod/nfcm_kmod.h has no NFCM_MODULE_VERSION" >&2; exit 1; }
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
src=$tree/usr/src/nfcomms-$version

# What the module is built from, and no test.
mkdir -p "$src/kmod/core" "$src/kmod/uapi" "$src/firmware" "$tree/DEBIAN"
cp kmod/*.[ch] kmod/Makefile kmod/Kbuild "$src/kmod/"
rm -f "$src"/kmod/*.mod.c
cp kmod/core/*.[ch] "$src/kmod/core/"
cp kmod/uapi/*.h "$src/kmod/uapi/"
cp firmware/nfc_abi.h firmware/nfc_pci.h "$src/firmware/"

fill() { sed "s/@VERSION@/$version/g" "deploy/dkms/$1.in"; }
fill dkms.conf >"$src/dkms.conf"
fill control >"$tree/DEBIAN/control"
for script in postinst prerm; do
	fill "$script" >"$tree/DEBIAN/$script"
	chmod 755 "$tree/DEBIAN/$script"
done
install -Dm644 deploy/udev/60-nfcomms.rules "$tree/usr/lib/udev/rules.d/60-nfcomms.rules"
install -Dm644 deploy/udev/nfcomms.sysusers "$tree/usr/lib/sysusers.d/nfcomms.conf"
install -Dm644 deploy/udev/nfcomms.modprobe "$tree/etc/modprobe.d/nfcomms.conf"
install -Dm644 deploy/dkms/copyright "$tree/usr/share/doc/nfcomms-dkms/copyright"
install -Dm644 CHANGELOG.md "$tree/usr/share/doc/nfcomms-dkms/CHANGELOG.md"
gzip -9n "$tree/usr/share/doc/nfcomms-dkms/CHANGELOG.md"
echo /etc/modprobe.d/nfcomms.conf >"$tree/DEBIAN/conffiles"
find "$tree" -type f -not -perm -u+x -exec chmod 644 {} +
(cd "$tree" && find usr etc -type f -exec md5sum {} + | LC_ALL=C sort -k2 >DEBIAN/md5sums)

mkdir -p "$out"
deb=$out/nfcomms-dkms_${version}_all.deb
dpkg-deb --root-owner-group -Zxz --build "$tree" "$deb" >/dev/null
echo "$deb"
