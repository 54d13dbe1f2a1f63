# shellcheck shell=bash disable=SC2016
# Sourced by the vm-*.sh scripts: Debian packages for the virtual machine tests,
# without installing them and without root. apt checks signatures and hashes as
# always; only its state is private, and the mirror is the machine's own.
#
# The caller gives:   $1 of vm_open: a folder name below the cache
# The caller gets:    VM_CACHE   the cache, .cache/vm unless set
#                     vm_log     what was obtained, appended to $VM_CACHE/versions.log

# By its one name: what is in it names its own folder, and a cache that several
# checkouts share by a link would be obtained anew for each.
VM_CACHE=$(realpath -m "${VM_CACHE:-$PWD/.cache/vm}")

vm_die() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# vm_lock NAME: one at a time; who comes second finds the work done.
vm_lock() {
	mkdir -p "$VM_CACHE"
	exec 9>"$VM_CACHE/.lock-$1"
	flock 9
}

vm_codename() {
	(. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}") || true
}

# vm_mirrors: the Debian archives that apt is set up for, as "SITE SUITE".
vm_mirrors() {
	apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk '$3 == "main" {print $1, $2}' | sort -u
}

# vm_site: where the machine's own release comes from.
vm_site() {
	local codename=$1
	vm_mirrors | awk -v suite="$codename" '$2 == suite {print $1; exit}'
}

# vm_need WHAT: sets codename and site, or says that WHAT cannot be obtained here.
vm_need() {
	codename=$(vm_codename)
	site=
	[ -z "$codename" ] || site=$(vm_site "$codename")
	[ -n "$site" ] || vm_die "no Debian mirror in the apt configuration to obtain $1 from"
}

# vm_open "SITE SUITE"…: a private apt with these sources, and its lists read.
# Sets APT_CONFIG for the apt commands that follow, and VM_TMP, a scratch folder
# that is gone when the script ends. Packages are amd64's, but for those whose name
# says otherwise (NAME:arm64).
vm_open() {
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg source
	[ -r "$keyring" ] || vm_die "$keyring is missing: install debian-archive-keyring"
	VM_TMP=$(mktemp -d "$VM_CACHE/tmp.XXXXXX")
	trap 'rm -rf "$VM_TMP"' EXIT
	mkdir -p "$VM_TMP"/apt/{state/lists/partial,cache/archives/partial}
	: >"$VM_TMP/apt/status"
	for source in "$@"; do
		echo "deb [signed-by=$keyring] $source main"
	done >"$VM_TMP/apt/sources.list"
	# How to reach the mirror is the machine's business; its hooks are not ours.
	apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' >"$VM_TMP/apt/conf" || true
	cat >>"$VM_TMP/apt/conf" <<END
APT::Architecture "amd64";
APT::Architectures { "amd64"; ${VM_FOREIGN:+"$VM_FOREIGN";} };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::State "$VM_TMP/apt/state";
Dir::State::status "$VM_TMP/apt/status";
Dir::Cache "$VM_TMP/apt/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "$VM_TMP/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
END
	export APT_CONFIG="$VM_TMP/apt/conf"
	vm_quiet apt-get update -q
}

# vm_quiet COMMAND…: its output only when it fails.
vm_quiet() {
	if ! "$@" >"$VM_TMP/out" 2>&1; then
		cat "$VM_TMP/out" >&2
		vm_die "failed: $*"
	fi
}

# vm_download PACKAGE…: exactly these, as $VM_TMP/debs/*.deb.
vm_download() {
	mkdir -p "$VM_TMP/debs"
	(cd "$VM_TMP/debs" && vm_quiet apt-get -q download "$@")
}

# vm_unpack PACKAGE…: these and what they depend on, unpacked to $VM_TMP/all.
vm_unpack() {
	local deb
	vm_quiet apt-get -q -y --download-only install "$@"
	mkdir -p "$VM_TMP/debs" "$VM_TMP/all"
	mv "$VM_TMP"/apt/cache/archives/*.deb "$VM_TMP/debs/"
	for deb in "$VM_TMP"/debs/*.deb; do
		dpkg-deb -x "$deb" "$VM_TMP/all"
	done
}

# vm_libraries LOADER PATH PROGRAM FOLDER: copy the libraries that a program of
# another root loads; PATH is where they lie there.
vm_libraries() {
	"$1" --library-path "$2" --list "$3" | awk '$2 == "=>" {print $3}' | xargs -I{} cp -L {} "$4/"
}

# vm_depends PACKAGE PATTERN: the dependencies whose name matches, without the
# architecture; apt puts what none of another one provides in angle brackets.
vm_depends() {
	apt-cache depends --important "$1" |
		awk -v pattern="$2" '{gsub(/[<>]|:[a-z0-9]+$|:[a-z0-9]+>$/, "", $2)} $1 == "Depends:" && $2 ~ pattern {print $2}'
}

# vm_log WHAT: append name, version and hash of what was downloaded.
vm_log() {
	local deb
	for deb in "$VM_TMP"/debs/*.deb; do
		echo "$(date -u +%Y-%m-%d) $1 $(dpkg-deb -W --showformat '${Package} ${Version}' "$deb") $(sha256sum <"$deb" | cut -c1-64)"
	done >>"$VM_CACHE/versions.log"
}
