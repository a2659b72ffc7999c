package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const core = "github.com/mcppool/mcppool"

// published are the modules that are released, each with what a user's first
// lines do with it; a command, which is installed, has none.
var published = map[string]string{
	core:                             `pool, err := mcppool.New(nil); _, _ = pool, err`,
	core + "/toolbox/toolschema":     `_ = new(toolschema.Validator)`,
	core + "/toolbox/mcpservers":     `_, _ = mcpservers.Parse("servers.json", nil, nil)`,
	core + "/toolbox/openaitools":    `_ = openaitools.Tools(nil)`,
	core + "/toolbox/anthropictools": `_ = anthropictools.Tools(nil)`,
	core + "/toolbox/genaitools":     `_, _ = genaitools.Tool(nil)`,
	core + "/toolbox/langchaintools": `_ = langchaintools.Tools(nil, "")`,
	core + "/toolbox/einotools":      `_, _ = einotools.Tools(nil, "")`,
	core + "/cluster":                `var n *cluster.Node; _ = n`,
	core + "/cluster/natsdir":        `var d *natsdir.Directory; _ = d`,
	core + "/mcppoolotel":            `_ = mcppoolotel.New(nil).Trace()`,
	core + "/mcppoolprom":            `_ = mcppoolprom.New(nil)`,
	core + "/cmd/mcppool":            ``,
}

func TestEachPublishedModuleCanBeGotAndBuilt(t *testing.T) {
	for _, dir := range directories(t) {
		module := strings.TrimSuffix(core+"/"+strings.TrimPrefix(dir, "./"), "/.")
		if strings.HasPrefix(dir, "./internal/") || dir == "./examples" {
			continue
		}
		require.Contains(t, published, module, "a module of go.work that isn't tried here")
	}
	u := newUser(t)
	for module, line := range published {
		t.Run(filepath.Base(module), func(t *testing.T) {
			dir := t.TempDir()
			if line == "" {
				u.run(t, dir, "install", module+"@"+u.version)
				return
			}
			u.run(t, dir, "mod", "init", "example.com/user")
			u.run(t, dir, "get", module+"@"+u.version)
			program := "package main\n\nimport \"" + module + "\"\n\nfunc main() { " + line + " }\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
			u.run(t, dir, "build", "-trimpath", "-o", os.DevNull, ".")
			all := u.run(t, dir, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
			for _, forTests := range []string{"testify", "goleak", "rapid"} {
				require.NotContains(t, all, forTests, "built into a user's program")
			}
		})
	}
}

// directories returns those of the modules in go.work, relative to the root.
func directories(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command(filepath.Join(root, "scripts", "modules.sh")).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// user is somebody who has this tree's modules from a proxy, as if they were
// released, and nothing else of it.
type user struct {
	version string
	env     []string
}

func newUser(t *testing.T) *user {
	t.Helper()
	proxy, cache, bin := t.TempDir(), t.TempDir(), t.TempDir()
	pack := exec.Command("go", "run", "./internal/tools/modproxy", proxy)
	pack.Dir = root
	version, err := pack.Output()
	require.NoError(t, err)
	known, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	require.NoError(t, err)
	modules, elsewhere, _ := strings.Cut(strings.TrimSpace(string(known)), "\n")
	return &user{
		version: strings.TrimSpace(string(version)),
		env: append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "GONOSUMDB="+core, "GOMODCACHE="+cache, "GOBIN="+bin,
			"GOPROXY=file://"+proxy+",file://"+filepath.Join(modules, "cache", "download")+","+elsewhere),
	}
}

// run runs the go command in dir and returns what it prints.
func (u *user) run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, u.env
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s", cmd, &complaints)
	return string(out)
}
