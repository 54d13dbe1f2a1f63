#!/usr/bin/env bash
# Build the DKMS package and use it as an installation would, without
# installing it: DKMS itself builds the packaged sources for the release's kernel
# and for a current one, and the modules are looked at. The last line is a
# summary, "N passed, N failed".
set -euo pipefail
cd "$(dirname "$0")/../.."

. deploy/checks.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
deb=$(deploy/dkms/build.sh "$work/one")
again=$(SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) deploy/dkms/build.sh "$work/two")
dpkg-deb -x "$deb" "$work/root"
dpkg-deb -e "$deb" "$work/control"
version=$(dpkg-deb -f "$deb" Version)
src=$work/root/usr/src

one_version() {
	grep -qx "PACKAGE_VERSION=\"$version\"" "$src/nfcomms-$version/dkms.conf" &&
		grep -q "\"$version\"" "$src/nfcomms-$version/kmod/nfcm_kmod.h" &&
		grep -q " nfcomms $version " "$work/control/postinst" &&
		grep -q " -v $version " "$work/control/prerm"
}
sums() { (cd "$work/root" && md5sum --quiet -c "$work/control/md5sums"); }
scripts() { sh -n "$work/control/postinst" && sh -n "$work/control/prerm"; }
sources_only() { ! find "$src" -name '*.o' -o -name '*.ko' -o -name '*.mod.c' -o -name '*.go' | grep .; }

check "the package is reproducible" cmp "$deb" "$again"
check "one version everywhere" one_version
check "check sums" sums
check "maintainer scripts parse" scripts
check "sources and nothing else" sources_only

trees=(--sourcetree "$src" --dkmstree "$work/dkms")
mkdir "$work/dkms"
check "dkms takes the sources" dkms add -m nfcomms -v "$version" "${trees[@]}"

# dkms_build KIND: DKMS, in folders of its own, for one kernel.
dkms_build() {
	local headers
	headers=$(scripts/vm-kernel.sh "$1")/build
	kernel=$(basename "$(readlink -f "$headers")" | sed 's/^linux-headers-//')
	dkms build -m nfcomms -v "$version" -k "$kernel" "${trees[@]}" \
		--kernelsourcedir "$headers" || { cat "$work"/dkms/nfcomms/*/build/make.log; return 1; }
}
module() { find "$work/dkms/nfcomms/$version/$kernel" -name 'nfcomms.ko*' | head -n 1; }
says() { modinfo -F "$1" "$(module)" | grep -qx "$2"; }
ids() { grep -oP "NFC_PCI_$1 = 0x\K[0-9a-f]+" firmware/nfc_pci.h | tr a-f A-F; }
# documented: the sample names every parameter, with its default.
documented() {
	local line name missing=0
	[ -n "$(module)" ] || return 1
	while IFS= read -r line; do
		name=${line%%:*}
		grep -qx "#options nfcomms $name=$(grep -oP '\(default \K[^)]+' <<<"$line")" deploy/udev/nfcomms.modprobe ||
			{ echo "nfcomms.modprobe lacks $line"; missing=1; }
	done < <(modinfo -F parm "$(module)")
	return $missing
}

for kind in release backports; do
	check "dkms builds for the $kind kernel" dkms_build "$kind"
	check "$kind: licence" says license GPL
	check "$kind: version" says version "$version"
	check "$kind: loads by alias" says alias "pci:v0000$(ids VENDOR)d0000$(ids DEVICE)sv\*sd\*bc\*sc\*i\*"
done
check "every parameter is in the modprobe sample, with its default" documented
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
