#!/usr/bin/env bash
# The directories of the repository's modules, as go.work has them, one a line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
GOWORK= go work edit -json | awk -F'"' '$2 == "DiskPath" { print $4 }'
