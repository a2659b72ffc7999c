#!/usr/bin/env bash
# What the project promises about itself that no compiler checks: the size of
# files and of the root package, what code other than tests imports, what the
# core's go.mod requires, and that the documents' links lead somewhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

max_file=600  # lines
max_root=3250 # lines of code of the root package without tests: about 3 000
mcp=github.com/mark3labs/mcp-go
# What the core's tests may need besides.
for_tests='^(github\.com/stretchr/testify|go\.uber\.org/goleak|pgregory\.net/rapid)$'

bad=0
complain() {
	printf '%s\n' "$@" >&2
	bad=1
}

# No file is too long to read in one go.
while read -r lines file; do
	[ "$lines" -le $max_file ] || complain "$file has $lines lines, more than $max_file"
done < <(find . -name '*.go' -exec wc -l {} \; )

# The root package stays small. Blank lines and comments don't count: nobody is
# to save those.
code=$(find . -maxdepth 1 -name '*.go' -not -name '*_test.go' -exec cat {} + | grep -cvE '^[[:space:]]*(//.*)?$')
echo "root package: $code lines of code"
[ "$code" -le $max_root ] || complain "the root package has $code lines of code, more than $max_root"

# Whoever imports the core gets mcp-go and nothing else.
for os in linux darwin windows; do
	others=$(GOOS=$os go list -f '{{range .Imports}}{{$.ImportPath}} {{.}}{{"\n"}}{{end}}' ./... |
		awk -v mcp=$mcp '$2 ~ /^[^\/]*\./ && index($2 "/", mcp "/") != 1 && index($2 "/", "github.com/mcppool/mcppool/") != 1')
	[ -z "$others" ] || complain "imports of code that isn't a test, other than the standard library and mcp-go ($os):" "$others"
done
required=$(GOWORK=off go list -m -f '{{if not (or .Main .Indirect)}}{{.Path}}{{end}}' all)
while read -r module; do
	[ -z "$module" ] || [ "$module" = $mcp ] || [[ $module =~ $for_tests ]] ||
		complain "go.mod requires $module, which is neither mcp-go nor on the list of what tests need"
done <<<"$required"

# In nested modules, too, testify and goleak are the tests'.
leaked=$(grep -rlE '"(github\.com/stretchr/testify|go\.uber\.org/goleak)' --include='*.go' . | grep -v '_test\.go$' || true)
[ -z "$leaked" ] || complain "testify or goleak imported outside of tests:" "$leaked"

# Tests that a document names exist; so do the files that it links to.
known=$(grep -rhoE '^func (Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*' --include='*_test.go' . | awk '{print $2}' | sort -u)
while IFS= read -r doc; do
	while read -r name; do
		grep -qxF "$name" <<<"$known" || complain "$doc names $name, and there is no such test"
	done < <(grep -oE '\b(Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]+' "$doc" | sort -u)
	while read -r target; do
		[ -e "$(dirname "$doc")/${target%%#*}" ] || complain "$doc links to $target, which doesn't exist"
	done < <(grep -oE '\]\([^)#]+' "$doc" | cut -c3- | grep -vE '^[a-z]+:' | sort -u)
done < <(find . -name '*.md' -not -path '*/testdata/*' -not -path './.git/*')
if [ -e README.md ]; then
	grep -qF 'go test ./...' README.md || complain "README.md doesn't give the command go test ./..."
fi

[ $bad = 0 ] || exit 1
