package proc_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// modeEnv makes the test binary a child: it holds the name of what to play.
const modeEnv = "PROC_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		play, ok := modes[mode]
		if !ok {
			panic("bug: no such mode: " + mode)
		}
		play(os.Args[1:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
