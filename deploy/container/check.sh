#!/usr/bin/env bash
# Build the image twice, look at it as a registry would, and run what is in it as
# a container would: another user, a read-only root, namespaces of its own, no
# network. The last line is a summary, "N passed, N failed".
#
#	deploy/container/check.sh [PACKAGES]    PACKAGES is a folder with the Debian packages; otherwise they are built
set -euo pipefail
cd "$(dirname "$0")/../.."

. deploy/checks.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
packages=${1:-$work/debs}
[ $# -gt 0 ] || deploy/debian/build.sh "$packages" >/dev/null
for n in one two; do deploy/container/build.sh "$work/$n" "$packages" >/dev/null; done
mkdir "$work/image" "$work/root"
tar -C "$work/image" -xf "$work/one/nfcomms-oci.tar"
tar -C "$work/root" -xf "$work/one/nfcomms-rootfs.tar"

blobs() { # each has the name of its contents, and each that is named is there
	local blob name
	for blob in "$work"/image/blobs/sha256/*; do
		[ "$(sha256sum <"$blob" | cut -d' ' -f1)" = "${blob##*/}" ] || return 1
	done
	for name in $(cat "$work/image/index.json" "$(manifest)" | grep -oP '"digest":"sha256:\K[0-9a-f]+'); do
		[ -e "$work/image/blobs/sha256/$name" ] || return 1
	done
}
named() { echo "$work/image/blobs/sha256/$(grep -oP "$1\",\"digest\":\"sha256:\K[0-9a-f]+" "$2")"; }
manifest() { named 'manifest.v1\+json' "$work/image/index.json"; }
config() { named 'config.v1\+json' "$(manifest)"; }
json() { perl -MJSON::PP -0ne 'JSON::PP->new->decode($_)' "$1"; }
documents() { json "$work/image/index.json" && json "$(manifest)" && json "$(config)" && json "$work/image/oci-layout"; }
layer() { grep -F "sha256:$(gzip -dc "$(named 'layer.v1.tar\+gzip' "$(manifest)")" | sha256sum | cut -d' ' -f1)" "$(config)"; }

check "the image is reproducible" cmp "$work/one/nfcomms-oci.tar" "$work/two/nfcomms-oci.tar"
check "its documents are JSON" documents
check "blobs have the names of their contents" blobs
check "the configuration names the layer" layer
check "the entry point is the Containerfile's" grep -F "$(sed -n 's/^ENTRYPOINT //p' deploy/container/Containerfile)" "$(config)"
check "its limit of memory is the unit's" grep -F "\"$(sed -n 's/^Environment=//p' deploy/systemd/nfcommsd.service)\"" "$(config)"
check "it has the licences of all that is linked" grep -F 'google.golang.org/grpc v' <(zcat "$work/root/usr/share/doc/nfcomms/licenses.gz")
check "it has the device plugin" chroot "$work/root" /usr/bin/nfplugin --version
check "it has the bills of materials" grep -F 'pkg:golang/google.golang.org/grpc@' <(zcat "$work/root/usr/share/doc/nfcomms/nfcommsd.cdx.json.gz")
check "no file may be written by the daemon" test -z "$(find "$work/root" -xdev \( -uid 65532 -o -perm -o+w ! -type l \) ! -path "$work/root/run/nfcomms")"

# In namespaces of its own; NFCOMMSD_SERVICE_HOST is what Kubernetes adds.
cat >"$work/contained" <<'END'
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount -t tmpfs -o mode=0755,uid=65532 none "$1/run/nfcomms"
as() { chroot --userspec=65532:65532 "$@"; }
NFCOMMSD_SERVICE_HOST=10.0.0.1 NFCOMMSD_PORT=tcp://10.0.0.1:7451 chroot --userspec=65532:65532 "$1" /usr/bin/nfcommsd --http-address 0.0.0.0:7451 &
daemon=$!
for try in $(seq 600); do
	! as "$1" /usr/bin/nfctl list || break
	sleep 0.1
done
as "$1" /usr/bin/nfctl list | grep -E '^sim0 +ready'
as "$1" /usr/bin/nfctl health
as "$1" /usr/bin/nfctl send sim0 loopback hello --reply | grep -x hello
kill -TERM $daemon
wait $daemon
END
if [ "$(id -u)" -eq 0 ]; then
	check "it runs, is used and ends on SIGTERM" unshare --mount --pid --fork --net --ipc --uts sh "$work/contained" "$work/root"
else
	echo "FAIL running the image needs root: sudo make test-packages"
	failed=$((failed + 1))
fi
# The device and a client of the pod, each in namespaces of its own, with a folder in common.
cat >"$work/pod" <<'END'
set -e
root=$1
shift
mount -t tmpfs -o mode=0775,gid=65532 none "$root/run/nfsim"
apart="unshare --pid --fork --net --ipc --uts chroot --userspec=65532:65532 $root"
$apart "$@" & # unshare, whose child is the device
device=$!
for try in $(seq 600); do
	[ ! -S "$root/run/nfsim/0.sock" ] || break
	sleep 0.1
done
$apart /usr/bin/nfctl --device shm:/run/nfsim/0.sock send local loopback hello --reply | grep -x hello
kill -KILL $(cat /proc/$device/task/$device/children)
! wait $device
END
pod=deploy/container/shared-device.yaml
runs() { sed -n "s|^ *command: \(\[\"/usr/bin/$1\".*\]\)$|\1|p" "$pod" | perl -MJSON::PP -0ne 'print "$_\n" for @{JSON::PP->new->decode($_)}'; }
mapfile -t device < <(runs nfsim)
if [ "$(id -u)" -eq 0 ]; then
	mkdir "$work/root/run/nfsim"
	check "a pod's containers share its device" unshare --mount bash "$work/pod" "$work/root" "${device[@]}"
fi
# podman loads the image, and its container opens a device of the machine by the specification that
# nfctl writes. /run is the test's own. The tmpfs hides the control groups: crun refuses a machine
# that has both versions of them.
cat >"$work/podman" <<'END'
set -e
mount -t tmpfs -o mode=0755 none /run
mount -t tmpfs none /sys/fs/cgroup
mkdir -p /run/cdi /run/nfcomms /run/nfsim/sim0
"$1/root/usr/bin/nfsim" --shm /run/nfsim/sim0/shm.sock --shm-mode 0666 &
trap 'kill $(jobs -p); wait' EXIT
"$1/root/usr/bin/nfcommsd" --devices sim0=shm:/run/nfsim/sim0/shm.sock &
for try in $(seq 600); do
	! "$1/root/usr/bin/nfctl" list | grep -E '^sim0 +ready' || break
	sleep 0.1
done
"$1/root/usr/bin/nfctl" cdi generate --dir /run/cdi
podman="podman --root /run/images --runroot /run/podman --storage-driver vfs"
$podman load --input "$1/one/nfcomms-oci.tar"
$podman run --rm --network none --cgroups disabled --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
	--read-only --user 1000 --device nfcomms.dev/device=sim0 \
	--entrypoint /usr/bin/nfctl localhost/nfcomms --device env: selftest --transfers 8
END
if [ "$(id -u)" -eq 0 ]; then
	check "podman gives a container the device that nfctl describes" unshare --mount bash "$work/podman" "$work"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
