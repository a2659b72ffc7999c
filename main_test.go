package mcppool_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/internal/offering"
	"github.com/mcppool/mcppool/mcppooltest"
)

func TestMain(m *testing.M) {
	mcppooltest.Serve()
	if offering.Main() {
		return
	}
	if serve, ok := helpers[os.Getenv(modeEnv)]; ok {
		serve()
		return
	}
	if mode := os.Getenv(modeEnv); mode != "" {
		serve(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// helpers are what else this binary is than a server, by the value of modeEnv.
var helpers = map[string]func(){}
