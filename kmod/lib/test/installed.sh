#!/usr/bin/env bash
# Install the library into a scratch folder and use it from there as a stranger
# would: exports, version, pkg-config, static and shared, C99, C++ and Python, man page.
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

make -s install DESTDIR="$root" PREFIX=/usr VERSION=v9.9.9 # which does not count
lib=$root/usr/lib
export PKG_CONFIG_LIBDIR=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
flags() { pkg-config "$@" libnfcomms; }

declared() { grep -oE 'nfcomms_[a-z_]+\(' libnfcomms.h | tr -d '(' | sort -u; }
exported() { nm -D --defined-only "$lib/${1:-libnfcomms.so}" | awk '$2 == "T" {print $3}' | sort; }
same_names() { diff <(declared) <(exported | sed 's/@@LIBNFCOMMS_1.0$//'); }
soname() { readelf -d "$lib/$1" | grep -F 'SONAME' | grep -F "[$2]"; }
umod_names() { ! exported libnfcomms-umod.so.1 | grep -v '^nfcomms_umod_[a-z_]*@@LIBNFCOMMS_UMOD_1.0$'; }
says() { # TEXT COMMAND…: it fails, and says that
	local text=$1
	shift
	! "$@" 2>"$root/said" && grep -F "$text" "$root/said"
}
not_found() { # it starts, and says what is missing
	says 'no such program, channel or device' env LD_LIBRARY_PATH="$lib" "$1" /nowhere/nfcomms0
}
echoes() { "$@" >"$root/said" && grep -q equal "$root/said"; }
echoes_python() { LD_LIBRARY_PATH="$lib" python3 example/echo.py "$@" && LD_LIBRARY_PATH="$lib" python3 example/echo.py | grep -qxF 'hello from Python - a megabyte came back'; }
# A call that waits ends when a handler of Python raises, and its message was not taken.
interrupted() {
	LD_LIBRARY_PATH="$lib" python3 - <<-'PY'
		import ctypes, signal
		lib = ctypes.CDLL("libnfcomms.so.1")
		dev, process, channel = ctypes.c_void_p(), (ctypes.c_uint32 * 4)(), ctypes.c_uint32()
		assert lib.nfcomms_open(b"sim:", ctypes.byref(dev)) == 0
		assert lib.nfcomms_start(dev, b"hold", 0, 1, ctypes.c_uint64(0), process) == 0
		assert lib.nfcomms_subscribe(dev, process[2], ctypes.byref(channel)) == 0
		def ring(*_):
		    signal.setitimer(signal.ITIMER_REAL, 0)
		    raise TimeoutError
		signal.signal(signal.SIGALRM, ring)
		try:
		    # again and again: one that arrives before the call waits does not end it
		    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
		    lib.nfcomms_send(dev, channel, b"nobody reads", ctypes.c_size_t(12))
		    raise SystemExit("it returned")
		except TimeoutError:
		    pass
		assert lib.nfcomms_try_send(dev, channel, b"x", ctypes.c_size_t(1)) == -11
		lib.nfcomms_close(dev)
	PY
}
try_header() { echo '#include <libnfcomms.h>' | "$@" -Wall -Wextra -Wpedantic -Werror -fsyntax-only $(flags --cflags) -; }

expect "the version is the module's" test "$(flags --modversion)" = "$version"
expect "and that of its file" test -e "$lib/libnfcomms.so.$version"
expect "it exports what the header declares, with a version" same_names
expect "its soname" soname libnfcomms.so libnfcomms.so.1
expect "the other library exports what it is loaded for" umod_names
expect "the other library's soname" soname libnfcomms-umod.so.1 libnfcomms-umod.so.1
expect "the header in C99" try_header gcc -std=c99 -x c
expect "the header in C++" try_header clang-14 -std=c++11 -x c++
expect "the example, shared" gcc -std=c11 -Wall -Wextra -Werror -o "$root/shared" example/echo.c $(flags --cflags --libs)
expect "the shared example runs" not_found "$root/shared"
expect "the shared example, with its library beside it" echoes env LD_LIBRARY_PATH="$lib" "$root/shared"
expect "the example in Python" echoes_python sim:
expect "Python is interrupted" interrupted
expect "the example, static" gcc -std=c11 -Wall -Wextra -Werror -static -o "$root/static" example/echo.c $(flags --cflags --libs)
expect "the static example runs" not_found "$root/static"
expect "the static example opens nodes alone" says 'libnfcomms-umod.so.1 cannot be loaded' env LD_LIBRARY_PATH="$lib" "$root/static" sim:
expect "the manual page" mandoc -T lint -W warning "$root/usr/share/man/man3/libnfcomms.3"
for name in $(declared); do
	expect "the manual page names $name" grep -qE "^\.F[no] $name\b" man/libnfcomms.3
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
