package mcpservers

import "path/filepath"

// Config is what several files say together.
type Config struct {
	// Entries are the servers of all files, in the order of the files and in
	// each in its own. No two have one name.
	Entries []Entry
	// Warnings are those of all files, and which servers an earlier file hides.
	Warnings []Warning
	// Errs are the files that can't be read, as [*Error] each. The others are
	// served.
	Errs []error
}

// Load reads several files. Of two servers with one name that of the earlier
// file counts, disabled or broken as it may be, and a warning names the other:
// so a project's file stands before the user's. A file that can't be read costs
// its own servers. What ~/.claude.json says that its user declined of a project's
// .mcp.json is off.
func Load(opts *Options, paths ...string) *Config {
	files := make([]*File, len(paths))
	errs := make([]error, len(paths))
	for i, path := range paths {
		files[i], errs[i] = Read(path, opts)
	}
	return merge(files, errs)
}

// merge joins files, of which a nil one has an error in errs or nothing to say.
func merge(files []*File, errs []error) *Config {
	c := new(Config)
	first := make(map[string]*Entry)
	rejected := make(map[string]bool)
	for _, f := range files {
		if f != nil {
			for _, name := range f.rejected {
				rejected[name] = true
			}
		}
	}
	for i, f := range files {
		if errs[i] != nil {
			c.Errs = append(c.Errs, errs[i])
		}
		if f == nil {
			continue
		}
		c.Warnings = append(c.Warnings, f.Warnings...)
		for j := range f.Entries {
			e := &f.Entries[j]
			if by := first[e.Name]; by != nil {
				at := Place{File: by.File, Line: by.Line}
				c.Warnings = append(c.Warnings, Warning{
					Place:  Place{File: e.File, Line: e.Line, Server: e.Name},
					Reason: "has no effect: " + at.String() + " has a server of this name and comes first",
				})
				continue
			}
			first[e.Name] = e
			c.Entries = append(c.Entries, *e)
			if rejected[e.Name] && filepath.Base(e.File) == ".mcp.json" {
				last := &c.Entries[len(c.Entries)-1]
				last.Disabled, last.Err = true, nil
			}
		}
	}
	return c
}
