#!/bin/sh
# Counts the product's lines of Go and C: all files that git has, without tests and their helpers,
# benchmarks, applications, examples and their helpers, the lint and generated code. The tables of
# the device and of connections in internal/proto are data of tests and of spec.
set -eu
cd "$(dirname "$0")/.."

# product lists the files of a folder that end in one of the patterns.
product() {
	git ls-files -- "$@" |
		grep -v -e '_test\.go$' -e '\.pb\.go$' -e '/testdata/' -e '/test/' \
			-e '^apps/' -e '^bench/' -e '^examples/' -e '^tools/' \
			-e '^bridge/bridgetest/' -e '^internal/bridgetest/' -e '^cmd/nfsim/internal/vfioclient/' -e '^internal/beside/' \
			-e '^internal/command/' -e '^internal/commandtest/' -e '^internal/lint/' \
			-e '^internal/litmus/' -e '^internal/mirror/' -e '^internal/mutants/' -e '^internal/prom/' \
			-e '^internal/pattern/' -e '^internal/proofs/' -e '^internal/proto/connection_' -e '^internal/proto/device_' -e '^internal/proto/dial' -e '^internal/proto/move' -e '^internal/proto/talk/' \
			-e '^internal/scripted/' -e '^internal/spectest/' -e '^internal/support/' \
			-e '^internal/testcert/' -e '^internal/testrun/' -e '^internal/vmtest/' -e '^kmod/lib/example/' \
			-e '^spec/'
}

total=0
for folder in pkg bridge internal cmd firmware kmod; do
	go=$(product "$folder/*.go" | xargs -r cat | wc -l)
	c=$(product "$folder/*.c" "$folder/*.h" | xargs -r cat | wc -l)
	printf '%-10s %7d Go %7d C\n' "$folder" "$go" "$c"
	total=$((total + go + c))
done
echo "product    $total"
