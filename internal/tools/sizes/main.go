// Sizes reports what is too large to be read in one go, in all Go code below the
// working directory: files, functions, and lists of parameters. The limits are
// its flags. Of tests only the files are measured.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var max limits
	flag.IntVar(&max.file, "file", 0, "lines of a file")
	flag.IntVar(&max.test, "test", 0, "lines of a file of tests")
	flag.IntVar(&max.function, "func", 0, "lines of a function, from its name to its closing brace")
	flag.IntVar(&max.params, "params", 0, "parameters of a function, its receiver apart")
	flag.Parse()
	found, err := max.check(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "sizes:", err)
		os.Exit(2)
	}
	for _, line := range found {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

type limits struct{ file, test, function, params int }

// check returns a line for each excess below root.
func (max *limits) check(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		excess, err := max.checkFile(path)
		found = append(found, excess...)
		return err
	})
	return found, err
}

func (max *limits) checkFile(path string) (found []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	test := strings.HasSuffix(path, "_test.go")
	most := max.file
	if test {
		most = max.test
	}
	if lines := bytes.Count(text, []byte("\n")); lines > most {
		found = append(found, fmt.Sprintf("%s has %d lines, more than %d", path, lines, most))
	}
	if test {
		return found, nil
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range tree.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		at := files.Position(f.Pos())
		if lines := files.Position(f.End()).Line - at.Line + 1; lines > max.function {
			found = append(found, fmt.Sprintf("%s: %s has %d lines, more than %d", at, f.Name, lines, max.function))
		}
		if n := f.Type.Params.NumFields(); n > max.params {
			found = append(found, fmt.Sprintf("%s: %s has %d parameters, more than %d", at, f.Name, n, max.params))
		}
	}
	return found, nil
}
