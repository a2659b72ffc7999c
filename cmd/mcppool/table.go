package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// The most of a text that the table shows, in bytes; JSON has more of it.
const (
	maxName  = 32
	maxFrom  = 40
	maxFirst = 60
)

// writeTable prints a line for each server, and below what is to be read about
// some of them.
func (r *report) writeTable(w io.Writer) error {
	var b bytes.Buffer
	if len(r.Servers) > 0 {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "SERVER\tSTATUS\tFROM\tSTART\tREVISION\tTOOLS\tMEMORY\tENDED\tPRINTED")
		for i := range r.Servers {
			fmt.Fprintln(t, strings.Join(r.Servers[i].row(), "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	r.writeSections(&b)
	_, err := w.Write(trimLines(b.Bytes()))
	return err
}

// trimLines takes the blanks off the ends of lines.
func trimLines(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimRight(lines[i], " ")
	}
	return bytes.Join(lines, []byte("\n"))
}

const none = "-"

func (s *server) row() []string {
	start, tools, memory, ended := none, none, none, none
	if s.StartMS != nil {
		start = seconds(*s.StartMS)
	}
	if s.Tools != nil {
		tools = strconv.Itoa(*s.Tools)
		if n := len(s.OddTools); n > 0 {
			tools += fmt.Sprintf(" (%d odd)", n)
		}
	}
	if s.MemoryBytes > 0 {
		memory = fmt.Sprintf("%.0f MB", float64(s.MemoryBytes)/1e6)
	}
	if s.End != nil {
		ended = s.End.String()
	}
	protocol := s.Protocol
	if protocol == "" {
		protocol = none
	}
	return []string{cut(s.Name, maxName), string(s.Status), s.from(), start, protocol, tools, memory, ended, s.printed()}
}

// from says whose file names the server, and where.
func (s *server) from() string {
	at := s.File
	if n := len(at); n > maxFrom {
		at = "..." + strings.ToValidUTF8(at[n-maxFrom:], "")
	}
	at = fmt.Sprintf("%s:%d", at, s.Line)
	if s.Host != "" {
		return s.Host + " " + at
	}
	return at
}

// ways are the steps of a close, for people.
var ways = map[string]string{"input": "on end of input", "sigterm": "on SIGTERM", "kill": "killed", "itself": "by itself"}

func (e *end) String() string {
	text := ways[e.By]
	if e.Exit != "" && e.Exit != "signal: killed" && e.Exit != "signal: terminated" {
		text += ", " + e.Exit
	}
	return text
}

func (s *server) printed() string {
	var parts []string
	if s.Stdout != nil {
		parts = append(parts, "stdout "+s.Stdout.String())
	}
	if s.Stderr != nil {
		parts = append(parts, "stderr "+s.Stderr.String())
	}
	if parts == nil {
		return none
	}
	return strings.Join(parts, "; ")
}

func (p *output) String() string { return fmt.Sprintf("%d: %s", p.Lines, cut(p.First, maxFirst)) }

func (r *report) writeSections(w io.Writer) {
	var failed, left, warnings, suggestions []string
	working, enabled := 0, 0
	for i := range r.Servers {
		s := &r.Servers[i]
		if s.Status == statusOK {
			working++
		}
		if s.Status != statusOff {
			enabled++
		}
		if s.Error != "" {
			failed = append(failed, s.Name+": "+s.Error)
		}
		switch {
		case s.LeftError != "":
			left = append(left, s.Name+": "+s.LeftError)
		case len(s.Left) > 0:
			left = append(left, fmt.Sprintf("%s: processes %s", s.Name, strings.Trim(fmt.Sprint(s.Left), "[]")))
		}
		for _, g := range s.Suggestions {
			suggestions = append(suggestions, fmt.Sprintf("%s: %s (%s)", s.Name, g.Set, g.Why))
		}
	}
	for _, warn := range r.Warnings {
		warnings = append(warnings, warn.text)
	}
	section(w, "Failed", failed)
	section(w, "Left running", left)
	section(w, "Files that can't be read", r.Errors)
	section(w, "Warnings", warnings)
	section(w, "Suggestions", suggestions)
	if len(r.Servers) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "Enabled servers that work: %d of %d.\n", working, enabled)
}

func section(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
}
