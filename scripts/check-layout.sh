#!/usr/bin/env bash
# What the project promises about itself that no compiler checks: the size of
# files, functions and the root package, what code other than tests imports, what the
# core's go.mod requires, and that the documents' links lead somewhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

max_file=400         # lines of a file of Go
max_test=500         # of one of tests
max_func=60         # lines of a function that isn't a test's
max_params=5         # parameters of one
max_root_sources=16  # files of the root package, tests apart
max_root_lines=3300  # their lines of code: neither blank nor a comment
max_tracked=$((512 << 10)) # bytes of any file in the repository

mcp=github.com/mark3labs/mcp-go
# What the core's tests may need besides.
for_tests='^(github\.com/stretchr/testify|go\.uber\.org/goleak|pgregory\.net/rapid)$'

bad=0
complain() {
	printf '%s\n' "$@" >&2
	bad=1
}

# No file or function is too long to read in one go.
go run ./internal/tools/sizes -file $max_file -test $max_test -func $max_func -params $max_params || bad=1

# The root package stays small. Blank lines and comments don't count: nobody is
# to save those.
mapfile -t sources < <(find . -maxdepth 1 -name '*.go' -not -name '*_test.go')
code=$(cat "${sources[@]}" | grep -cvE '^[[:space:]]*(//.*)?$')
echo "root package: ${#sources[@]} sources with $code lines of code"
[ ${#sources[@]} -le $max_root_sources ] || complain "the root package has ${#sources[@]} sources, more than $max_root_sources"
[ "$code" -le $max_root_lines ] || complain "the root package has $code lines of code, more than $max_root_lines"

# Nothing large is checked in, such as a program that was built by hand. Where
# there is no git, everything in the tree counts.
tracked() {
	if command -v git >/dev/null && [ -e .git ]; then
		git -c safe.directory='*' ls-files -z
	else
		find . -type f -print0
	fi
}
while IFS= read -r -d '' file; do
	[ ! -f "$file" ] || [ "$(wc -c <"$file")" -le $max_tracked ] || complain "$file is larger than $max_tracked bytes"
done < <(tracked)

# CONTRIBUTING.md quotes these limits, and the steps of the gate.
folded=$(tr '\n' ' ' <CONTRIBUTING.md | tr -s ' ')
for quoted in "$max_file lines a file" "$max_test a file of tests" "$max_func a function" "$max_params parameters" \
	"$max_root_sources sources and $max_root_lines lines of code" "$((max_tracked >> 10)) KiB"; do
	grep -qF "$quoted" <<<"$folded" || complain "CONTRIBUTING.md doesn't say: $quoted"
done
while read -r step; do
	grep -qE "^\| \`$step\` " CONTRIBUTING.md || complain "CONTRIBUTING.md doesn't name the step $step of .ci/run"
done < <(.ci/run -list)

# Each module is kept up to date.
while read -r dir; do
	[ "$dir" = . ] || grep -qF "'/${dir#./}'" .github/dependabot.yml ||
		complain ".github/dependabot.yml doesn't name the module $dir"
done < <(scripts/modules.sh)

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
