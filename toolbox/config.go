package toolbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mcppool/mcppool"
)

// ConfigOptions say how a configuration file is read. Nil means the defaults.
type ConfigOptions struct {
	// LookupEnv gives the variables for ${NAME}; default os.LookupEnv.
	LookupEnv func(name string) (value string, ok bool)
	// Input gives the values for ${input:id}, for which VS Code asks its user;
	// default: none but the defaults that the file declares.
	Input func(id string) (value string, ok bool)
	// Edit may change each entry, but not its ID, to say what files have no
	// words for, such as Timeout, Server.IdleTimeout and Server.Exclusive. It is
	// called each time the files are read, and must do the same each time.
	Edit func(*Entry)
}

// Config is what configuration files say.
type Config struct {
	// Entries are the servers by ID, disabled ones included.
	Entries []Entry
	// Warnings name what was read over: unknown fields, and fields that mean
	// nothing here.
	Warnings []ConfigWarning
}

// Static is a catalog of the configuration as it is now.
func (c *Config) Static() *Static {
	s, err := NewStatic(c.Entries...)
	if err != nil {
		panic("bug: " + err.Error()) // IDs are the keys of a map
	}
	return s
}

// ConfigWarning is a place in a configuration file that has no effect.
type ConfigWarning struct {
	File   string // empty when it isn't known
	Server string // empty at the top level
	Field  string
	Reason string
}

func (w ConfigWarning) String() string {
	return (&ConfigError{File: w.File, Server: w.Server, Field: w.Field, Reason: w.Reason}).text()
}

// ConfigError is what is wrong with a configuration file. It never holds a
// value of the file.
type ConfigError struct {
	File     string // empty when it isn't known
	Server   string // its id; empty at the top level
	Field    string // command, args[1], env.TOKEN, ...; empty when it is all of it
	Variable string // that isn't set; empty when it is about something else
	Reason   string
}

func (e *ConfigError) Error() string { return "toolbox: " + e.text() }

func (e *ConfigError) text() string {
	var b strings.Builder
	for _, part := range []struct{ format, value string }{
		{"%s: ", e.File}, {"server %q: ", e.Server}, {"%s: ", e.Field}, {"variable %q ", e.Variable},
	} {
		if part.value != "" {
			fmt.Fprintf(&b, part.format, part.value)
		}
	}
	b.WriteString(e.Reason)
	return b.String()
}

// LoadConfig reads mcpServers files and merges them: of servers with the same
// id, that of the later file stands, whole. The error joins everything that is
// wrong, as [*ConfigError] each.
func LoadConfig(opts *ConfigOptions, files ...string) (*Config, error) {
	return mergeConfigs(opts, readFiles(files))
}

// configFile is what reading a file gave.
type configFile struct {
	name string
	data []byte
	err  error
}

func readFiles(names []string) []configFile {
	files := make([]configFile, len(names))
	for i, name := range names {
		data, err := os.ReadFile(name)
		files[i] = configFile{name: name, data: data, err: err}
	}
	return files
}

