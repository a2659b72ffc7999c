package mcpservers

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/toolbox"
)

// File is what one configuration file says.
type File struct {
	// Path is the file's name as it was given.
	Path string
	// Host is whose file it is: [Options.Host], else what the place of the
	// servers in the file says, else what the path says, else what a field says
	// that only one host has, else [UnknownHost].
	Host Host
	// Entries are the servers in the file's order, disabled and broken ones
	// included. No two have one name.
	Entries []Entry
	// Warnings name what has no effect.
	Warnings []Warning

	uses     uses
	blank    bool     // it holds no text
	rejected []string // servers of the project's .mcp.json that Claude Code's user declined
}

// Entry is one server of a file.
type Entry struct {
	// Name is the server's key, or its name where the host keeps a list.
	Name string
	// Title is its name for people; empty when the file has none.
	Title string
	// File and Line say where it stands, and Host whose file that is.
	File string
	Line int
	Host Host
	// Disabled says that the file switches it off. Variables in Server stand as
	// they are written then, and Err is nil.
	Disabled bool
	// Err says why the server can't be used and what to write instead, as an
	// [*Error] or as [Errors]; nil when it can. Other fields may be empty then.
	Err error
	// Server is what to run or to reach, with Name as its name.
	Server mcppool.Server
	// Transport is what the file states: "stdio", "http" (streamable), "sse",
	// or empty when it states none.
	Transport string
	// Tools says which tools may be listed and called.
	Tools toolbox.Filter
	// AutoApprove names the tools that the host calls without asking its user.
	// It restricts nothing; "*" is all of them.
	AutoApprove []string
	// StartTimeout and CallTimeout bound the server's start and one call; zero
	// when the file says nothing. In a catalog CallTimeout is [toolbox.Entry]'s
	// Timeout, and StartTimeout the ConnectTimeout of its Server's Policy.
	StartTimeout, CallTimeout time.Duration
}

// Read reads a configuration file. It fails with an [*Error] when the file
// can't be read or isn't of its format; what is wrong with one server is in
// that server's [Entry.Err].
func Read(path string, opts *Options) (*File, error) {
	f, _, err := read(path, withDefaults(opts))
	return f, err
}

// read returns what the file at path says, and what it held.
func read(path string, o *Options) (*File, digest, error) {
	data, e := readFile(path, o.maxSize())
	d := digestOf(data, e)
	if e != nil {
		e.File = path
		return nil, d, e
	}
	f, err := parse(path, data, o)
	return f, d, err
}

// Parse is [Read] for text that is in memory. The end of the name says the
// format (.json, .jsonc, .toml, .yaml, .yml); without one the text does.
func Parse(name string, data []byte, opts *Options) (*File, error) {
	o := withDefaults(opts)
	if most := o.maxSize(); most >= 0 && int64(len(data)) > most {
		return nil, &Error{Place: Place{File: name}, Reason: tooLarge}
	}
	return parse(name, data, o)
}

func withDefaults(opts *Options) *Options {
	if opts == nil {
		return &Options{}
	}
	return opts
}

func parse(name string, data []byte, o *Options) (*File, error) {
	root, e := parseText(name, data)
	if e != nil {
		e.File = name
		return nil, e
	}
	absolute := name
	if abs, err := filepath.Abs(name); err == nil && name != "" {
		absolute = abs
	}
	p := parser{opts: o, file: &File{Path: name, blank: len(bytes.TrimSpace(data)) == 0}, path: absolute, workspace: o.workspace(absolute), dir: filepath.Dir(absolute), budget: maxReplaced}
	if e := p.document(root); e != nil {
		e.File = name
		return nil, e
	}
	return p.file, nil
}

const tooLarge = "is larger than Options.MaxSize: raise it if the file is meant"

// readFile reads what isn't larger than most. It opens nothing that could block.
func readFile(path string, most int64) ([]byte, *Error) {
	cant := func(err error) *Error {
		return &Error{Reason: "can't be read: " + plainPathError(err), cause: err}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, cant(err)
	case info.IsDir():
		return nil, &Error{Reason: "is a directory: name the file in it"}
	case !info.Mode().IsRegular():
		return nil, &Error{Reason: "isn't a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cant(err)
	}
	defer f.Close()
	var r io.Reader = f
	if most >= 0 {
		r = io.LimitReader(f, most+1)
	}
	data, err := io.ReadAll(r)
	switch {
	case err != nil:
		return nil, cant(err)
	case most >= 0 && int64(len(data)) > most:
		return nil, &Error{Reason: tooLarge}
	}
	return data, nil
}

// plainPathError leaves out the path, which the text has already.
func plainPathError(err error) string {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}
