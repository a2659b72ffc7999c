package main

import (
	"fmt"
	"io"
	"math"
)

// goal is something that mcppool is to reach.
type goal struct {
	what   string
	limit  float64
	atMost bool // or at least
	median func(*measurer) float64
}

func atMost(what string, limit float64, median func(*measurer) float64) goal {
	return goal{what, limit, true, median}
}

func atLeast(what string, limit float64, median func(*measurer) float64) goal {
	return goal{what, limit, false, median}
}

func goals() []goal {
	of := func(row string, f figure) func(*measurer) float64 {
		return func(m *measurer) float64 { return m.of(row, pool, f).median }
	}
	ratio := func(row, by string, f figure) func(*measurer) float64 {
		return func(m *measurer) float64 { return m.ratio(row, by, mcpGo, f).median }
	}
	idle := func(f func(idleCost) float64) func(*measurer) float64 {
		return func(m *measurer) float64 {
			if c, ok := m.idles[pool]; ok {
				return f(c)
			}
			return math.NaN()
		}
	}
	var all []goal
	for _, row := range []string{rowEcho, rowEchoRaw, rowEchoModern} {
		all = append(all,
			// Whole ones, as Go's benchmarks count them.
			atMost(row+": allocations", 10, of(row, func(s sample) float64 { return float64(s.allocs / uint64(s.n)) })),
			atMost(row+": bytes", 700, of(row, bytesPer)),
			atMost(row+": CPU ÷ mcp-go's", 0.4, ratio(row, pool, cpuPer)))
	}
	all = append(all,
		atLeast(rowMany+": rate ÷ mcp-go's", 4, ratio(rowMany, poolShared, rate)),
		atLeast(rowManyModern+": rate ÷ mcp-go's", 6, ratio(rowManyModern, poolShared, rate)),
		atLeast(rowScopes(64)+": rate ÷ mcp-go's", 2, ratio(rowScopes(64), pool, rate)),
		atMost(rowText(mB)+": bytes allocated ÷ bytes of the result", 1.1, of(rowText(mB), func(s sample) float64 { return bytesPer(s) / mB })))
	for _, name := range []func(int) string{rowText, rowImage} {
		for _, n := range sizes {
			all = append(all, atLeast(name(n)+": rate ÷ mcp-go's", 12, ratio(name(n), pool, rate)))
		}
	}
	for _, row := range []string{rowArgs, rowArgsRaw} {
		all = append(all, atMost(row+": time ÷ mcp-go's", 0.5, ratio(row, pool, perCall)))
	}
	for _, row := range []string{rowConnect, rowConnectOld, rowConnectNew, rowConnectGo} {
		all = append(all, atMost(row+": time ÷ mcp-go's", 1, ratio(row, pool, perCall)))
	}
	for _, row := range []string{rowClose, rowCloseGo} {
		all = append(all, atMost(row+": ms", 10, of(row, func(s sample) float64 { return perCall(s) / 1e6 })))
	}
	return append(all,
		atMost(idleRow+": bytes", 30e3, idle(func(c idleCost) float64 { return c.Bytes })),
		atMost(idleRow+", after 1 MB: bytes", 30e3, idle(func(c idleCost) float64 { return c.BytesLarge })),
		atMost(idleRow+": goroutines", 2, idle(func(c idleCost) float64 { return c.Goroutines })),
		atMost(idleRow+": descriptors", 4, idle(func(c idleCost) float64 { return c.Files })),
		atMost(idleRow+": threads", 0.1, idle(func(c idleCost) float64 { return c.Threads })))
}

// printTargets says of what was measured which goals are met.
func (m *measurer) printTargets(w io.Writer) {
	headed := false
	for _, g := range goals() {
		v := g.median(m)
		if math.IsNaN(v) {
			continue
		}
		if !headed {
			headed = true
			fmt.Fprint(w, "\n### What mcppool is to reach\n\n")
			printLine(w, "", "goal", "median", "")
			printLine(w, "---", "---:", "---:", "---")
		}
		sign, met := "≥", v >= g.limit
		if g.atMost {
			sign, met = "≤", v <= g.limit
		}
		verdict := "met"
		if !met {
			verdict = "**missed**"
		}
		printLine(w, g.what, sign+" "+goalNumber(g.limit), goalNumber(v), verdict)
	}
}

func goalNumber(v float64) string {
	if v >= 1000 {
		return count(v)
	}
	return short(v)
}
