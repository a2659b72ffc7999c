package mcppool_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/mcppool/mcppool"
)

// modelPlan is one schedule. It is drawn wholly before it is run, so that rapid, which
// knows nothing of bubbles, can shrink it.
type modelPlan struct {
	Options mcppool.Options
	Dials   []modelDialPlan // how the servers behave, in turn
	Steps   []modelStep
	End     modelStep
}

// GoString keeps what rapid prints of a plan short: the trace says more.
func (p *modelPlan) GoString() string {
	o := &p.Options
	return fmt.Sprintf("MaxSessions %d, IdleTimeout %s, ConnectTimeout %s, AfterAbandon %d, ProbeTimeout %s, HealthInterval %s\n%+v\n%+v\n%+v",
		o.MaxSessions, o.IdleTimeout, o.ConnectTimeout, o.AfterAbandon, o.ProbeTimeout, o.HealthInterval, o.Limits, o.Backoff, o.Recycle)
}

func (p *modelPlan) dial(n int) modelDialPlan { return p.Dials[n%len(p.Dials)] }

// modelDialPlan is how one connection behaves.
type modelDialPlan struct {
	Takes     time.Duration
	Stubborn  bool // it doesn't look at its ctx
	Fails     bool
	Panics    bool
	DieAfter  time.Duration // zero: never
	CloseTime time.Duration
	Mute      bool // it answers nothing but calls
	Prober    bool
	NoList    bool // it knows no tools/list
}

type modelEnd string // how a call ends

const (
	endAnswer     modelEnd = "answer"
	endIsError    modelEnd = "is error"
	endRPC        modelEnd = "RPC error"
	endOdd        modelEnd = "odd answer"
	endHang       modelEnd = "hang"
	endDie        modelEnd = "die"
	endLostUnsent modelEnd = "lost unsent"
	endPanic      modelEnd = "panic"
)

// modelCallPlan is one call, as its caller and its server take it.
type modelCallPlan struct {
	Timeout time.Duration
	Cancel  time.Duration // negative: never
	Pipe    time.Duration // until it is written
	Takes   time.Duration
	End     modelEnd
	Stops   bool // the server stops when it is given up
	CheckNo int  // at which asking its check says no; zero: never
}

type modelKind string // of a step

const (
	stepSleep    modelKind = "sleep"
	stepCall     modelKind = "call"
	stepList     modelKind = "list"
	stepDo       modelKind = "Do"
	stepAcquire  modelKind = "Acquire"
	stepPrewarm  modelKind = "Prewarm"
	stepKill     modelKind = "kill"
	stepServer   modelKind = "CloseServer"
	stepCommand  modelKind = "CloseCommand"
	stepScope    modelKind = "CloseScope"
	stepIdle     modelKind = "CloseIdle"
	stepRetire   modelKind = "RetireServer"
	stepReset    modelKind = "ResetBackoff"
	stepLimits   modelKind = "SetLimits"
	stepShutdown modelKind = "Shutdown"
	stepClose    modelKind = "Close"
)

type modelStep struct {
	Kind    modelKind
	Server  int
	Scope   string
	N       int
	For     time.Duration // sleep, hold, or how old
	Call    modelCallPlan
	Calls   []modelCallPlan // within a lease
	Discard bool
	Limits  mcppool.Limits
	Racing  bool // the next step doesn't wait until nothing runs
}

const ms = time.Millisecond

func oneOf[T any](values ...T) *rapid.Generator[T] { return rapid.SampledFrom(values) }

func rarely() *rapid.Generator[bool] {
	return oneOf(false, false, false, false, false, false, false, true)
}

