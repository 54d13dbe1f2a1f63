#!/usr/bin/env bash
# Install the library into a scratch folder and use it from there as a stranger
# would: exports, version, pkg-config, static and shared, C99 and C++, man page.
#
#	test/installed.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
passed=0 failed=0

# expect WHAT COMMAND…: one check.
expect() {
	local what=$1
	shift
	if "$@" >"$root/out" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL: libnfcomms: $what"
		sed 's/^/	/' "$root/out"
	fi
}

make -s install DESTDIR="$root" PREFIX=/usr
lib=$root/usr/lib
export PKG_CONFIG_LIBDIR=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
flags() { pkg-config "$@" libnfcomms; }

declared() { grep -oE 'nfcomms_[a-z_]+\(' libnfcomms.h | tr -d '(' | sort -u; }
exported() { nm -D --defined-only "$lib/libnfcomms.so" | awk '$2 == "T" {print $3}' | sort; }
same_names() { diff <(declared) <(exported | sed 's/@@LIBNFCOMMS_1.0$//'); }
soname() { readelf -d "$lib/libnfcomms.so" | grep -F 'SONAME' | grep -F '[libnfcomms.so.1]'; }
not_found() { # it starts, and says what is missing
	! env LD_LIBRARY_PATH="$lib" "$1" /nowhere/nfcomms0 2>"$root/said" && grep -F 'no such program, channel or device' "$root/said"
}
try_header() { echo '#include <libnfcomms.h>' | "$@" -Wall -Wextra -Wpedantic -Werror -fsyntax-only $(flags --cflags) -; }

expect "the version is the module's" test "$(flags --modversion)" = "$version"
expect "it exports what the header declares, with a version" same_names
expect "its soname" soname
expect "the header in C99" try_header gcc -std=c99 -x c
expect "the header in C++" try_header clang-14 -std=c++11 -x c++
expect "the example, shared" gcc -std=c11 -Wall -Wextra -Werror -o "$root/shared" example/echo.c $(flags --cflags --libs)
expect "the shared example runs" not_found "$root/shared"
expect "the example, static" gcc -std=c11 -Wall -Wextra -Werror -static -o "$root/static" example/echo.c $(flags --cflags --libs)
expect "the static example runs" not_found "$root/static"
expect "the manual page" mandoc -T lint -W warning "$root/usr/share/man/man3/libnfcomms.3"
for name in $(declared); do
	expect "the manual page names $name" grep -qE "^\.F[no] $name\b" man/libnfcomms.3
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
