package container

import (
	"slices"
	"strings"
)

// clis run containers, and take the same arguments for it.
var clis = []string{"docker", "podman", "nerdctl"}

// wrappers run the program that their arguments name.
var wrappers = []string{"sudo", "doas", "env", "nice"}

// Run is a command line that runs a container.
type Run struct {
	at   int    // of "run" in the command line
	Name string // what it calls the container; empty when that is left to the program
}

// Parse reads a command line, the program first. It reports false if that runs no
// container. More are the names of further programs that run containers, or run a
// program that does.
func Parse(argv, more []string) (Run, bool) {
	if len(argv) == 0 {
		return Run{}, false
	}
	first := baseName(argv[0])
	wrapped := slices.Contains(wrappers, first) || slices.Contains(more, first)
	for i, word := range argv {
		if i > 0 && !(wrapped && areOptions(argv[1:i])) {
			break
		}
		name := baseName(word)
		if !slices.Contains(clis, name) && !slices.Contains(more, name) {
			continue
		}
		if at := runAt(argv, i+1); at > 0 {
			return Run{at: at, Name: nameIn(argv[at+1:])}, true
		}
	}
	return Run{}, false
}

// runAt returns where the command run is behind the options that begin at from, or 0.
func runAt(argv []string, from int) int {
	for at := from; at < len(argv); at++ {
		word := argv[at]
		isRun := word == "run"
		if isRun && argv[at-1] == "container" && at-1 > from-1 {
			isRun = areOptions(argv[from : at-1])
		} else if isRun {
			isRun = areOptions(argv[from:at])
		}
		if isRun {
			return at
		}
	}
	return 0
}

// areOptions reports whether words may be options, with the value of each in a word of
// its own or not, and assignments to variables.
func areOptions(words []string) bool {
	for i, w := range words {
		isValue := i > 0 && strings.HasPrefix(words[i-1], "-") && !strings.Contains(words[i-1], "=")
		if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") && !isValue {
			return false
		}
	}
	return true
}

// switches are the options of run that have no value, of all three programs.
var switches = []string{
	"detach", "disable-content-trust", "env-host", "help", "http-proxy", "init", "interactive", "no-healthcheck",
	"no-hostname", "no-hosts", "oom-kill-disable", "passwd", "privileged", "publish-all", "quiet", "read-only",
	"read-only-tmpfs", "replace", "rm", "rmi", "rootfs", "sig-proxy", "tls-verify", "tty", "unsetenv-all", "use-api-socket",
}

// shortSwitches are the same as letters, which may stand together: -it.
const shortSwitches = "diPqt"

// nameIn returns the value of the option --name before the name of the image.
func nameIn(args []string) (name string) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if !strings.HasPrefix(word, "-") || word == "-" || word == "--" {
			break
		}
		option, value, hasValue := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		switch {
		case !strings.HasPrefix(word, "--"):
			// Of letters the last alone may have its value in the next word.
			letters := strings.TrimLeft(word[1:], shortSwitches)
			if len(letters) == 1 {
				i++
			}
		case !hasValue && !slices.Contains(switches, option):
			if i++; option == "name" && i < len(args) {
				name = args[i]
			}
		case option == "name":
			name = value
		}
	}
	return name
}

func baseName(command string) string {
	name := command[strings.LastIndexAny(command, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}
