package mcpservers_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

var update = flag.Bool("update", false, "write testdata/*/want.txt anew")

// The sample of each host. WorkspaceFolder is /project but for those with files
// beside them, whose paths count from here.
var samples = map[string]mcpservers.Host{
	"amp/amp/settings.json":                      mcpservers.Amp,
	"claude-code/.mcp.json":                      mcpservers.ClaudeCode,
	"claude-code-user/.claude.json":              mcpservers.ClaudeCode,
	"claude-desktop/claude_desktop_config.json":  mcpservers.ClaudeDesktop,
	"cline/cline_mcp_settings.json":              mcpservers.Cline,
	"codex/.codex/config.toml":                   mcpservers.Codex,
	"continue/.continue/config.yaml":             mcpservers.Continue,
	"continue-json/.continue/config.json":        mcpservers.Continue,
	"copilot-cli/mcp-config.json":                mcpservers.CopilotCLI,
	"crush/crush.json":                           mcpservers.Crush,
	"cursor/.cursor/mcp.json":                    mcpservers.Cursor,
	"fastmcp/fastmcp-client.json":                mcpservers.FastMCP,
	"gemini-cli/.gemini/settings.json":           mcpservers.GeminiCLI,
	"goose/goose/config.yaml":                    mcpservers.Goose,
	"kiro/.kiro/settings/mcp.json":               mcpservers.Kiro,
	"langchain/servers.json":                     mcpservers.LangChain,
	"librechat/librechat.yaml":                   mcpservers.LibreChat,
	"lm-studio/.lmstudio/mcp.json":               mcpservers.LMStudio,
	"opencode/opencode.jsonc":                    mcpservers.OpenCode,
	"qwen-code/.qwen/settings.json":              mcpservers.Qwen,
	"roo/.roo/mcp.json":                          mcpservers.Roo,
	"vscode/.vscode/mcp.json":                    mcpservers.VSCode,
	"vscode-settings/settings.json":              mcpservers.VSCode,
	"warp/warp.json":                             mcpservers.Warp,
	"windsurf/.codeium/windsurf/mcp_config.json": mcpservers.Windsurf,
	"zed/zed/settings.json":                      mcpservers.Zed,
}

func TestTheSampleOfEachHostIsReadAsItsHostReadsIt(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for name, host := range samples {
		t.Run(name, func(t *testing.T) {
			opts := options()
			if strings.HasPrefix(name, "cursor/") || strings.HasPrefix(name, "opencode/") {
				opts.WorkspaceFolder = here
			}
			path := filepath.Join("testdata", filepath.FromSlash(name))
			f, err := mcpservers.Read(path, opts)
			require.NoError(t, err)
			require.Equal(t, host, f.Host)
			got := strings.ReplaceAll(describe(f), here, "<here>")
			want := filepath.Join("testdata", strings.SplitN(name, "/", 2)[0], "want.txt")
			if *update {
				require.NoError(t, os.WriteFile(want, []byte(got), 0o600))
			}
			text, err := os.ReadFile(want)
			require.NoError(t, err)
			require.Equal(t, string(text), got)
		})
	}
}

// options have a value for each variable but those that begin with UNSET.
func options() *mcpservers.Options {
	return &mcpservers.Options{
		Getenv: func(name string) (string, bool) {
			return "value-of-" + name, !strings.HasPrefix(name, "UNSET")
		},
		Input:           func(p mcpservers.Prompt) (string, error) { return "input-" + p.ID, nil },
		Home:            "/home/u",
		WorkspaceFolder: "/project",
	}
}

// describe is a file's meaning, a line for each server and what it has.
func describe(f *mcpservers.File) string {
	var b strings.Builder
	fmt.Fprintf(&b, "host %s\n", f.Host)
	for _, e := range f.Entries {
		fmt.Fprintf(&b, "\n%s (line %d)", e.Name, e.Line)
		if e.Disabled {
			b.WriteString(", off")
		}
		b.WriteString("\n")
		field := func(name string, value any, there bool) {
			if there {
				fmt.Fprintf(&b, "  %s: %v\n", name, value)
			}
		}
		if e.Err != nil {
			field("error", e.Err, true)
			continue
		}
		s := e.Server
		field("title", e.Title, e.Title != "")
		field("transport", e.Transport, e.Transport != "")
		field("run", fmt.Sprintf("%q", append([]string{s.Command}, s.Args...)), s.Command != "")
		field("in", s.Dir, s.Dir != "")
		field("reach", s.URL, s.URL != "")
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			field("env "+name, fmt.Sprintf("%q", s.Env[name]), true)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Header)) {
			field("header "+name, s.Header[name], true)
		}
		field("only", e.Tools.Include, e.Tools.Include != nil)
		field("not", e.Tools.Exclude, len(e.Tools.Exclude) > 0)
		field("unasked", e.AutoApprove, len(e.AutoApprove) > 0)
		field("start within", e.StartTimeout, e.StartTimeout != 0)
		field("call within", e.CallTimeout, e.CallTimeout != 0)
	}
	if len(f.Warnings) > 0 {
		b.WriteString("\n")
	}
	for _, w := range f.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

func TestEveryHostIsInTheREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), fmt.Sprintf(": %d hosts,", len(mcpservers.Hosts())))
	rows := strings.ToLower(string(readme))
	for _, host := range mcpservers.Hosts() {
		name := strings.ReplaceAll(string(host), "-", " ")
		if host == mcpservers.VSCode {
			name = "vs code"
		}
		require.Regexp(t, `(?m)^\|[^|]*\b`+name+`\b`, rows)
	}
}
