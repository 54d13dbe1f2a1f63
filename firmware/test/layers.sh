#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Does every file of the core call only layers below its own? The order is that
# of the headings of core/calls.h.
#
#   layers.sh OBJECT...   the core's objects
set -eu

order=$(dirname "$0")/../core/calls.h
nm -A "$@" | awk -v order="$order" '
BEGIN {
	while ((getline line < order) > 0) {
		if (line !~ /^\/\* ---- .* ---- \*\/$/)
			continue
		n = split(line, word, /[^a-z.]+/)
		sections++ # those of one heading call each other no more than upwards
		for (i = 1; i <= n; i++)
			if (word[i] ~ /\.c$/)
				layer[substr(word[i], 1, length(word[i]) - 2)] = sections
	}
}
{
	file = $1
	sub(/\.o:.*/, "", file)
	sub(/.*\//, "", file)
	if (!(file in layer)) {
		print "layers.sh: " file ".c has no place in core/calls.h"
		bad = layer[file] = 1
	}
	if ($(NF - 1) == "U")
		uses[file " " $NF] = file
	else if ($(NF - 1) ~ /[A-Z]/)
		home[$NF] = file
}
END {
	for (use in uses) {
		from = uses[use]
		symbol = substr(use, length(from) + 2)
		if (!(symbol in home) || layer[home[symbol]] < layer[from])
			continue
		print "layers.sh: " from ".c calls " symbol " of " home[symbol] ".c, which is not below it"
		bad = 1
	}
	if (!bad)
		print "ok layers of the core"
	exit bad
}'
