package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/internal/lastwords"
)

// system is what every box has of the machine. What isn't there is left out.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/chromium", "/etc/chromium.d",
	"/etc/crypto-policies", "/etc/fonts", "/etc/gai.conf", "/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/java",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic", "/etc/mime.types",
	"/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/pki", "/etc/protocols", "/etc/python3",
	"/etc/resolv.conf", "/etc/rpc", "/etc/services", "/etc/ssl", "/etc/timezone",
}

// tools are the programs that a box is made with.
type tools struct {
	bwrap   string
	env     string // of GNU; empty if there is none that sets the actions of signals
	prlimit string // empty if there is none
}

// checkTime bounds the trial of a box.
const checkTime = 10 * time.Second

var installed = sync.OnceValues(func() (t tools, err error) {
	if t.bwrap, err = exec.LookPath("bwrap"); err != nil {
		return t, &Error{Reason: "bubblewrap (bwrap) isn't installed", Err: errors.ErrUnsupported}
	}
	t.prlimit, _ = exec.LookPath("prlimit")
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	args := slices.Concat(namespaces, []string{"--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"})
	if out, err := exec.CommandContext(ctx, t.bwrap, args...).CombinedOutput(); err != nil {
		words := lastwords.Of(string(out))
		return t, &Error{Reason: "bubblewrap can't make a box, as user namespaces may be denied: " + words, Err: errors.ErrUnsupported}
	}
	if env, err := exec.LookPath("env"); err == nil && exec.CommandContext(ctx, env, ignoreTerm, env, defaultTerm, "true").Run() == nil {
		t.env = env
	}
	return t, nil
})

// Available reports why servers can't be boxed here, an [*Error]; nil
// if they can. It tries once, and says the same ever after.
func Available() error {
	_, err := installed()
	return err
}

// namespaces are what every box is made of. A session of its own isn't asked for: the
// pool gives it one that has no terminal, and the signals of the pool reach the whole
// group.
var namespaces = []string{
	"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
	"--disable-userns", "--cap-drop", "ALL", "--die-with-parent",
}

// bubblewrap dies of SIGTERM, and with it the box. So it ignores that signal, which
// the server has the default action for again.
const (
	ignoreTerm  = "--ignore-signal=TERM"
	defaultTerm = "--default-signal=TERM"
)

// Bubblewrap returns a Command that boxes what is started. Its errors are of type
// [*Error], and fail the start.
func Bubblewrap(rules Rules) Command {
	rules.Read, rules.Write = slices.Clone(rules.Read), slices.Clone(rules.Write)
	return func(from mcppool.Origin, _ mcppool.Server, cmd *exec.Cmd) error {
		t, err := installed()
		if err != nil {
			return err
		}
		b := box{rules: rules, private: from.PrivateDir, cmd: cmd}
		args, err := b.args()
		if err != nil {
			return err
		}
		inner, err := t.inner(rules.Limits)
		if err != nil {
			return err
		}
		joins, err := rules.Cgroup.args()
		if err != nil {
			return err
		}
		args = slices.Concat(joins, []string{t.bwrap}, args, []string{"--"}, inner, []string{cmd.Path}, cmd.Args[1:])
		if t.env != "" {
			args = slices.Concat([]string{t.env, ignoreTerm}, args)
		}
		cmd.Path, cmd.Args, cmd.Dir = args[0], args, ""
		return nil
	}
}

// inner returns what runs in the box before the server.
func (t tools) inner(l Limits) ([]string, error) {
	var args []string
	if limits := l.args(); len(limits) > 0 {
		if t.prlimit == "" {
			return nil, &Error{Reason: "Rules.Limits need the program prlimit (util-linux)", Err: errors.ErrUnsupported}
		}
		args = slices.Concat([]string{t.prlimit}, limits, []string{"--"})
	}
	if t.env != "" {
		args = append(args, t.env, defaultTerm)
	}
	return args, nil
}

// box is what one start is boxed in.
type box struct {
	rules   Rules
	private string
	cmd     *exec.Cmd
}

// bind is a path that a box has.
type bind struct{ how, path string }

// args returns bubblewrap's arguments.
func (b *box) args() ([]string, error) {
	args := slices.Clone(namespaces)
	if !b.rules.Network {
		args = append(args, "--unshare-net")
	}
	for _, path := range system {
		args = append(args, systemArgs(path)...)
	}
	home := b.getenv("HOME")
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/var/tmp", "--perms", "1777", "--tmpfs", "/tmp")
	if filepath.IsAbs(home) && filepath.Clean(home) != "/" {
		args = append(args, "--perms", "0700", "--tmpfs", home)
	}
	binds, err := b.binds()
	if err != nil {
		return nil, err
	}
	for _, at := range binds {
		source, err := filepath.EvalSymlinks(at.path)
		if err != nil {
			return nil, &Error{Reason: "what the Rules name can't be read", Err: err}
		}
		args = append(args, at.how, source, at.path)
	}
	args = append(args, "--remount-ro", "/")
	dir, err := b.workDir(home, binds)
	return append(args, "--chdir", dir), err
}

// systemArgs gives a box a part of the system: a link where it is one, such as /bin in
// most distributions.
func systemArgs(path string) []string {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if info.Mode()&os.ModeSymlink != 0 && !strings.HasPrefix(path, "/etc/") {
		if target, err := os.Readlink(path); err == nil {
			return []string{"--symlink", target, path}
		}
	}
	return []string{"--ro-bind-try", path, path}
}

// binds returns what the box has besides the system, the outer before the inner.
func (b *box) binds() ([]bind, error) {
	var all []bind
	for how, paths := range map[string][]string{"--ro-bind": b.rules.Read, "--bind": b.rules.Write} {
		for _, path := range paths {
			if !filepath.IsAbs(path) {
				return nil, &Error{Reason: "the Rules name a path that isn't absolute"}
			}
			all = append(all, bind{how, filepath.Clean(path)})
		}
	}
	if b.private != "" {
		all = append(all, bind{"--bind", b.private})
	}
	if abs, err := filepath.Abs(b.cmd.Path); err == nil {
		b.cmd.Path = abs
	}
	if !isWithin(b.cmd.Path, append(all, systemBinds()...)) {
		all = append(all, bind{"--ro-bind", b.cmd.Path})
	}
	slices.SortFunc(all, func(a, b bind) int {
		if order := strings.Compare(a.path, b.path); order != 0 {
			return order
		}
		return strings.Compare(b.how, a.how) // of the same path, what may be written to is last
	})
	return all, nil
}

func systemBinds() (all []bind) {
	for _, path := range system {
		all = append(all, bind{path: path})
	}
	return all
}

// workDir returns where the server begins: where it was to, which must be in the box, or
// at home.
func (b *box) workDir(home string, binds []bind) (string, error) {
	switch dir := b.cmd.Dir; {
	case dir == "" && b.private != "":
		return b.private, nil
	case dir == "" && filepath.IsAbs(home):
		return home, nil
	case dir == "":
		return "/tmp", nil
	case !isWithin(dir, append(binds, systemBinds()...)):
		return "", &Error{Reason: "the server's working directory isn't among the folders that the Rules name"}
	default:
		return dir, nil
	}
}

// isWithin reports whether path is one of binds or in one.
func isWithin(path string, binds []bind) bool {
	return slices.ContainsFunc(binds, func(b bind) bool {
		rel, err := filepath.Rel(b.path, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

func (b *box) getenv(name string) string {
	value := ""
	for _, entry := range b.cmd.Env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
