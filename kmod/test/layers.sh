#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Each file of the module calls its own layer and those below it, but for the
# upcalls. The order is that of the headings of nfcm_kmod.h.
#
#   layers.sh OBJECT...   the module's objects
#
# ORDER names another header, to show that the check finds what is wrong.
set -eu

order=${ORDER:-$(dirname "$0")/../nfcm_kmod.h}
nm -A "$@" | awk -v order="$order" '
BEGIN {
	while ((getline line < order) > 0) {
		if (line ~ /^\/\* ---- .* ---- \*\/$/) {
			upcalls = line ~ /upcalls/
			layers++
			n = split(line, word, /[^a-z_.]+/)
			for (i = 1; i <= n; i++)
				if (word[i] ~ /\.c$/)
					layer[substr(word[i], 1, length(word[i]) - 2)] = layers
		} else if (upcalls && match(line, /nfcm_[a-z0-9_]+\(/)) {
			upcall[substr(line, RSTART, RLENGTH - 1)] = 1
		}
	}
}
{
	file = $1
	sub(/\.o:.*/, "", file)
	sub(/.*\//, "", file)
	if (!(file in layer)) {
		print "layers.sh: " file ".c has no place in nfcm_kmod.h"
		bad = layer[file] = 1
	}
	if ($(NF - 1) == "U")
		uses[file " " $NF] = file
	else if ($(NF - 1) == "T")
		home[$NF] = file
}
END {
	for (use in uses) {
		from = uses[use]
		symbol = substr(use, length(from) + 2)
		if (!(symbol in home) || layer[home[symbol]] <= layer[from])
			continue
		used[symbol] = 1
		if (symbol in upcall)
			continue
		print "layers.sh: " from ".c calls " symbol " of " home[symbol] ".c, which is above it"
		bad = 1
	}
	for (symbol in upcall)
		if (!(symbol in used)) {
			print "layers.sh: " symbol " is no upcall"
			bad = 1
		}
	if (!bad)
		print "ok layers of the module"
	exit bad
}'
