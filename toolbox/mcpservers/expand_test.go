package mcpservers_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// expanded is what becomes of one argument in a file of a host.
func expanded(t *testing.T, host mcpservers.Host, arg string) (string, error) {
	t.Helper()
	opts := options()
	opts.Host = host
	f := parseAs(t, "", `{"mcpServers": {"a": {"command": "x", "args": [`+strconv.Quote(arg)+`]}}}`, opts)
	e := f.Entries[0]
	if e.Err != nil {
		return "", e.Err
	}
	return e.Server.Args[0], nil
}

func TestVariablesAreReplacedOnceAsEachHostWritesThem(t *testing.T) {
	const other, gemini, crush, opencode, codex = mcpservers.UnknownHost, mcpservers.GeminiCLI, mcpservers.Crush, mcpservers.OpenCode, mcpservers.Codex
	for _, c := range []struct {
		host      mcpservers.Host
		arg, want string
	}{
		{other, "plain", "plain"},
		{other, "${A}-${env:B}", "value-of-A-value-of-B"},
		{other, "${A:-d}${UNSET:-d}${UNSET:-}", "value-of-Ad"},
		{other, "${env:UNSET:-http://h:1/}", "http://h:1/"},
		{other, "${input:id}", "input-id"},
		{other, "${userHome}${/}${pathSeparator}${workspaceFolder}", "/home/u" + string(os.PathSeparator) + string(os.PathSeparator) + "/project"},
		{other, "${workspaceFolder:app}/${workspaceFolderBasename}", "/project/project"},
		{other, "${{ secrets.A }}${{inputs.B}}", "value-of-Ainput-B"},
		{other, "$${A}", "${A}"},
		{other, "a$${A}$$${A}", "a${A}$${A}"},
		{other, "$$A", "$A"},
		{other, "echo $A $1 $$ $", "echo $A $1 $$ $"},
		{other, "{env:A}{{A}}", "{env:A}{{A}}"},
		{gemini, "$A:${A}:$A_1", "value-of-A:value-of-A:value-of-A_1"},
		{gemini, "$$A $5 $", "$A $5 $"},
		{gemini, "$${A}$$", "${A}$"},
		{crush, "$A", "value-of-A"},
		{opencode, "{env:A}/${A}/{x}", "value-of-A/value-of-A/{x}"},
		{codex, "${A}$A", "${A}$A"},
	} {
		got, err := expanded(t, c.host, c.arg)
		require.NoError(t, err, c.arg)
		require.Equal(t, c.want, got, c.arg)
	}
}

func TestTheDefaultOfAVariableCountsWhereItIsEmptyToo(t *testing.T) {
	opts := &mcpservers.Options{Getenv: func(string) (string, bool) { return "", true }}
	f := parseAs(t, "mcp.json", `{"mcpServers": {"a": {"command": "${A:-d}", "args": ["${A}"]}}}`, opts)
	require.NoError(t, f.Entries[0].Err)
	require.Equal(t, "d", f.Entries[0].Server.Command)
	require.Equal(t, []string{""}, f.Entries[0].Server.Args)
}

func TestAVariableThatCanNotBeReplacedIsAnErrorThatSaysWhatToWrite(t *testing.T) {
	const at = `mcpservers: line 1: server "a": args[0]: `
	for _, c := range []struct {
		host      mcpservers.Host
		arg, want string
	}{
		{"", "${UNSET}", `variable "UNSET" isn't set: set it, or write ${UNSET:-default}`},
		{"", "${A", `has "${" without "}"; for the text itself write $${`},
		{"", "$TOKEN", "is $ and a name, which isn't replaced here: write ${...} for the variable, or $$ and the name for the text"},
		{"", "${sk-123}", "has ${...} that isn't known: ${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${file:path}, ${workspaceFolder}, ${userHome}, ${pathSeparator} and ${/} are; for the text itself write $${"},
		{"", "${config:a.b}", "has ${config:...}, which only the editor knows: write the value or ${VAR}"},
		{"", "${{ matrix.x }}", "has ${{...}} that is neither secrets.NAME nor inputs.NAME"},
		{"", "${file:/none/such}", "names a file that can't be read: no such file or directory"},
		{mcpservers.GeminiCLI, "x $UNSET", `variable "UNSET" isn't set: set it, or write ${UNSET:-default}`},
		{mcpservers.Crush, "$(cat key)", "has $(...), which runs a command: set a variable to its output and write ${VAR}"},
		{mcpservers.LibreChat, "{{USER}}", "has {{...}}, which LibreChat fills in for each of its users: write the value or ${VAR}"},
	} {
		_, err := expanded(t, c.host, c.arg)
		require.EqualError(t, err, at+c.want, c.arg)
	}
}

func TestAFileThatAValueNamesIsItsValue(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), []byte("${A}\r\n"), 0o600))
	f := parseAs(t, filepath.Join(dir, "mcp.json"), `{"mcpServers": {"a": {"command": "x", "args": ["${file:key}"]}}}`, &mcpservers.Options{})
	require.NoError(t, f.Entries[0].Err)
	require.Equal(t, []string{"${A}"}, f.Entries[0].Server.Args)
}

