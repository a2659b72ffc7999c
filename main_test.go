package mcppool_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		serve(mode)
		return
	}
	goleak.VerifyTestMain(m)
}
