package scratch

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// How long a folder lasts.
const (
	PerSession = "session"
	PerScope   = "scope"
)

// text stands for the path of a folder in what is to be started in it.
const text = "${mcppool.dir}"

// ErrNone says that something is to be started in a folder, and there is to be none.
var ErrNone = errors.New("is empty, and " + text + " stands for the folder")

// Start is what is to be started. Its map isn't written to.
type Start struct {
	Args []string
	Env  map[string]string
	Dir  string
}

// Place makes the folder that lasts so long, or returns that of an owner with a scope,
// and puts its path in the place of ${mcppool.dir} in what is to be started. Temporary
// files then go there, unless Env says otherwise. Of no duration is no folder, which is
// ErrNone if one is asked for.
func (d *Dirs) Place(lasts string, owner Owner, start *Start) (dir *Dir, err error) {
	switch {
	case lasts == "" && start.asks():
		return nil, ErrNone
	case lasts == "":
		return nil, nil
	case lasts == PerScope && owner.Scope != "":
		dir, err = d.Keep(owner)
	default:
		dir, err = d.Make()
	}
	if err != nil {
		return nil, fmt.Errorf("no folder of its own: %w", err)
	}
	start.in(dir.path)
	return dir, nil
}

func (s *Start) in(dir string) {
	s.Dir = strings.ReplaceAll(s.Dir, text, dir)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = strings.ReplaceAll(s.Args[i], text, dir)
	}
	env := map[string]string{"TMPDIR": dir}
	if runtime.GOOS == "windows" {
		env = map[string]string{"TMP": dir, "TEMP": dir}
	}
	for name, value := range s.Env {
		env[name] = strings.ReplaceAll(value, text, dir)
	}
	s.Env = env
}

// asks reports whether a folder is to stand anywhere in s.
func (s *Start) asks() bool {
	has := func(t string) bool { return strings.Contains(t, text) }
	for _, value := range s.Env {
		if has(value) {
			return true
		}
	}
	return has(s.Dir) || slices.ContainsFunc(s.Args, has)
}