var (
	drawLimits = rapid.Custom(func(t *rapid.T) mcppool.Limits {
		return mcppool.Limits{
			MaxProcesses: oneOf(0, 0, 0, 1, 2, 3).Draw(t, "MaxProcesses"),
			MaxStarting:  oneOf(0, 0, 0, 1, 2).Draw(t, "MaxStarting"),
			MaxPerScope:  oneOf(0, 0, 0, 1, 2).Draw(t, "MaxPerScope"),
			MaxPerServer: oneOf(0, 0, 0, 1, 2).Draw(t, "MaxPerServer"),
			MaxWaiting:   oneOf(0, 0, 0, 0, 1, 3).Draw(t, "MaxWaiting"),
			MaxWait:      oneOf(0, 0, 0, 0, 20*ms, 200*ms).Draw(t, "MaxWait"),
		}
	})
	drawDial = rapid.Custom(func(t *rapid.T) modelDialPlan {
		return modelDialPlan{
			Takes:     oneOf(0, 0, 10*ms, 50*ms, 300*ms).Draw(t, "takes"),
			Stubborn:  rarely().Draw(t, "stubborn"),
			Fails:     rarely().Draw(t, "fails"),
			Panics:    rarely().Draw(t, "panics") && rarely().Draw(t, "really"),
			DieAfter:  oneOf(0, 0, 0, 0, 0, 0, 0, 50*ms, 200*ms).Draw(t, "die after"),
			CloseTime: oneOf(0, 0, 10*ms, 100*ms).Draw(t, "close time"),
			Mute:      rarely().Draw(t, "mute"),
			Prober:    rapid.Bool().Draw(t, "prober"),
			NoList:    rarely().Draw(t, "no list"),
		}
	})
	drawCall = rapid.Custom(func(t *rapid.T) modelCallPlan {
		return modelCallPlan{
			Timeout: oneOf(5*time.Second, time.Second, 200*ms, 50*ms, 10*ms, 0).Draw(t, "timeout"),
			Cancel:  oneOf(-1, -1, -1, -1, -1, 0, 10*ms, 50*ms).Draw(t, "cancel"),
			Pipe:    oneOf(0, 0, 0, 0, 0, 10*ms, 300*ms).Draw(t, "pipe"),
			Takes:   oneOf(0, 0, 10*ms, 50*ms, 200*ms).Draw(t, "takes"),
			End: oneOf(endAnswer, endAnswer, endAnswer, endAnswer, endAnswer, endAnswer, endIsError, endRPC, endOdd,
				endHang, endHang, endDie, endLostUnsent, endPanic).Draw(t, "end"),
			Stops:   rapid.Bool().Draw(t, "stops"),
			CheckNo: oneOf(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2).Draw(t, "check"),
		}
	})
	drawStep = rapid.Custom(func(t *rapid.T) modelStep {
		s := modelStep{
			Kind: oneOf(stepSleep, stepSleep, stepSleep, stepSleep, stepSleep, stepSleep,
				stepCall, stepCall, stepCall, stepCall, stepCall, stepCall, stepCall, stepCall, stepCall, stepCall, stepCall, stepCall,
				stepDo, stepAcquire, stepAcquire, stepList, stepPrewarm, stepKill, stepServer, stepCommand, stepScope, stepIdle, stepRetire,
				stepReset, stepLimits, stepLimits).Draw(t, "kind"),
			Racing: rapid.Bool().Draw(t, "racing"),
		}
		switch s.Kind {
		case stepSleep, stepIdle:
			s.For = oneOf(10*ms, 0, 50*ms, 100*ms, 500*ms, 2*time.Second).Draw(t, "for")
		case stepKill:
			s.N = rapid.IntRange(0, 5).Draw(t, "which")
		case stepLimits:
			s.Limits = drawLimits.Draw(t, "limits")
		case stepDo, stepAcquire:
			s.For = oneOf(0, 10*ms, 100*ms, 500*ms).Draw(t, "hold")
			s.Calls = rapid.SliceOfN(drawCall, 0, 2).Draw(t, "calls")
			s.Discard = rarely().Draw(t, "discard")
		case stepPrewarm:
			s.N = rapid.IntRange(1, 3).Draw(t, "n")
		}
		switch s.Kind {
		case stepCall, stepDo, stepAcquire, stepList, stepPrewarm, stepScope:
			s.Scope = oneOf("a", "b", "c", "").Draw(t, "scope")
			s.Call = drawCall.Draw(t, "call")
		}
		switch s.Kind {
		case stepCall, stepDo, stepAcquire, stepList, stepPrewarm, stepServer, stepCommand, stepRetire, stepReset:
			s.Server = rapid.IntRange(0, len(modelServers)-1).Draw(t, "server")
		}
		return s
	})
	drawPlan = rapid.Custom(func(t *rapid.T) *modelPlan {
		p := &modelPlan{Options: mcppool.Options{
			MaxSessions:    oneOf(-1, -1, -1, 1, 2, 4).Draw(t, "MaxSessions"),
			IdleTimeout:    oneOf(-1, 5*time.Second, 500*ms, 50*ms).Draw(t, "IdleTimeout"),
			ConnectTimeout: oneOf(time.Second, 100*ms).Draw(t, "ConnectTimeout"),
			AfterAbandon:   oneOf(mcppool.AbandonDiscard, mcppool.AbandonProbe).Draw(t, "AfterAbandon"),
			ProbeTimeout:   oneOf(0, 50*ms).Draw(t, "ProbeTimeout"),
			HealthInterval: oneOf(0, 0, 0, 300*ms).Draw(t, "HealthInterval"),
			Backoff: mcppool.Backoff{Failures: oneOf(0, 0, 1, 2).Draw(t, "After"),
				Initial: 100 * ms, Max: 300 * ms, MinUptime: 100 * ms},
			Recycle: mcppool.Recycle{MaxCalls: oneOf(0, 0, 0, 1, 2).Draw(t, "MaxCalls"),
				MaxLifetime: oneOf(0, 0, 0, 100*ms).Draw(t, "MaxLifetime")},
			Limits: drawLimits.Draw(t, "limits"),
		}}
		p.Dials = rapid.SliceOfN(drawDial, 1, 12).Draw(t, "dials")
		// In parts, since rapid's slices are short.
		for _, part := range rapid.SliceOfN(rapid.SliceOfN(drawStep, 1, 20), 1, 20).Draw(t, "steps") {
			p.Steps = append(p.Steps, part...)
		}
		// Few servers meet each other more often.
		servers := rapid.SliceOfN(rapid.IntRange(0, len(modelServers)-1), 1, len(modelServers)).Draw(t, "servers")
		for i := range p.Steps {
			p.Steps[i].Server = servers[p.Steps[i].Server%len(servers)]
		}
		p.End = modelStep{
			Kind: oneOf(stepClose, stepShutdown).Draw(t, "end"),
			For:  oneOf(2*time.Minute, 0, 50*ms, 500*ms).Draw(t, "after"),
			Call: modelCallPlan{Timeout: oneOf(50*ms, 0, time.Minute).Draw(t, "timeout")},
		}
		return p
	})
)
