#!/usr/bin/env bash
# Run the tests of devices over each address that needs no kernel module.
#
#	test/addresses.sh PROGRAM…
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
device=
end() {
	[ -z "$device" ] || { kill "$device" && wait "$device" || true; }
	rm -rf "$work"
}
trap end EXIT

build/nfsim --shm "$work/0.sock" >"$work/log" 2>&1 &
device=$!
until grep -q listening "$work/log"; do
	kill -0 "$device" || { cat "$work/log"; exit 1; }
	sleep 0.02
done

for address in sim: "shm:$work/0.sock"; do
	for program in "$@"; do
		echo "${program##*/} over ${address%%:*}:"
		NFC_NODE=$address LD_LIBRARY_PATH=build "./$program" || { tail "$work/log"; exit 1; }
	done
done
LD_LIBRARY_PATH=build python3 example/gift.py "shm:$work/0.sock" | grep -xF 'a megabyte came back full'
