#!/usr/bin/env bash
# Fuzzes every target of every module for a while: scripts/fuzz.sh [time]
# A failing input is kept under testdata/fuzz and reported with its own text.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

time=${1:-5s}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

fuzz() {
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" "$1" >"$out" 2>&1
}

# fuzz_module fuzzes the targets of the module in the current directory.
fuzz_module() {
	local listed word package name names=()
	listed=$(go test -list '^Fuzz' ./...)
	while read -r word package _; do
		case $word in
		Fuzz*) names+=("$word") ;;
		ok)
			for name in "${names[@]}"; do
				# Before Go 1.27 a run may end with a bare "context deadline
				# exceeded" that is the fuzzer's own (go.dev/issue/75804). It has no
				# failing input, and doesn't come twice.
				fuzz "$package" "$name" || {
					grep -q 'context deadline exceeded' "$out" && ! grep -qE 'Failing input|panic' "$out" && fuzz "$package" "$name"
				} || {
					cat "$out"
					echo "$package: $name failed" >&2
					exit 1
				}
				echo "$package $name: $(grep -E '^fuzz: elapsed' "$out" | tail -1)"
			done
			names=()
			;;
		esac
	done <<<"$listed"
}

root=$PWD
dirs=$(scripts/modules.sh)
for dir in $dirs; do
	cd "$root/$dir"
	# A module without targets isn't built for it.
	! grep -rqE --include='*_test.go' '^func Fuzz' . || fuzz_module
done
