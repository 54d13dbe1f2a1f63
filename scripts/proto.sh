#!/usr/bin/env bash
# The protocol buffers of the control plane.
#
#	scripts/proto.sh generate   format the .proto files, write the Go code
#	scripts/proto.sh check      lint; compare the Go code and the format with
#	                            what generate writes; refuse what breaks
#	                            clients of the last commits
set -euo pipefail
cd "$(dirname "$0")/.."

dir=pkg/control/proto
# The tools are a module of their own, which go.work does not join.
export GOWORK=off
buf() { "${GO:-go}" tool -modfile=tools/go.mod buf "$@"; }

# generate FOLDER: write the Go code there.
generate() { buf generate "$dir" --template "$dir/buf.gen.yaml" -o "$1"; }

# same FOLDER: the committed Go code is the one in FOLDER.
same() {
	local ok=0 file
	for file in "$1"/nfcomms/v1/*.pb.go "$dir"/nfcomms/v1/*.pb.go; do
		file=nfcomms/v1/${file##*/}
		if ! cmp -s "$1/$file" "$dir/$file"; then
			echo "proto: $dir/$file is not what make proto writes" >&2
			ok=1
		fi
	done
	return $ok
}

# compatible COMMIT SCRATCH: clients of the protos at COMMIT work with ours.
compatible() {
	git rev-parse -q --verify "$1^{commit}" >/dev/null || return 0 # a shallow clone, or no clone at all
	git cat-file -e "$1:$dir/buf.yaml" 2>/dev/null || return 0   # before there were any
	mkdir -p "$2"
	git archive "$1" "$dir" | tar -x -C "$2"
	buf breaking "$dir" --against "$2/$dir"
}

case ${1:-} in
generate)
	buf format -w "$dir"
	rm -f "$dir"/nfcomms/v1/*.pb.go
	generate "$dir"
	;;
check)
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	buf lint "$dir"
	buf format -d --exit-code "$dir"
	generate "$scratch/go"
	same "$scratch/go"
	compatible HEAD "$scratch/head" # what is not committed yet
	compatible HEAD~1 "$scratch/before"
	;;
*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
