// Modproxy writes the modules of this repository, as they are in this tree, into
// a directory that serves as a file GOPROXY:
//
//	go run ./internal/tools/modproxy directory
//
// All get the version that their go.mod files require of each other, which is
// that of the next release until its tags exist. It prints that version.
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const core = "github.com/mcppool/mcppool"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/tools/modproxy directory")
		os.Exit(2)
	}
	version, err := write(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "modproxy:", err)
		os.Exit(1)
	}
	fmt.Println(version)
}

// module is one of the repository's.
type module struct {
	path  string
	dir   string
	files []string // slash-separated, relative to dir
}

// write packs every module of the repository at root into dir and returns their
// version.
func write(root, dir string) (version string, err error) {
	modules, err := find(root)
	if err != nil {
		return "", err
	}
	if version, err = required(root, modules); err != nil {
		return "", err
	}
	for _, m := range modules {
		if err := m.pack(version, dir); err != nil {
			return "", err
		}
	}
	return version, nil
}

// find returns the modules below root, each with the files that belong to it and
// to no module further down.
func find(root string) ([]*module, error) {
	var modules []*module
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			if isModule(path) {
				modules = append(modules, &module{path: modulePath(root, path), dir: path})
			}
			return nil
		}
		if len(modules) == 0 {
			return fmt.Errorf("%s: no go.mod", root)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		m := owner(modules, path)
		rel, err := filepath.Rel(m.dir, path)
		if err != nil {
			return err
		}
		m.files = append(m.files, filepath.ToSlash(rel))
		return nil
	})
	return modules, err
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func modulePath(root, dir string) string {
	rel, err := filepath.Rel(root, dir)
	if err != nil || rel == "." {
		return core
	}
	return core + "/" + filepath.ToSlash(rel)
}

// owner returns the innermost module that holds the file.
func owner(modules []*module, file string) *module {
	best := modules[0] // the root's
	for _, m := range modules[1:] {
		if strings.HasPrefix(file, m.dir+string(filepath.Separator)) && len(m.dir) > len(best.dir) {
			best = m
		}
	}
	return best
}

var requirement = regexp.MustCompile(`(?m)^[^/\n]*\b` + regexp.QuoteMeta(core) + `(?:/\S+)? (v\S+)`)

// required returns the one version that the modules and go.work name of each
// other.
func required(root string, modules []*module) (string, error) {
	files := []string{filepath.Join(root, "go.work")}
	for _, m := range modules {
		files = append(files, filepath.Join(m.dir, "go.mod"))
	}
	var versions []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, found := range requirement.FindAllSubmatch(text, -1) {
			versions = append(versions, string(found[1]))
		}
	}
	slices.Sort(versions)
	if versions = slices.Compact(versions); len(versions) != 1 {
		return "", fmt.Errorf("go.mod files and go.work must name one version of %s, found %v", core, versions)
	}
	return versions[0], nil
}

// pack writes what a proxy answers about one version: https://go.dev/ref/mod#goproxy-protocol.
func (m *module) pack(version, dir string) error {
	at := filepath.Join(dir, filepath.FromSlash(m.path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	requirements, err := os.ReadFile(filepath.Join(m.dir, "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2000-01-01T00:00:00Z"}`, version),
		version + ".mod":  string(requirements),
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	out, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(m.zip(out, version), out.Close())
}

// zip writes the module's files: https://go.dev/ref/mod#zip-files.
func (m *module) zip(out io.Writer, version string) error {
	w := zip.NewWriter(out)
	for _, file := range m.files {
		text, err := os.ReadFile(filepath.Join(m.dir, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		entry, err := w.Create(m.path + "@" + version + "/" + file)
		if err != nil {
			return err
		}
		if _, err := entry.Write(text); err != nil {
			return err
		}
	}
	return w.Close()
}
