#!/usr/bin/env bash
# Build the image for containers, without a network and without a builder.
#
#	deploy/container/build.sh [FOLDER [PACKAGES]]    write to FOLDER (bin):
#	    nfcomms-rootfs.tar    the root file system, for the Containerfile
#	    nfcomms-oci.tar       the same as an OCI archive, for podman load and skopeo
#
# It holds the programs of Debian's package, nfplugin, this machine's C library, a user
# and nothing else. PACKAGES is a folder with that package; otherwise it is built. Equal
# sources on equal machines give equal archives.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${1:-bin}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packages=${2:-$work/debs}
mkdir -p "$out"

[ $# -gt 1 ] || deploy/debian/build.sh "$packages" >/dev/null
dpkg-deb -x "$packages"/nfcomms_*.deb "$work/package"
version=$(dpkg-deb -f "$packages"/nfcomms_*.deb Version)
arch=$(dpkg-deb -f "$packages"/nfcomms_*.deb Architecture)

# --- the root file system

root=$work/root
mkdir -p "$root"/{etc,run/nfcomms,tmp} "$root/usr/share/doc"
cp -r "$work/package/usr/bin" "$root/usr/bin"
cp -r "$work/package/usr/share/doc/nfcomms" "$root/usr/share/doc/"
# The loader and the libraries, at the paths where the programs look for them.
ldd "$root"/usr/bin/* | grep -oP '(=> )?\K/\S+(?= \(0x)' | sort -u | while read -r library; do
	install -Dm755 "$library" "$root$library"
done
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$root/usr/bin/" \
	-ldflags "-s -w -buildid= -X github.com/nfcomms/nfcomms/pkg/control.release=$version" ./kubernetes/nfplugin
# A module of its own, which go.work does not have, with the licences of the modules that it links.
(
	cd kubernetes/dra
	export GOWORK=off CGO_ENABLED=0
	go build -trimpath -buildvcs=false -o "$root/usr/bin/" \
		-ldflags "-s -w -buildid= -X github.com/nfcomms/nfcomms/pkg/control.release=$version" ./nfdra
	go list -deps -f '{{with .Module}}{{.Dir}}{{end}}' ./nfdra | grep /pkg/mod/ | sort -u | while read -r dir; do
		printf '\n%s\n\n' "== ${dir##*/pkg/mod/}"
		find "$dir" -maxdepth 1 -type f | grep -iE '/(licen[cs]e|notice|copying)[^/]*$' | sort | xargs -d '\n' cat
	done | gzip -9n >"$root/usr/share/doc/nfcomms/licenses-nfdra.gz"
)
cp /usr/share/doc/libc6/copyright "$root/usr/share/doc/libc6-copyright" 2>/dev/null || true
echo 'nfcomms:x:65532:65532:NFComms device daemon:/:/usr/sbin/nologin' >"$root/etc/passwd"
echo 'root:x:0:0:root:/:/usr/sbin/nologin' >>"$root/etc/passwd"
printf 'root:x:0:\nnfcomms:x:65532:\n' >"$root/etc/group"
echo 'passwd: files
group: files
hosts: files dns' >"$root/etc/nsswitch.conf"

# pack FOLDER ARCHIVE: its contents in a fixed order; /run/nfcomms is the daemon's.
pack() {
	tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		--format=gnu --exclude=./run/nfcomms -cf "$2" .
	[ ! -d "$1/run/nfcomms" ] || tar -C "$1" --mtime="@$SOURCE_DATE_EPOCH" --owner=65532 --group=65532 --numeric-owner \
		--mode=755 --format=gnu --no-recursion -rf "$2" ./run/nfcomms
}
pack "$root" "$out/nfcomms-rootfs.tar"

# --- the same as an OCI archive

image=$work/image
mkdir -p "$image/blobs/sha256"
hash() { sha256sum "$1" | cut -d' ' -f1; }
# blob FILE: move a file among the blobs; prints "sha256:HASH" and its size.
blob() {
	local sum size
	sum=$(hash "$1") size=$(stat -c %s "$1")
	mv "$1" "$image/blobs/sha256/$sum"
	echo "sha256:$sum $size"
}
words() { sed -n "s/^$1 \(\[.*\]\)$/\1/p" deploy/container/Containerfile; }

cp "$out/nfcomms-rootfs.tar" "$work/layer"
layer=sha256:$(hash "$work/layer")
gzip -6nc "$work/layer" >"$work/layer.gz"
read -r packed packed_size < <(blob "$work/layer.gz")
cat >"$work/config" <<END
{"created":"$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)","architecture":"$arch","os":"linux",
"config":{"User":"65532:65532","ExposedPorts":{"7451/tcp":{}},"Env":["PATH=/usr/bin","$(sed -n 's/^ENV //p' deploy/container/Containerfile)"],"Entrypoint":$(words ENTRYPOINT),"Cmd":$(words CMD),
"Labels":{"org.opencontainers.image.version":"$version","org.opencontainers.image.source":"https://github.com/nfcomms/nfcomms"}},
"rootfs":{"type":"layers","diff_ids":["$layer"]},"history":[{"created_by":"deploy/container/build.sh"}]}
END
read -r config config_size < <(blob "$work/config")
cat >"$work/manifest" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"$config","size":$config_size},
"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"$packed","size":$packed_size}]}
END
read -r manifest manifest_size < <(blob "$work/manifest")
cat >"$image/index.json" <<END
{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"$manifest","size":$manifest_size,
"annotations":{"org.opencontainers.image.ref.name":"nfcomms:latest"}}]}
END
echo '{"imageLayoutVersion":"1.0.0"}' >"$image/oci-layout"
pack "$image" "$out/nfcomms-oci.tar"
echo "$out/nfcomms-rootfs.tar"
echo "$out/nfcomms-oci.tar"
