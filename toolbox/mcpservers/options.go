package mcpservers

import (
	"os"
	"path/filepath"
	"strings"
)

// Options are the settings of a reading. Nil means the defaults. They aren't
// changed; their funcs may be called from the goroutine of a [Watcher].
type Options struct {
	// Host says whose file it is, for files whose name and content don't say;
	// default: what [File.Host] is documented to be.
	Host Host
	// Getenv returns a variable of the environment and whether it is set;
	// default [os.LookupEnv].
	Getenv func(name string) (value string, set bool)
	// Input returns what VS Code and Continue would ask their user for. It is
	// called once for each input that an enabled server uses, each time that
	// the file is read. Its error costs the servers that use the input, and
	// its text isn't shown. Default: the defaults that the file declares.
	Input func(Prompt) (string, error)
	// Home is the user's directory, for "~" and ${userHome}; default
	// [os.UserHomeDir].
	Home string
	// WorkspaceFolder is the project's directory: ${workspaceFolder}, what
	// relative directories and env files count from, and the project whose
	// servers of ~/.claude.json count. Default: for a file in a project's own
	// .cursor, .vscode and the like, or a .mcp.json, that project.
	WorkspaceFolder string
	// MaxSize bounds a file, and a file that it names, in bytes; default
	// 4 MiB, negative is no limit.
	MaxSize int64
}

// Prompt is a value that a file leaves to its user.
type Prompt struct {
	ID          string
	Description string
	Default     string
	Password    bool     // it is a secret
	Choices     []string // none: any text
}

const defaultMaxSize = 4 << 20

func (o *Options) getenv(name string) (string, bool) {
	if o.Getenv != nil {
		return o.Getenv(name)
	}
	return os.LookupEnv(name)
}

func (o *Options) maxSize() int64 {
	if o.MaxSize == 0 {
		return defaultMaxSize
	}
	return o.MaxSize
}

// home is empty when nobody can say.
func (o *Options) home() string {
	if o.Home != "" {
		return o.Home
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

// projectDirs are the directories of a project in which hosts keep its file.
var projectDirs = []string{
	".cursor", ".vscode", ".kiro/settings", ".roo", ".gemini", ".qwen", ".zed", ".continue", ".codex", ".amp", ".warp",
}

// projectFiles lie at the top of a project.
var projectFiles = []string{".mcp.json", "opencode.json", "opencode.jsonc", "crush.json", ".crush.json"}

// workspace is the project's directory for the file at path, or empty. The
// same files in the home directory are for all projects.
func (o *Options) workspace(path string) string {
	if o.WorkspaceFolder != "" {
		return o.WorkspaceFolder
	}
	if !filepath.IsAbs(path) {
		return ""
	}
	dir := filepath.ToSlash(filepath.Dir(path))
	for _, d := range projectDirs {
		if root, ok := strings.CutSuffix(dir, "/"+d); ok && root != filepath.ToSlash(o.home()) {
			return filepath.FromSlash(root)
		}
	}
	for _, name := range projectFiles {
		if filepath.Base(path) == name && dir != filepath.ToSlash(o.home()) {
			return filepath.FromSlash(dir)
		}
	}
	return ""
}
