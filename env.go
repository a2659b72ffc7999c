package mcppool

import (
	"os"
	"runtime"
	"strings"
)

// safeEnv names what every child gets of the host's environment: what programs
// need to find each other, their user's files and their language. It is the set
// that the MCP SDKs pass on, and where temporary files go and what the locale is
// besides.
var safeEnv = func() map[string]bool {
	names := []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"}
	if runtime.GOOS == "windows" {
		names = []string{
			"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
			"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
		}
	}
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}()

func isSafeEnv(folded string) bool {
	return safeEnv[folded] || strings.HasPrefix(folded, "LC_") && runtime.GOOS != "windows"
}

// childEnv is the whole environment of a child: what it may inherit, and extra,
// whose values win. Names are case-insensitive on Windows.
func childEnv(inherit []string, extra map[string]string) []string {
	more := make(map[string]bool, len(inherit))
	for _, n := range inherit {
		more[foldEnvName(n)] = true
	}
	set := make(map[string]bool, len(extra))
	env := make([]string, 0, len(extra)+len(safeEnv))
	for name, value := range extra {
		set[foldEnvName(name)] = true
		env = append(env, name+"="+value)
	}
	for _, pair := range os.Environ() {
		// Windows keeps entries such as "=C:=C:\dir"; they have no name.
		name, value, ok := strings.Cut(pair, "=")
		folded := foldEnvName(name)
		if !ok || name == "" || set[folded] || !(isSafeEnv(folded) || more[folded] || more["*"]) {
			continue
		}
		// A function that a shell exported is code, which runs in the child's shells.
		if strings.HasPrefix(value, "()") && !more["*"] && !more[folded] {
			continue
		}
		env = append(env, pair)
	}
	return env
}

func foldEnvName(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

func isEnvName(name string) bool {
	return name != "" && !strings.ContainsAny(name, "=\x00")
}
