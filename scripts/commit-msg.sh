#!/usr/bin/env bash
# Checks messages of commits.
#
#	scripts/commit-msg.sh FILE       one message, as git's hook commit-msg calls it
#	scripts/commit-msg.sh --range R  those of the commits in R (main.., A..B)
#	scripts/commit-msg.sh --new      the last hundred since these rules changed, as far as the clone goes
#
# A message is "area: effect in lower case", an empty line, and a body that says
# what was wrong or wanted, how it was seen, and what it costs. More than 200
# changed lines need a sentence that says why, with the word "lines" or "rename"
# or "move" in it; without one they get a warning.
set -euo pipefail
export LC_ALL=C.UTF-8

top=$(git rev-parse --show-toplevel 2>/dev/null) || { echo "commit-msg: no clone, no commits"; exit 0; }
file=
[[ ${1:-} != [^-]* ]] || file=$(realpath -- "$1")
cd "$top"

most=100 # columns

# areas prints those that CONTRIBUTING.md lists, one a line.
areas() { sed -n '/^\* \*\*Areas/,/^\* \*\*[^A]/p' CONTRIBUTING.md | grep -o '`[a-z]*`' | tr -d '`'; }

# refuse TEXT: note what is wrong with the message at hand.
refuse() {
	echo "commit-msg: $what: $1" >&2
	wrong=1
}

# subject LINE: the form of the first line.
subject() {
	local area
	if [[ ! $1 =~ ^([a-z]+)': '([^A-Z[:space:]].*)$ ]]; then
		refuse "the subject is not \"area: effect in lower case\": $1"
		return
	fi
	area=${BASH_REMATCH[1]}
	grep -qx -- "$area" <<<"$known" || refuse "no area $area: CONTRIBUTING.md has $(tr '\n' ' ' <<<"$known")"
	[[ $1 != *. ]] || refuse "the subject ends with a full stop"
}

# message TEXT LINES: one message; LINES is how many lines the commit changes.
message() {
	local first rest
	first=${1%%$'\n'*}
	case $first in "Merge "* | "Revert "* | "fixup! "* | "squash! "*) return ;; esac
	subject "$first"
	rest=${1#"$first"}
	[[ -z $rest || $rest == $'\n\n'* || $rest == $'\n' ]] || refuse "the second line is not empty"
	[[ $rest =~ [^[:space:]] ]] || refuse "there is no body"
	while IFS= read -r line; do
		# A line without a blank, an address or a trailer, cannot be wrapped.
		[[ ${#line} -le $most || $line != *" "* ]] || refuse "a line has ${#line} columns, at most $most: ${line:0:60}…"
	done <<<"$1"
	if [[ $2 -gt 200 ]] && ! grep -qiE '\b(lines|renam\w*|mov(e|es|ed))\b' <<<"$rest"; then
		echo "commit-msg: $what: warning: $2 lines changed; say why it is one commit" >&2
	fi
}

# lines REVISION...: how many lines a diff changes, generated code left out.
lines() { "$@" --numstat --format= -M -- . ':!*.pb.go' ':!go.sum' | awk '{ n += $1 + $2 } END { print n + 0 }'; }

# range R: the commits of a range.
range() {
	local c commits n=0
	commits=$(git rev-list --no-merges -n 100 "$1" --)
	for c in $commits; do
		what=$(git log -1 --format='%h' "$c")
		message "$(git log -1 --format=%B "$c")" "$(lines git show "$c")"
		n=$((n + 1))
	done
	echo "commit-msg: $n messages"
}

# since prints the range of the commits after the last that changed this script, or
# after the one with which a shallow clone begins: no commit is held to rules that
# it could not know.
since() {
	local changed
	changed=$(git log -n 1 --format=%H -- scripts/commit-msg.sh)
	echo "${changed:-HEAD}..HEAD"
}

wrong=0
known=$(areas)
[[ -n $known ]] || { echo "commit-msg: CONTRIBUTING.md lists no areas" >&2; exit 1; }
case ${1:-} in
--new)
	git rev-parse -q --verify HEAD >/dev/null || { echo "commit-msg: no commits"; exit 0; }
	range "$(since)"
	;;
--range) range "${2:?a range}" ;;
"" | -*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
*)
	what=${1##*/}
	[[ -r $file ]] || { echo "commit-msg: no file $1" >&2; exit 2; }
	message "$(git stripspace --strip-comments <"$file" | sed '/^-* >8 -*$/,$d')" "$(lines git diff --cached)"
	;;
esac
exit "$wrong"
