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
	connect *mcppool.ConnectDone
	shaking time.Duration // the last process's part of the connect
	stdout  output
	stderr  output
	ended   *mcppool.ProcessDone
	crashed bool

	processes []process // that it consisted of
}

func (o *observer) trace() *mcppool.Trace {
	return &mcppool.Trace{
		ProcessStarted: func(_ context.Context, _ mcppool.Origin, pid int) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.started, o.pid = time.Now(), pid
			o.starts++
		},
		ConnectEnd: func(_ context.Context, _ mcppool.Origin, done mcppool.ConnectDone) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.connect = &done
			if !o.started.IsZero() {
				o.shaking = time.Since(o.started)
			}
		},
		Junk: func(_ mcppool.Origin, line string, total int) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.stdout.add(line)
			o.stdout.Lines = total
		},
		Stderr: func(_ mcppool.Origin, line string) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.stderr.add(line)
		},
		ProcessEnded: func(_ mcppool.Origin, done mcppool.ProcessDone) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.ended = &done
		},
		SessionClosed: func(_ mcppool.Origin, why mcppool.CloseReason, _ time.Duration) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.crashed = why == mcppool.ReasonCrashed
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
	if done := o.ended; done != nil {
		s.End = &end{By: o.endedBy(done), Exit: done.Exit, MS: done.Took.Milliseconds()}
		if done.Err != nil {
			s.LeftError = plain(done.Err.Error())
		}
	}
	for _, p := range o.processes {
		if p.lives() {
			s.Left = append(s.Left, p.pid)
		}
	}
}

// endedBy says which step of a close ended a process.
func (o *observer) endedBy(done *mcppool.ProcessDone) string {
	switch {
	case o.crashed:
		return "itself"
	case done.Exit == "signal: killed" || done.Exit == "":
		return "kill"
	case done.Exit == "signal: terminated" || done.Took >= o.grace:
		return "sigterm"
	default:
		return "input"
	}
}
