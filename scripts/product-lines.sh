#!/bin/sh
# Counts the product's lines of Go and C: all files that git has, without tests and their helpers,
# benchmarks, applications, examples, the lint and generated code.
set -eu
cd "$(dirname "$0")/.."

# product lists the files of a folder that end in one of the patterns.
product() {
	git ls-files -- "$@" |
		grep -v -e '_test\.go$' -e '\.pb\.go$' -e '/testdata/' -e '/test/' \
			-e '^apps/' -e '^bench/' -e '^examples/' -e '^tools/' \
			-e '^bridge/bridgetest/' -e '^internal/beside/' -e '^internal/commandtest/' -e '^internal/lint/' \
			-e '^internal/litmus/' -e '^internal/mirror/' -e '^internal/mutants/' -e '^internal/prom/' \
			-e '^internal/proofs/' -e '^internal/proto/talk/' -e '^internal/scripted/' -e '^internal/support/' \
			-e '^internal/testcert/' -e '^internal/testrun/' -e '^internal/vmtest/' -e '^spec/'
}

total=0
for folder in pkg bridge internal cmd firmware kmod; do
	go=$(product "$folder/*.go" | xargs -r cat | wc -l)
	c=$(product "$folder/*.c" "$folder/*.h" | xargs -r cat | wc -l)
	printf '%-10s %7d Go %7d C\n' "$folder" "$go" "$c"
	total=$((total + go + c))
done
echo "product    $total"
