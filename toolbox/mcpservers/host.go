package mcpservers

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Host is a program whose files are read. What a field means can depend on it;
// the README has the table.
type Host string

// The hosts.
const (
	UnknownHost   Host = "" // mcpServers as many hosts write it
	Amp           Host = "amp"
	ClaudeCode    Host = "claude-code"
	ClaudeDesktop Host = "claude-desktop"
	Cline         Host = "cline"
	Codex         Host = "codex"
	Continue      Host = "continue"
	CopilotCLI    Host = "copilot-cli"
	Crush         Host = "crush"
	Cursor        Host = "cursor"
	FastMCP       Host = "fastmcp"
	GeminiCLI     Host = "gemini-cli"
	Goose         Host = "goose"
	Kiro          Host = "kiro"
	LangChain     Host = "langchain"
	LibreChat     Host = "librechat"
	LMStudio      Host = "lm-studio"
	OpenCode      Host = "opencode"
	Qwen          Host = "qwen-code"
	Roo           Host = "roo"
	VSCode        Host = "vscode"
	Warp          Host = "warp"
	Windsurf      Host = "windsurf"
	Zed           Host = "zed"
)

// traits are what the same words mean in a host's files.
type traits struct {
	timeout      time.Duration // the unit of "timeout"; zero when the host has none
	leastTimeout time.Duration // a shorter "timeout" has no effect
	startTimeout bool          // "timeout" bounds the start rather than a call
	dollarName   bool          // $NAME is a variable, besides ${NAME}
	bracesEnv    bool          // {env:NAME} and {file:path} are replaced
	literal      bool          // nothing is replaced
	emptyIsAll   bool          // an empty list of tools is no restriction
}

// hostTraits has every host.
var hostTraits = map[Host]traits{
	Amp:           {},
	ClaudeCode:    {timeout: time.Millisecond, leastTimeout: time.Second},
	ClaudeDesktop: {},
	Cline:         {timeout: time.Second},
	Codex:         {literal: true},
	Continue:      {},
	CopilotCLI:    {timeout: time.Millisecond},
	Crush:         {timeout: time.Second, startTimeout: true, dollarName: true},
	Cursor:        {},
	FastMCP:       {timeout: time.Millisecond},
	GeminiCLI:     {timeout: time.Millisecond, dollarName: true},
	Goose:         {timeout: time.Second, emptyIsAll: true},
	Kiro:          {timeout: time.Millisecond},
	LangChain:     {},
	LibreChat:     {timeout: time.Millisecond},
	LMStudio:      {timeout: time.Millisecond},
	OpenCode:      {timeout: time.Millisecond, startTimeout: true, bracesEnv: true},
	Qwen:          {timeout: time.Millisecond, dollarName: true},
	Roo:           {timeout: time.Second},
	VSCode:        {},
	Warp:          {},
	Windsurf:      {},
	Zed:           {timeout: time.Second},
}

// Hosts returns all hosts that are known by name, in order.
func Hosts() []Host { return slices.Sorted(maps.Keys(hostTraits)) }

// hostFiles are ends of paths. The first that fits counts.
var hostFiles = []struct {
	end  string
	host Host
}{
	{"/.cursor/mcp.json", Cursor},
	{"/.vscode/mcp.json", VSCode},
	{"/.vscode/settings.json", VSCode},
	{"/User/mcp.json", VSCode},
	{"/User/settings.json", VSCode},
	{"/.warp/.mcp.json", Warp},
	{"/.mcp.json", ClaudeCode},
	{"/.claude.json", ClaudeCode},
	{"/claude_desktop_config.json", ClaudeDesktop},
	{"/cline_mcp_settings.json", Cline},
	{"/mcp_settings.json", Roo},
	{"/.roo/mcp.json", Roo},
	{"/.kiro/settings/mcp.json", Kiro},
	{"/.gemini/settings.json", GeminiCLI},
	{"/.qwen/settings.json", Qwen},
	{"/.codeium/windsurf/mcp_config.json", Windsurf},
	{"/.codeium/mcp_config.json", Windsurf},
	{"/mcp-config.json", CopilotCLI},
	{"/.lmstudio/mcp.json", LMStudio},
	{"/.zed/settings.json", Zed},
	{"/zed/settings.json", Zed},
	{"/opencode.json", OpenCode},
	{"/opencode.jsonc", OpenCode},
	{"/crush.json", Crush},
	{"/.crush.json", Crush},
	{"/amp/settings.json", Amp},
	{"/.amp/settings.json", Amp},
	{"/.codex/config.toml", Codex},
	{"/librechat.yaml", LibreChat},
	{"/librechat.yml", LibreChat},
	{"/goose/config.yaml", Goose},
	{"/.continue/config.yaml", Continue},
	{"/.continue/config.json", Continue},
}

func hostOfPath(path string) Host {
	path = "/" + strings.ReplaceAll(filepath.ToSlash(path), `\`, "/")
	for _, f := range hostFiles {
		if strings.HasSuffix(path, f.end) {
			return f.host
		}
	}
	return UnknownHost
}

// hostOfServers guesses by fields that one host only has, where neither the
// path nor the place of the servers says it.
func hostOfServers(servers []rawServer) Host {
	for _, s := range servers {
		for _, m := range s.node.members {
			switch m.name {
			case "httpUrl", "trust", "excludeTools":
				return GeminiCLI
			case "tools":
				if m.value.kind == list {
					return CopilotCLI
				}
				return FastMCP
			case "serverUrl":
				return Windsurf
			case "start_on_launch", "working_directory":
				return Warp
			}
		}
	}
	return UnknownHost
}
