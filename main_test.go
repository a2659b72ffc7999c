package mcppool_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/internal/hostile"
)

func TestMain(m *testing.M) {
	hostile.Main()
	if mode := os.Getenv(modeEnv); mode != "" {
		serve(mode)
		return
	}
	goleak.VerifyTestMain(m)
}
