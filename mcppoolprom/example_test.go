package mcppoolprom_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcppool/mcppool"
	"github.com/mcppool/mcppool/mcppoolprom"
)

// An http handler with the metrics of a pool, and what a scrape of it shows.
func Example() {
	metrics := mcppoolprom.New(nil)
	pool, err := mcppool.New(&mcppool.Options{
		Trace: metrics.Trace(),
		Dial:  dial, // a server in memory; leave it out to run child processes
	})
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	metrics.Attach(pool)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})

	for range 3 {
		_, err := pool.CallTool(context.Background(), mcppool.Server{Command: "server"}, mcppool.Call{
			Tool:  "ok",
			Scope: mcppool.Scope("project-1", "thread-7"),
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	web := httptest.NewServer(handler)
	defer web.Close()
	res, err := http.Get(web.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	page, _ := io.ReadAll(res.Body)
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, `mcppool_calls_total{outcome="ok"}`) || strings.HasPrefix(line, "mcppool_sessions{") {
			fmt.Print(line)
		}
	}
	// Output:
	// mcppool_calls_total{outcome="ok"} 3
	// mcppool_sessions{state="closing"} 0
	// mcppool_sessions{state="connecting"} 0
	// mcppool_sessions{state="live"} 1
	// mcppool_sessions{state="queued"} 0
}
