package genaitools_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/internal/looptest"
)

func TestMain(m *testing.M) {
	looptest.ServeIfAsked()
	goleak.VerifyTestMain(m)
}
