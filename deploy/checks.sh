# For the check.sh scripts below this folder, which source it: named checks and
# their counts. The script sets work, a folder for the log of the present check.
passed=0
failed=0
# check NAME COMMAND…
check() {
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		echo "ok $name"
		passed=$((passed + 1))
	else
		echo "FAIL $name"
		cat "$work/log"
		failed=$((failed + 1))
	fi
}