func mergeConfigs(opts *ConfigOptions, files []configFile) (*Config, error) {
	var (
		merged Config
		byID   = make(map[string]Entry)
		errs   []error
	)
	for _, f := range files {
		if f.err != nil {
			errs = append(errs, &ConfigError{File: f.name, Reason: "can't be read: " + plainPathError(f.err)})
			continue
		}
		c, err := parseConfig(f.name, f.data, opts)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, e := range c.Entries {
			byID[e.ID] = e
		}
		merged.Warnings = append(merged.Warnings, c.Warnings...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		merged.Entries = append(merged.Entries, byID[id])
	}
	return &merged, nil
}

// plainPathError leaves out the path, which the text has already.
func plainPathError(err error) string {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

// ParseConfig reads one configuration as Claude Desktop ("mcpServers"), Cursor
// and VS Code ("servers", "inputs") write it, comments and trailing commas
// included. ${VAR}, ${VAR:-default}, ${env:VAR} and ${input:id} are replaced in
// command, args, env, cwd, url and headers of servers that aren't disabled. The
// error joins everything that is wrong, as [*ConfigError] each.
func ParseConfig(data []byte, opts *ConfigOptions) (*Config, error) {
	return parseConfig("", data, opts)
}

func parseConfig(file string, data []byte, opts *ConfigOptions) (*Config, error) {
	p := configParser{file: file}
	if opts != nil {
		p.opts = *opts
	}
	if p.opts.LookupEnv == nil {
		p.opts.LookupEnv = os.LookupEnv
	}
	p.document(plainJSON(data))
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	return &p.config, nil
}

type configParser struct {
	file   string
	opts   ConfigOptions
	inputs map[string]string
	config Config
	errs   []error
	server string // whose entry is being read
}

func (p *configParser) fail(field, variable, reason string) {
	p.errs = append(p.errs, &ConfigError{File: p.file, Server: p.server, Field: field, Variable: variable, Reason: reason})
}

func (p *configParser) warn(field, reason string) {
	p.config.Warnings = append(p.config.Warnings, ConfigWarning{File: p.file, Server: p.server, Field: field, Reason: reason})
}

func (p *configParser) document(data []byte) {
	top, ok := p.object("", data)
	if !ok {
		return
	}
	servers := make(map[string]json.RawMessage)
	found := false
	for _, field := range slices.Sorted(maps.Keys(top)) {
		switch field {
		case "mcpServers", "servers":
			found = true
			list, _ := p.object(field, top[field])
			for id, raw := range list {
				if _, twice := servers[id]; twice {
					p.fail(field, "", fmt.Sprintf("has the server %q, and so has mcpServers", id))
				}
				servers[id] = raw
			}
		case "inputs":
			p.readInputs(top[field])
		case "$schema":
		default:
			p.warn(field, "is unknown here and was read over")
		}
	}
	if !found {
		p.fail("", "", `has neither "mcpServers" nor "servers"`)
	}
	for _, id := range slices.Sorted(maps.Keys(servers)) {
		p.server = id
		if id == "" {
			p.fail("", "", "a server's id is empty")
			continue
		}
		p.entry(id, servers[id])
	}
}

// readInputs keeps the defaults of VS Code's inputs.
func (p *configParser) readInputs(raw json.RawMessage) {
	var inputs []struct {
		ID      string  `json:"id"`
		Default *string `json:"default"`
	}
	if json.Unmarshal(raw, &inputs) != nil {
		p.fail("inputs", "", "isn't a list of objects with id and default")
		return
	}
	p.inputs = make(map[string]string)
	for _, in := range inputs {
		if in.Default != nil {
			p.inputs[in.ID] = *in.Default
		}
	}
}

// object takes an object apart, and says where it isn't one.
func (p *configParser) object(field string, raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	err := json.Unmarshal(raw, &m)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		p.fail(field, "", position(raw, syntax.Offset)+": "+syntax.Error())
	case err != nil || m == nil:
		p.fail(field, "", "isn't a JSON object")
	default:
		return m, true
	}
	return nil, false
}

// position is where the byte before offset is, as editors count.
func position(text []byte, offset int64) string {
	before := text[:max(0, min(int(offset)-1, len(text)))]
	line := bytes.Count(before, []byte("\n"))
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return fmt.Sprintf("line %d, column %d", line+1, column+1)
}

// entry reads one server.
func (p *configParser) entry(id string, raw json.RawMessage) {
	fields, ok := p.object("", raw)
	if !ok {
		return
	}
	errsBefore := len(p.errs)
	e := Entry{ID: id, Name: id}
	if raw, ok := fields["disabled"]; ok {
		decode(p, "disabled", raw, "true or false", &e.Disabled)
	}
	x := expander{env: p.opts.LookupEnv, inputs: p.inputs, input: p.opts.Input, report: p.fail}
	if e.Disabled {
		// Nobody has to set the variables of what isn't used.
		x.report = func(string, string, string) {}
	}
	kind := ""
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		raw := fields[field]
		switch field {
		case "command":
			e.Server.Command = p.text(&x, field, raw)
		case "args":
			e.Server.Args = p.texts(&x, field, raw)
		case "env":
			e.Server.Env = p.pairs(&x, field, raw)
		case "cwd":
			e.Server.Dir = p.text(&x, field, raw)
		case "url":
			e.Server.URL = p.text(&x, field, raw)
		case "headers":
			e.Server.Header = p.pairs(&x, field, raw)
		case "type", "transport":
			decode(p, field, raw, "a string", &kind)
		case "protocol":
			decode(p, field, raw, "a string", &e.Server.Protocol)
		case "allowedTools":
			decode(p, field, raw, "a list of strings", &e.Allow)
		case "disabledTools":
			decode(p, field, raw, "a list of strings", &e.Deny)
		case "name":
			decode(p, field, raw, "a string", &e.Name)
		case "disabled":
		default:
			p.warn(field, "is unknown here and was read over")
		}
	}
	if !e.Disabled && len(p.errs) == errsBefore {
		p.checkKind(&e.Server, kind)
	}
	if p.opts.Edit != nil {
		p.opts.Edit(&e)
		e.ID = id
	}
	p.config.Entries = append(p.config.Entries, e)
}

// checkKind checks that what a server says of its transport is what it has.
func (p *configParser) checkKind(s *mcppool.Server, kind string) {
	switch kind {
	case "", "stdio", "http", "sse", "streamable-http", "streamableHttp":
	default:
		p.fail("type", "", fmt.Sprintf("is %q: stdio, http, streamable-http and sse are known", oneLine(kind, maxNamed)))
		return
	}
	switch {
	case s.Command != "" && s.URL != "":
		p.fail("", "", "has both command and url")
	case s.Command == "" && (kind == "stdio" || kind == "" && s.URL == ""):
		p.fail("command", "", "is missing or empty")
	case s.URL == "" && kind != "" && kind != "stdio":
		p.fail("url", "", "is missing or empty")
	case kind == "sse" && !strings.HasSuffix(strings.TrimSuffix(s.URL, "/"), "/sse"):
		p.warn("type", `is sse, which is spoken only where the url's path ends in "/sse"`)
	}
}

func (p *configParser) text(x *expander, field string, raw json.RawMessage) string {
	var s string
	decode(p, field, raw, "a string", &s)
	return x.expand(field, s)
}

func (p *configParser) texts(x *expander, field string, raw json.RawMessage) []string {
	var list []string
	decode(p, field, raw, "a list of strings", &list)
	for i, s := range list {
		list[i] = x.expand(fmt.Sprintf("%s[%d]", field, i), s)
	}
	return list
}

// pairs reads an object of strings. Numbers, which people write for ports, are
// taken as they are written; null means that the pair isn't there.
func (p *configParser) pairs(x *expander, field string, raw json.RawMessage) map[string]string {
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&values) != nil {
		p.fail(field, "", "isn't an object of strings")
		return nil
	}
	pairs := make(map[string]string, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch v := values[name].(type) {
		case string:
			pairs[name] = x.expand(field+"."+name, v)
		case json.Number:
			pairs[name] = v.String()
		case nil:
		default:
			p.fail(field+"."+name, "", "isn't a string")
		}
	}
	return pairs
}

func decode[T any](p *configParser, field string, raw json.RawMessage, want string, to *T) {
	if json.Unmarshal(raw, to) != nil {
		p.fail(field, "", "isn't "+want)
	}
}