const withInput = `{"inputs": [{"id": "k", "description": "The key", "password": true}, {"id": "d", "default": "def"}, {"id": "p", "options": ["a", {"value": "b"}]}],
"servers": {"a": {"command": "x", "args": ["${input:k}", "${input:k}", "${input:p}"]}, "b": {"command": "${input:d}"}, "off": {"command": "${input:z}", "disabled": true}}}`

func TestAnInputIsAskedForOnceWithWhatTheFileSaysOfIt(t *testing.T) {
	opts := options()
	var asked []mcpservers.Prompt
	opts.Input = func(p mcpservers.Prompt) (string, error) {
		asked = append(asked, p)
		return "v", nil
	}
	parseAs(t, "mcp.json", withInput, opts)
	require.Equal(t, []mcpservers.Prompt{
		{ID: "k", Description: "The key", Password: true}, {ID: "p", Choices: []string{"a", "b"}}, {ID: "d", Default: "def"},
	}, asked)
}

func TestWithoutInputTheDefaultOfTheFileCounts(t *testing.T) {
	f := parseAs(t, "mcp.json", withInput, &mcpservers.Options{})
	require.ErrorContains(t, f.Entries[0].Err, `variable "input:k" has no value: set Options.Input, or a default in the file's inputs`)
	require.NoError(t, f.Entries[1].Err)
	require.Equal(t, "def", f.Entries[1].Server.Command)
	require.NoError(t, f.Entries[2].Err, "nobody needs the inputs of what is off")
}

func TestAnErrorOfInputIsKeptAndNotQuoted(t *testing.T) {
	cause := errors.New("hunter2 is wrong")
	f := parseAs(t, "mcp.json", withInput, &mcpservers.Options{Input: func(mcpservers.Prompt) (string, error) { return "", cause }})
	require.ErrorIs(t, f.Entries[0].Err, cause)
	require.NotContains(t, f.Entries[0].Err.Error(), "hunter2")
}

func TestAnEnvFileIsReadUnderEnv(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("A=file\nB=file\n"), 0o600))
	name := filepath.Join(dir, "mcp.json")
	f := parseAs(t, name, `{"mcpServers": {"a": {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"A": "own"}}}}`,
		&mcpservers.Options{WorkspaceFolder: dir})
	require.NoError(t, f.Entries[0].Err)
	require.Equal(t, map[string]string{"A": "own", "B": "file"}, f.Entries[0].Server.Env)

	f = parseAs(t, name, `{"mcpServers": {"a": {"command": "x", "envFile": "none"}, "off": {"command": "x", "envFile": "none", "disabled": true}}}`, nil)
	require.EqualError(t, f.Entries[0].Err, "mcpservers: "+name+`:1: server "a": envFile: names a file that can't be read: no such file or directory`)
	require.ErrorIs(t, f.Entries[0].Err, os.ErrNotExist)
	require.NoError(t, f.Entries[1].Err)

	require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("A=1\nhunter2\n"), 0o600))
	f = parseAs(t, name, `{"mcpServers": {"a": {"command": "x", "envFile": ".env"}}}`, nil)
	require.EqualError(t, f.Entries[0].Err, "mcpservers: "+name+`:1: server "a": envFile: names a file whose line 2 isn't NAME=value`)
}

func TestTheLinesOfAnEnvFileAreReadAsShellsWouldWithoutExpanding(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                                     {},
		"\ufeffA=1\r\nB=2\r\n":                 {"A": "1", "B": "2"},
		"  A = 1  # note\n#B=2\n\nC=a#b\nD=#x": {"A": "1", "C": "a#b", "D": ""},
		"export A=1\nexport  B='x # y'  # z":   {"A": "1", "B": "x # y"},
		`A="a\nb\t\"\\\x$B"`:                   {"A": "a\nb\t\"\\\\x$B"},
		"A=\"one\ntwo\"\nB=${A}\n":             {"A": "one\ntwo", "B": "${A}"},
		"A='it\\'\nA.b-c=2":                    {"A": `it\`, "A.b-c": "2"},
		"A=1\nA=2":                             {"A": "2"},
		"A=b=c==":                              {"A": "b=c=="},
	} {
		got, err := mcpservers.ParseEnv(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"A=1\n\nNAME":         "names a file whose line 3 isn't NAME=value",
		"=x":                  "names a file whose line 1 isn't NAME=value",
		"A B=x":               "names a file whose line 1 isn't NAME=value",
		"X\nA=1":              "names a file whose line 1 isn't NAME=value",
		"A=1\nB=\"x\ny":       "names a file in whose line 2 a quote isn't closed, or something stands behind it",
		"A=\"x\ny\"\nB='x' y": "names a file in whose line 3 a quote isn't closed, or something stands behind it",
	} {
		_, err := mcpservers.ParseEnv(text)
		require.EqualError(t, err, want, text)
	}
}
