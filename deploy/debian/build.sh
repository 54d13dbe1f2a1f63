#!/usr/bin/env bash
# Build the Debian packages of user space: nfcomms (daemon, command line, units,
# rules, dashboard), nfcomms-dev, libnfcomms1 and libnfcomms-dev.
#
#	deploy/debian/build.sh [FOLDER [REVISION]]    write them to FOLDER (bin)
#
# The version stands in one place, kmod/nfcm_kmod.h; REVISION, such as "+1", is
# appended to it. Equal sources give equal packages: times come from the last
# commit, or SOURCE_DATE_EPOCH.
set -euo pipefail
cd "$(dirname "$0")/../.."

out=${1:-bin}
version=$(sed -n 's/^#define NFCM_MODULE_VERSION "\(.*\)"$/\1/p' kmod/nfcm_kmod.h)
[ -n "$version" ] || { echo "build.sh: kmod/nfcm_kmod.h has no NFCM_MODULE_VERSION" >&2; exit 1; }
package_version=$version${2:-}
arch=$(dpkg --print-architecture)
triplet=$(gcc -dumpmachine | sed 's/^x86_64-.*/x86_64-linux-gnu/')
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
commit=$(git rev-parse HEAD 2>/dev/null || true)

cyclonedx=$(GOWORK=off go tool -modfile=tools/go.mod -n cyclonedx-gomod)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# materials TREE PACKAGE PROGRAM…: the bill of materials of each program, CycloneDX 1.6. Licences are in a list of their own.
materials() {
	local folder=$1/usr/share/doc/$2 program
	mkdir -p "$folder"
	for program in "${@:3}"; do
		"$cyclonedx" bin -json -std -noserial -notimestamp -output-version 1.6 -version "v$package_version" "$program" |
			gzip -9n >"$folder/$(basename "${program%.so.*}").cdx.json.gz"
	done
}

# needs_libc FILE…: the oldest libc that has every symbol they use.
needs_libc() {
	echo "libc6 (>= $(objdump -T "$@" | grep -oP '\(?GLIBC_\K[0-9.]+' | sort -Vu | tail -n 1))"
}

