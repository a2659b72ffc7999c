package main

import (
	"context"
	"sync"
	"time"

	"github.com/mcppool/mcppool"
)

// observer takes down what a pool of one server reports.
type observer struct {
	grace time.Duration // what a process has to end after its input

	mu      sync.Mutex // protects the fields below
	started time.Time  // when its last process was
	pid     int
	starts  int
	connect *mcppool.ConnectEndInfo
	shaking time.Duration // the last process's part of the connect
	stdout  output
	stderr  output
	closed  *mcppool.SessionClosedInfo

	processes []process // that it consisted of
}

func (o *observer) trace() *mcppool.Trace {
	return &mcppool.Trace{
		ProcessStarted: func(_ context.Context, p mcppool.ProcessStartedInfo) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.started, o.pid = time.Now(), p.PID
			o.starts++
		},
		ConnectEnd: func(_ context.Context, c mcppool.ConnectEndInfo) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.connect = &c
			if !o.started.IsZero() {
				o.shaking = time.Since(o.started)
			}
		},
		Junk: func(_ context.Context, j mcppool.JunkInfo) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.stdout.add(j.Line)
			o.stdout.Lines = j.Total
		},
		Stderr: func(_ context.Context, l mcppool.StderrInfo) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.stderr.add(l.Line)
		},
		SessionClosed: func(_ context.Context, c mcppool.SessionClosedInfo) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.closed = &c
		},
	}
}

// add takes down a line. A blank one is no first line.
func (p *output) add(line string) {
	p.Lines++
	if p.First == "" {
		p.First = plain(line)
	}
}

// measure looks at the processes of a server that is connected, and returns their
// memory in bytes.
func (o *observer) measure() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.connect; o.pid == 0 || c == nil || c.Err != nil {
		return 0
	}
	o.processes = treeOf(o.pid)
	var sum int64
	for _, p := range o.processes {
		sum += p.resident
	}
	return sum
}

// report adds what was observed, once the pool is closed.
func (o *observer) report(s *server) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Starts = o.starts
	if c := o.connect; c != nil && c.Err == nil {
		took := c.Took.Milliseconds()
		s.StartMS = &took
		if o.starts > 0 {
			shaking := o.shaking.Milliseconds()
			s.HandshakeMS = &shaking
		}
		if c.Info != nil {
			s.Protocol = plain(c.Info.ProtocolVersion)
			s.Info = &info{Name: plain(c.Info.ServerInfo.Name), Version: plain(c.Info.ServerInfo.Version)}
		}
	}
	if o.stdout.Lines > 0 {
		s.Stdout = &o.stdout
	}
	if o.stderr.Lines > 0 {
		s.Stderr = &o.stderr
	}
	if c := o.closed; c != nil && o.starts > 0 {
		s.End = &end{By: o.endedBy(), Exit: c.Exit, MS: c.Took.Milliseconds()}
	}
	for _, p := range o.processes {
		if p.lives() {
			s.Left = append(s.Left, p.pid)
		}
	}
}

// endedBy says which step of the close ended the process.
func (o *observer) endedBy() string {
	switch c := o.closed; {
	case c.Reason == mcppool.ReasonCrashed:
		return "itself"
	case c.Exit == "signal: killed" || c.Exit == "":
		return "kill"
	case c.Exit == "signal: terminated" || c.Took >= o.grace:
		return "sigterm"
	default:
		return "input"
	}
}
