package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/mcppool/mcppool/toolbox/mcpservers"
)

// check looks at every server of the files, a few at a time, with a line of
// progress for each.
func check(ctx context.Context, o *options, progress io.Writer) *report {
	r := new(report)
	var entries []mcpservers.Entry
	r.Errors, r.Warnings, entries = load(o)
	r.Servers = make([]server, len(entries))

	var (
		wg   sync.WaitGroup
		free = make(chan struct{}, o.parallel)
		mu   sync.Mutex // protects progress and done
		done int
	)
	for i := range entries {
		free <- struct{}{}
		wg.Go(func() {
			s := &r.Servers[i]
			*s = look(ctx, &entries[i], o.times)
			<-free
			mu.Lock()
			defer mu.Unlock()
			done++
			fmt.Fprintf(progress, "[%d/%d] %s\n", done, len(entries), s.progress())
		})
	}
	wg.Wait()
	return r
}

// load reads the files. Of several, as anywhere else, the first that has a name
// counts for it.
func load(o *options) (errs []string, warnings []warning, entries []mcpservers.Entry) {
	config := mcpservers.Load(&o.reading, o.files...)
	for _, err := range config.Errs {
		errs = append(errs, plain(err.Error()))
	}
	for _, w := range config.Warnings {
		warnings = append(warnings, warningOf(w))
	}
	return errs, warnings, config.Entries
}
