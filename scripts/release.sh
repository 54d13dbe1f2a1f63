#!/usr/bin/env bash
# Make a release of a checkout, in a folder that is handed on as it is.
#
#	scripts/release.sh VERSION [FOLDER]    write it to FOLDER (bin/VERSION); VERSION is as v1.2.3
#
# The version stands in kmod/nfcm_kmod.h, from which packages, programs, libraries and module
# have it. CHANGELOG.md must have a section of it, and nothing may be uncommitted. CHECKS runs
# first ("make check"). With KEY, a secret key of gpg, apt repository and checksums are signed.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-}
out=${2:-bin/$version}
fail() { echo "release: $1" >&2; exit 1; }

[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "VERSION is as v1.2.3, not \"$version\""
have=v$(sed -n 's/^#define NFCM_MODULE_VERSION "\(.*\)"$/\1/p' kmod/nfcm_kmod.h)
[ "$version" = "$have" ] || fail "kmod/nfcm_kmod.h has $have: change NFCM_MODULE_VERSION there first"
notes=$(awk -v heading="## $version" '/^## / { inside = index($0 " ", heading " ") == 1 } inside' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no section \"## $version\""
[ -z "$(git status --porcelain)" ] || fail "there are changes without a commit"
[ ! -e "$out" ] || fail "$out is there already"
${CHECKS:-make check} || fail "the checks failed"

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir -p "$out/apt" "$out/materials"
deploy/debian/build.sh "$out/apt" >/dev/null
deploy/dkms/build.sh "$out/apt" >/dev/null
deploy/rpm/build.sh "$out/apt" "$out/rpm" >/dev/null
deploy/debian/repository.sh "$out/apt" "${KEY:-}"
deploy/container/build.sh "$out" "$out/apt" >/dev/null
rm "$out/nfcomms-rootfs.tar"
for deb in "$out"/apt/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$out/materials" --wildcards --transform='s|.*/||' '*.cdx.json.gz' 2>/dev/null || true # some have none
done
gunzip "$out"/materials/*.gz
cp internal/licenses/licenses.txt "$out/"
echo "$notes" >"$out/CHANGELOG.md"
git archive --prefix="nfcomms-${version#v}/" HEAD | gzip -9n >"$out/nfcomms-${version#v}.tar.gz"

(cd "$out" && find . -type f ! -name 'SHA256SUMS*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS)
[ -z "${KEY:-}" ] || gpg --batch --local-user "$KEY" --armor --detach-sign "$out/SHA256SUMS"
echo "$out"
