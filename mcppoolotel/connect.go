package mcppoolotel

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcppool/mcppool"
)

// connecting is a connect that is under way. Only the connect's own goroutine
// touches it.
type connecting struct {
	begun     time.Time
	processes []started
}

// started is a process that was started, or that should have been, without a pid.
type started struct {
	at  time.Time
	pid int
}

func (t *Telemetry) connectBegin(_ context.Context, i mcppool.ConnectBeginInfo) {
	t.connects.Store(i.SessionID, &connecting{begun: time.Now()})
}

func (t *Telemetry) processStarted(_ context.Context, i mcppool.ProcessStartedInfo) {
	if c, ok := t.connects.Load(i.SessionID); ok {
		c := c.(*connecting)
		c.processes = append(c.processes, started{time.Now(), i.PID})
	}
}

func (t *Telemetry) connectEnd(ctx context.Context, i mcppool.ConnectEndInfo) {
	end := time.Now()
	c := &connecting{begun: end.Add(-i.Took)} // where somebody else has ConnectBegin
	if known, ok := t.connects.LoadAndDelete(i.SessionID); ok {
		c = known.(*connecting)
	}
	// What isn't a version that there is would be a text of the server's.
	if i.Err == nil && i.Info != nil && slices.Contains(mcp.ValidProtocolVersions, i.Info.ProtocolVersion) {
		t.protocols.Store(i.SessionID, i.Info.ProtocolVersion)
	}
	f := failureOf(false, i.Err)
	attrs := slices.Concat(t.common, t.boundAttrs(i.Origin), []attribute.KeyValue{keySpare.Bool(i.Spare)})
	t.record(ctx, t.connect, i.Took, f, slices.Concat(attrs, t.serverAttr(i.Origin)))
	ctx, span := t.begin(ctx, "mcppool.connect", trace.SpanKindInternal, c.begun, append(attrs, originAttrs(i.Origin)...))
	t.parts(ctx, c, i.Origin, i.Err, end)
	finish(span, f, end)
}

// parts makes the spans below that of a connect. There are none when no process
// was started, nor failed to be: over HTTP, or with a Dial of the caller's.
//
// When a second process is started, nobody tells when the first was given up. So
// the handshake with the first goes on until the second is there, whose own start
// has no length: it takes a millisecond, where the first may have been silent for
// seconds.
func (t *Telemetry) parts(ctx context.Context, c *connecting, from mcppool.Origin, err error, end time.Time) {
	var start *mcppool.StartError
	f := failureOf(false, err)
	if errors.As(err, &start) && start.Phase == "start" {
		c.processes = append(c.processes, started{at: end})
	}
	attrs := slices.Concat(t.common, transportAttrs(from.HTTP), originAttrs(from))
	part := func(name string, p started, begun, ended time.Time, f failure) {
		attrs := slices.Clone(attrs)
		if p.pid != 0 {
			attrs = append(attrs, keyPID.Int(p.pid))
		}
		_, span := t.begin(ctx, name, trace.SpanKindInternal, begun, attrs)
		finish(span, f, ended)
	}
	at := c.begun
	for i, p := range c.processes {
		if i > 0 {
			part("mcppool.handshake", c.processes[i-1], at, p.at, failure{kind: "restarted"})
			at = p.at
		}
		if p.pid == 0 {
			part("mcppool.spawn", p, at, p.at, f)
			return
		}
		part("mcppool.spawn", p, at, p.at, failure{})
		at = p.at
	}
	if n := len(c.processes); n > 0 {
		part("mcppool.handshake", c.processes[n-1], at, end, f)
	}
}
