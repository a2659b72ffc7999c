package scratch

import (
	"runtime"
	"strings"
)

// Text stands for the path of a folder in what is to be started in it.
const Text = "${mcppool.dir}"

// Place puts the path of a folder in the place of Text in args, which it changes, and
// returns a copy of env with the same done, in which temporary files have that folder
// unless env says otherwise.
func Place(dir string, args []string, env map[string]string) map[string]string {
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], Text, dir)
	}
	placed := map[string]string{"TMPDIR": dir}
	if runtime.GOOS == "windows" {
		placed = map[string]string{"TMP": dir, "TEMP": dir}
	}
	for name, value := range env {
		placed[name] = strings.ReplaceAll(value, Text, dir)
	}
	return placed
}

// IsAskedFor reports whether Text is in any of args or in a value of env.
func IsAskedFor(args []string, env map[string]string) bool {
	for _, text := range args {
		if strings.Contains(text, Text) {
			return true
		}
	}
	for _, text := range env {
		if strings.Contains(text, Text) {
			return true
		}
	}
	return false
}
