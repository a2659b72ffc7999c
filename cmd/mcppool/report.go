package main

import (
	"encoding/json"
	"io"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// report is what check prints. Its JSON form is described in the README: fields
// are added to it, and none is changed or removed.
type report struct {
	Servers  []server  `json:"servers"`            // in the order of the files
	Warnings []warning `json:"warnings,omitempty"` // what has no effect in the files
	Errors   []string  `json:"errors,omitempty"`   // files that can't be read
}

// server is what is known of one server.
type server struct {
	Name   string `json:"name"`
	Host   string `json:"host,omitempty"` // whose file it is; empty when that isn't known
	File   string `json:"file"`
	Line   int    `json:"line"`
	Status status `json:"status"`
	Error  string `json:"error,omitempty"` // of status failed

	StartMS     *int64    `json:"start_ms,omitempty"`     // until the handshake was through
	HandshakeMS *int64    `json:"handshake_ms,omitempty"` // of that, since its last process was started
	Starts      int       `json:"starts,omitempty"`       // processes that it took
	Protocol    string    `json:"protocol,omitempty"`     // the revision
	Info        *info     `json:"info,omitempty"`
	Tools       *int      `json:"tools,omitempty"`
	OddTools    []oddTool `json:"odd_tools,omitempty"`    // entries of its list that are no tool
	MemoryBytes int64     `json:"memory_bytes,omitempty"` // of the process tree; 0 where it isn't known
	Stderr      *output   `json:"stderr,omitempty"`
	Stdout      *output   `json:"stdout,omitempty"` // lines that are no messages
	End         *end      `json:"end,omitempty"`
	Left        []int     `json:"left,omitempty"`       // processes that were left, by pid
	LeftError   string    `json:"left_error,omitempty"` // why it isn't known that nothing was

	Suggestions []suggestion `json:"suggestions,omitempty"`
}

// status is whether a server can be used.
type status string

const (
	statusOK          status = "ok"
	statusBroken      status = "failed"
	statusOff         status = "off"         // its file switches it off
	statusInterrupted status = "interrupted" // by ^C, before it was known
)

// info is what a server says that it is.
type info struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// output is what a server wrote to a stream.
type output struct {
	Lines int    `json:"lines"`
	First string `json:"first"`
}

// end is how a server's process ended.
type end struct {
	By   string `json:"by"`             // "input", "sigterm", "kill", or "itself"
	Exit string `json:"exit,omitempty"` // "exit status 0", "signal: killed", ...
	MS   int64  `json:"ms"`             // since it was asked to
}

// suggestion is a setting that suits a server.
type suggestion struct {
	Set string `json:"set"` // as Go or as the file has it
	Why string `json:"why"`
}

// warning is a place in a file that has no effect.
type warning struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Server string `json:"server,omitempty"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
	text   string
}

func warningOf(w mcpservers.Warning) warning {
	return warning{
		File: plain(w.File), Line: w.Line, Server: plain(w.Server), Field: plain(w.Field), Reason: plain(w.Reason),
		text: plain(w.String()),
	}
}

func (r *report) writeJSON(w io.Writer) error {
	if r.Servers == nil {
		r.Servers = []server{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// status is the exit status.
func (r *report) status() int {
	if len(r.Errors) > 0 {
		return statusUsage
	}
	for i := range r.Servers {
		if !r.Servers[i].fine() {
			return statusFailed
		}
	}
	return statusFine
}

// fine reports whether nothing has to be mended.
func (s *server) fine() bool {
	return (s.Status == statusOK || s.Status == statusOff) && len(s.Left) == 0 && s.LeftError == ""
}

// oddTool is an entry of a list of tools that can't be understood, and so isn't offered.
type oddTool struct {
	Name   string `json:"name,omitempty"` // none if it has none
	Reason string `json:"reason"`
}
