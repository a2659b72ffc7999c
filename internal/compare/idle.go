package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

const (
	idleRow      = "idle sessions"
	idleSessions = 100
)

var idleContenders = []string{mcpGo, pool, goSDK, conn, floor}

// idleCost is what one of many idle sessions costs this process.
type idleCost struct {
	Bytes      float64 // heap and stacks in use, after each session carried small calls
	BytesLarge float64 // and after each has carried a result of 1 MB
	Goroutines float64
	Files      float64 // -1 where it isn't known
	Threads    float64 // likewise
}

// idle has each contender measured in a process of its own: threads never end.
// Once is enough, for it varies little.
func (m *measurer) idle(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	m.idles = make(map[string]idleCost)
	for _, name := range idleContenders {
		if !m.opts.contenders.MatchString(name) {
			continue
		}
		cmd := exec.CommandContext(ctx, exe, "idle", name)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var c idleCost
		if err := json.Unmarshal(out, &c); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.idles[name] = c
	}
	return nil
}

// usage is what this process holds now.
type usage struct{ bytes, goroutines, files, threads int }

func usageNow() usage {
	runtime.GC() // twice, for what pools keep over one
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{
		bytes:      int(m.HeapInuse + m.StackInuse),
		goroutines: runtime.NumGoroutine(),
		files:      entries("/proc/self/fd"),
		threads:    entries("/proc/self/task"),
	}
}

func entries(dir string) int {
	found, err := os.ReadDir(dir)
	if err != nil {
		return -1
	}
	return len(found)
}

// reportIdle measures one contender and prints its cost.
func reportIdle(name string) error {
	cost, err := measureIdle(name, idleSessions)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(cost)
}

func measureIdle(name string, n int) (cost idleCost, err error) {
	ctx := context.Background()
	many := dialMany(name)
	var sessions []session
	defer func() {
		for _, s := range sessions {
			err = errors.Join(err, s.close())
		}
		err = errors.Join(err, many.close())
	}()
	add := func() error {
		s, err := many.dial(ctx, target{cheapLegacy, legacy})
		if err != nil {
			return err
		}
		sessions = append(sessions, s)
		return use(ctx, s)
	}
	// The first brings up what is there once for all.
	if err := add(); err != nil {
		return cost, err
	}
	if err := useLarge(ctx, sessions[0]); err != nil {
		return cost, err
	}
	before := usageNow()
	for range n {
		if err := add(); err != nil {
			return cost, err
		}
	}
	now := usageNow()
	each := func(now, before int) float64 {
		if now < 0 {
			return -1
		}
		return float64(now-before) / float64(n)
	}
	cost = idleCost{
		Bytes:      each(now.bytes, before.bytes),
		Goroutines: each(now.goroutines, before.goroutines),
		Files:      each(now.files, before.files),
		Threads:    each(now.threads, before.threads),
	}
	for _, s := range sessions[1:] {
		if err := useLarge(ctx, s); err != nil {
			return cost, err
		}
		if err := use(ctx, s); err != nil {
			return cost, err
		}
	}
	cost.BytesLarge = each(usageNow().bytes, before.bytes)
	return cost, nil
}

// use makes some small calls, as any session has seen some.
func use(ctx context.Context, s session) error {
	for range 3 {
		if _, err := s.call(ctx, "echo", json.RawMessage(`{"text":"hello"}`)); err != nil {
			return err
		}
	}
	return nil
}

func useLarge(ctx context.Context, s session) error {
	_, err := s.call(ctx, "text", json.RawMessage(fmt.Sprintf(`{"size":%d}`, mB)))
	return err
}

// many opens sessions that share what a program would have them share.
type many struct {
	dial  dialer
	close func() error
}

func dialMany(name string) many {
	if name == pool {
		return dialPoolMany()
	}
	return many{contenders[name], func() error { return nil }}
}
