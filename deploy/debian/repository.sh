#!/usr/bin/env bash
# Make an apt repository of a folder with Debian packages: a flat one, which apt reads by
# file:, or by http from any web server.
#
#	deploy/debian/repository.sh FOLDER [KEY]    KEY is a secret key of gpg, by its fingerprint
#
# With a key the repository is signed and has the public key as nfcomms.gpg; without one apt
# takes it as [trusted=yes] only. The time in it is SOURCE_DATE_EPOCH, or that of the last commit.
set -euo pipefail
export LC_ALL=C
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$(dirname "$0")" log -1 --format=%ct)}
cd "$1"
key=${2:-}

for deb in *.deb; do
	dpkg-deb -f "$deb"
	echo "Filename: ./$deb"
	echo "Size: $(stat -c %s "$deb")"
	echo "SHA256: $(sha256sum <"$deb" | cut -d' ' -f1)"
	echo
done >Packages
gzip -9nk -f Packages
{
	echo "Origin: NFComms"
	echo "Label: NFComms"
	echo "Suite: stable"
	echo "Architectures: $(sed -n 's/^Architecture: //p' Packages | grep -vx all | sort -u | paste -sd ' ')"
	echo "Date: $(date -u -R -d "@$epoch")"
	echo "SHA256:"
	for file in Packages Packages.gz; do
		echo " $(sha256sum <"$file" | cut -d' ' -f1) $(stat -c %s "$file") $file"
	done
} >Release
rm -f InRelease Release.gpg nfcomms.gpg
if [ -n "$key" ]; then
	gpg --batch --yes --local-user "$key" --clearsign -o InRelease Release
	gpg --batch --export "$key" >nfcomms.gpg
fi