# pack PACKAGE LIBC: build the package from $work/PACKAGE.
pack() {
	local tree=$work/$1 deb=$out/$1_${package_version}_$arch.deb script
	mkdir -p "$tree/DEBIAN"
	sed -e "s/@VERSION@/$package_version/g; s/@ARCH@/$arch/; s/@LIBC@/$2/" "deploy/debian/$1/control.in" >"$tree/DEBIAN/control"
	for script in preinst postinst prerm postrm; do
		[ ! -e "deploy/debian/$1/$script" ] || install -m755 "deploy/debian/$1/$script" "$tree/DEBIAN/$script"
	done
	[ ! -e "deploy/debian/$1/triggers" ] || install -m644 "deploy/debian/$1/triggers" "$tree/DEBIAN/triggers"
	mkdir -p "$tree/usr/share/doc/$1"
	{ cat deploy/debian/copyright; tail -n +5 LICENSE | sed 's/^$/./; s/^/ /'; } >"$tree/usr/share/doc/$1/copyright"
	gzip -9nc CHANGELOG.md >"$tree/usr/share/doc/$1/changelog.gz"
	gzip -9nc internal/licenses/licenses.txt >"$tree/usr/share/doc/$1/licenses.gz"
	chmod -R u=rwX,go=rX "$tree"
	(cd "$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	dpkg-deb --root-owner-group -Zzstd --build "$tree" "$deb" >/dev/null
	echo "$deb"
}

# programs FOLDER: the daemon, the command line and the shared device.
programs() {
	GOWORK=off CGO_ENABLED=1 CGO_CFLAGS="-O2 -g0" go build -trimpath -buildvcs=false -o "$1/" \
		-ldflags "-s -w -buildid= -X github.com/nfcomms/nfcomms/pkg/control.release=$package_version -X github.com/nfcomms/nfcomms/pkg/control.revision=$commit" \
		./cmd/nfcommsd ./cmd/nfctl ./cmd/nfsim
}

# tools TREE: what belongs to the programs.
tools() {
	local tree=$1 nfctl=$1/usr/bin/nfctl man=$1/usr/share/man program
	mkdir -p "$man/man8"
	"$nfctl" man "$man/man1"
	"$tree/usr/bin/nfcommsd" --manual >"$man/man8/nfcommsd.8"
	"$tree/usr/bin/nfsim" --manual >"$man/man8/nfsim.8"
	find "$man" -type f -exec gzip -9n {} +
	install -d "$tree"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
	for program in nfctl nfsim; do
		"$tree/usr/bin/$program" completion bash >"$tree/usr/share/bash-completion/completions/$program"
		"$tree/usr/bin/$program" completion zsh >"$tree/usr/share/zsh/vendor-completions/_$program"
		"$tree/usr/bin/$program" completion fish >"$tree/usr/share/fish/vendor_completions.d/$program.fish"
	done
}

daemon() {
	local tree=$work/nfcomms share=$work/nfcomms/usr/share/nfcomms
	programs "$tree/usr/bin"
	tools "$tree"
	materials "$tree" nfcomms "$tree"/usr/bin/*
	install -Dm644 -t "$tree/usr/lib/systemd/system" deploy/systemd/*.service deploy/systemd/*.socket
	install -Dm644 deploy/systemd/nfcommsd.sysusers "$tree/usr/lib/sysusers.d/nfcommsd.conf"
	install -Dm644 deploy/config/nfcommsd.yaml "$tree/etc/nfcomms/nfcommsd.yaml"
	install -Dm644 -t "$share/prometheus" deploy/prometheus/nfcomms.rules.yml deploy/prometheus/prometheus.yml
	install -Dm644 -t "$share/grafana" deploy/grafana/nfcomms.json
	install -Dm644 -t "$tree/usr/share/doc/nfcomms" docs/operations.md docs/metrics.md docs/nfctl.md docs/shm.md SECURITY.md
	mkdir -p "$tree/DEBIAN"
	echo /etc/nfcomms/nfcommsd.yaml >"$tree/DEBIAN/conffiles"
	pack nfcomms "$(needs_libc "$tree"/usr/bin/*)"
}

headers() {
	local tree=$work/nfcomms-dev doc=$work/nfcomms-dev/usr/share/doc/nfcomms-dev
	install -Dm644 -t "$tree/usr/include/nfcomms" firmware/nfc_abi.h firmware/nfc_fw.h firmware/nfc_group.h firmware/nfc_log.h firmware/nfc_ring.h
	install -Dm644 -t "$tree/usr/share/pkgconfig" deploy/debian/nfcomms-dev/nfcomms-program.pc
	sed -i "s/@VERSION@/$package_version/" "$tree/usr/share/pkgconfig/nfcomms-program.pc"
	install -Dm644 -t "$doc" docs/programs.md
	install -Dm644 -t "$doc/examples/checksum" examples/program/device/checksum.c
	pack nfcomms-dev ""
}

libraries() {
	local all=$work/library lib=usr/lib/$triplet run=$work/libnfcomms1 dev=$work/libnfcomms-dev
	make -s -C kmod/lib install BUILD="$work/build" DESTDIR="$all" PREFIX=/usr LIBDIR="/$lib" \
		CFLAGS="-O2 -g0 -ffile-prefix-map=$work=." CGO_CFLAGS="-O2 -g0" UMOD_FLAGS="-s -w -buildid=" >/dev/null
	strip --strip-unneeded "$all/$lib/libnfcomms.so.$version"
	mkdir -p "$run/$lib" "$run/DEBIAN" "$dev/usr/share/doc/libnfcomms-dev/examples"
	mv "$all/$lib"/libnfcomms.so.* "$all/$lib"/libnfcomms-umod.so.* "$run/$lib/"
	echo "libnfcomms 1 libnfcomms1" >"$run/DEBIAN/shlibs"
	mv "$all/usr" "$dev/tmp" && cp -a "$dev/tmp/." "$dev/usr/" && rm -r "$dev/tmp"
	find "$dev/usr/share/man" -type f -exec gzip -9n {} +
	install -m644 kmod/lib/example/echo.c kmod/lib/example/*.py "$dev/usr/share/doc/libnfcomms-dev/examples/"
	materials "$run" libnfcomms1 "$run/$lib"/libnfcomms-umod.so."$version"
	pack libnfcomms1 "$(needs_libc "$run/$lib"/*.so."$version")"
	pack libnfcomms-dev ""
}

daemon
headers
libraries
