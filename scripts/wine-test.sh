#!/bin/sh
# Runs the tests of internal/proc, and those of internal/stdio where Windows has
# code of its own, as Windows programs under Debian's wine. Arguments are handed to
# the tests of internal/proc, which then run alone:
# scripts/wine-test.sh -test.run Job -test.v
#
# What it builds and the wine prefix stay in the cache directory, so that a
# second run takes seconds. Root, or sudo, is needed only to install packages.
set -eu

limit=${WINE_TEST_TIMEOUT:-300} # seconds
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mcppool-wine
root=$(cd "$(dirname "$0")/.." && pwd)

if ! command -v wine >/dev/null || ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
	as_root=
	[ "$(id -u)" = 0 ] || as_root=sudo
	$as_root apt-get update -qq
	DEBIAN_FRONTEND=noninteractive $as_root apt-get install -qq -y --no-install-recommends \
		wine wine64 gcc-mingw-w64-x86-64 >/dev/null
fi

mkdir -p "$cache"
export WINEPREFIX="$cache/prefix" WINEARCH=win64 WINEDEBUG=-all
export WINEDLLOVERRIDES='mscoree,mshtml=' # no offers to install them

system32=$WINEPREFIX/drive_c/windows/system32
if [ ! -e "$system32/cmd.exe" ]; then
	timeout 120 wine wineboot -i >/dev/null 2>&1
	wineserver -w
fi

# Go's runtime reads random bytes through ProcessPrng, which wine 8 lacks.
if [ ! -e "$system32/bcryptprimitives.dll" ]; then
	cat >"$cache/bcryptprimitives.c" <<'C'
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buf, ULONG len); /* RtlGenRandom */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buf, SIZE_T len)
{
	for (; len > 0x10000000; buf += 0x10000000, len -= 0x10000000)
		if (!SystemFunction036(buf, 0x10000000))
			return FALSE;
	return SystemFunction036(buf, (ULONG)len);
}
C
	x86_64-w64-mingw32-gcc -O2 -shared -o "$system32/bcryptprimitives.dll.new" \
		"$cache/bcryptprimitives.c" -ladvapi32
	mv "$system32/bcryptprimitives.dll.new" "$system32/bcryptprimitives.dll"
fi

# run_tests package arguments...
run_tests() {
	package=$1
	shift
	cd "$root/internal/$package"
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go test -c -o "$cache/$package.test.exe" .
	# Not on a terminal: wine takes one for a console, but can't send events through it.
	failed=0
	timeout -k 10 "$limit" wine "$cache/$package.test.exe" -test.timeout="${limit}s" "$@" \
		</dev/null >"$cache/output" 2>&1 || failed=$?
	cat "$cache/output"
	[ "$failed" = 0 ] || status=$failed
}

status=0
if [ $# -gt 0 ]; then
	run_tests proc "$@"
else
	run_tests proc -test.count=1
	# Deaths, the last words before them, reads, bounded writes, closing.
	run_tests stdio -test.count=1 -test.run 'Death|TheLastAnswer|KilledWrapper|KillHas|CallReturns|StderrLines|Limit|HalfWritten|AllSizes|CloseFails|CloseDoesNotSignal'
fi
wineserver -k || : # of this prefix only
exit $status
