#!/usr/bin/env bash
# Runs a command that sees this tree's modules as if they were released, and no
# go.work: scripts/proxy.sh command arguments...
# They come from a GOPROXY of files, at the version that go.mod files require;
# everything else comes from where it always does. The module cache is a
# temporary one: what is packed today must not be taken for the release later.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
version=$(cd "$root" && go run ./internal/tools/modproxy "$scratch/proxy")

cached=$(go env GOMODCACHE)/cache/download
GOPROXY="file://$scratch/proxy,file://$cached,$(go env GOPROXY)"
GOFLAGS="-modcacherw $(go env GOFLAGS)"
export GOPROXY GOFLAGS
export GOWORK=off GOMODCACHE=$scratch/cache GONOSUMDB=github.com/mcppool MCPPOOL_VERSION=$version
"$@"
