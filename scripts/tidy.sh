#!/usr/bin/env bash
# Compares each module's go.mod and go.sum with what go mod tidy makes of them:
# scripts/tidy.sh; with -w, writes that.
# Sums of this repository's own modules stay out of go.sum: they change with
# every edit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -z "${MCPPOOL_VERSION:-}" ]; then
	exec scripts/proxy.sh scripts/tidy.sh "$@"
fi

own='github\.com/mcppool/mcppool'
bad=0
dirs=$(scripts/modules.sh)
for dir in $dirs; do
	cd "$dir"
	if [ "${1:-}" = -w ]; then
		go mod tidy
		sed -i "\\,^$own[ /],d" go.sum
	else
		# -diff ends with status 1 for any difference, and for failures, which print no diff.
		diff=$(go mod tidy -diff) || [ -n "$diff" ]
		if grep -E '^[-+][^-+]' <<<"$diff" | grep -vqE "^[-+]$own(/[^ ]*)? v.* h1:"; then
			printf '%s: not tidy; run scripts/tidy.sh -w\n%s\n' "$dir" "$diff" >&2
			bad=1
		fi
	fi
	cd "$OLDPWD"
done
exit $bad
