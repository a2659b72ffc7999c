package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// figure takes one number out of a sample.
type figure func(sample) float64

func perCall(s sample) float64   { return float64(s.wall) / float64(s.n) }
func cpuPer(s sample) float64    { return float64(s.cpu) / float64(s.n) }
func bytesPer(s sample) float64  { return float64(s.bytes) / float64(s.n) }
func allocsPer(s sample) float64 { return float64(s.allocs) / float64(s.n) }
func rate(s sample) float64      { return 1e9 / perCall(s) }

// spread is a figure over all rounds.
type spread struct{ median, min, max float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	v := slices.Sorted(slices.Values(values))
	return spread{(v[(len(v)-1)/2] + v[len(v)/2]) / 2, v[0], v[len(v)-1]}
}

func (m *measurer) of(row, contender string, f figure) spread {
	var values []float64
	if res := m.results[resultKey(row, contender)]; res != nil {
		for _, s := range res.samples {
			values = append(values, f(s))
		}
	}
	return spreadOf(values)
}

// ratio compares within each round.
func (m *measurer) ratio(row, contender, to string, f figure) spread {
	var values []float64
	a, b := m.results[resultKey(row, contender)], m.results[resultKey(row, to)]
	if a != nil && b != nil {
		for i := range min(len(a.samples), len(b.samples)) {
			values = append(values, f(a.samples[i])/f(b.samples[i]))
		}
	}
	return spreadOf(values)
}

func printHead(w io.Writer, group string) {
	fmt.Fprintf(w, "\n### %s\n\n", group)
	printLine(w, "", "by", "time", "a second", "client CPU", "B", "allocs",
		"rate ÷ mcp-go's", "CPU ÷ mcp-go's", "rate ÷ the floor's")
	printLine(w, strings.Split("---,---,---:,---:,---:,---:,---:,---:,---:,---:", ",")...)
}

func printLine(w io.Writer, cells ...string) {
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

func (m *measurer) printRow(w io.Writer, r row) {
	for _, name := range r.contenders {
		if m.results[resultKey(r.name, name)] == nil {
			continue
		}
		of := func(f figure) float64 { return m.of(r.name, name, f).median }
		toMCPGo := func(f figure) string {
			if name == mcpGo {
				return "1"
			}
			return m.ratio(r.name, name, mcpGo, f).String()
		}
		toFloor := ""
		if name != floor {
			toFloor = m.ratio(r.name, name, floor, rate).String()
		}
		printLine(w, r.name, name, duration(of(perCall)), count(of(rate)), duration(of(cpuPer)), count(of(bytesPer)), count(of(allocsPer)),
			toMCPGo(rate), toMCPGo(cpuPer), toFloor)
	}
}

// String is empty where nothing was measured.
func (s spread) String() string {
	if math.IsNaN(s.median) || math.IsInf(s.median, 0) {
		return ""
	}
	return fmt.Sprintf("%s (%s–%s)", short(s.median), short(s.min), short(s.max))
}

// short has about three digits.
func short(v float64) string {
	switch {
	case v >= 99.5:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.95:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func duration(ns float64) string {
	switch {
	case ns == 0:
		return ""
	case ns < 1e6:
		return short(ns/1e3) + " µs"
	default:
		return short(ns/1e6) + " ms"
	}
}

func count(v float64) string {
	switch {
	case v >= 99.5e6:
		return fmt.Sprintf("%.0f M", v/1e6)
	case v >= 99.5e3:
		return fmt.Sprintf("%.0f k", v/1e3)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

func (m *measurer) printIdle(w io.Writer) {
	fmt.Fprintf(w, "\n### One of %d idle sessions\n\n", idleSessions)
	printLine(w, "by", "heap and stacks", "after 1 MB", "goroutines", "descriptors", "threads")
	printLine(w, strings.Split("---,---:,---:,---:,---:,---:", ",")...)
	for _, name := range idleContenders {
		if c, ok := m.idles[name]; ok {
			printLine(w, name, short(c.Bytes/1e3)+" kB", short(c.BytesLarge/1e3)+" kB",
				short(c.Goroutines), short(c.Files), short(c.Threads))
		}
	}
}
