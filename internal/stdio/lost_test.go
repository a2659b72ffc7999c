package stdio_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/stdio"
)

func TestALossIsToldOnceAfterDone(t *testing.T) {
	for name, lose := range map[string]struct {
		traits []string
		tool   string // that does it; empty: a signal
	}{
		"killed":          {nil, ""},
		"exits":           {nil, "die"},
		"closes stdout":   {[]string{"closeout"}, "echo"},
		"leaves a daemon": {nil, "daemon"},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan struct{}, 8)
			cfg := serverConfig(t, lose.traits...)
			cfg.OnLost = func() { told <- struct{}{} }
			c := start(t, cfg)
			if lose.tool != "" {
				_, err := call(t.Context(), c, lose.tool, `{}`)
				require.Error(t, err)
			} else {
				p, err := os.FindProcess(c.Pid())
				require.NoError(t, err)
				require.NoError(t, p.Kill())
				require.NoError(t, p.Release())
			}
			select {
			case <-told:
			case <-time.After(soon):
				t.Fatal("not told")
			}
			select {
			case <-c.Done():
			default:
				t.Fatal("told before Done")
			}
			require.NoError(t, c.Close())
			require.Empty(t, told, "told again")
		})
	}
}

func TestAnEndByTheHostIsNoLoss(t *testing.T) {
	for name, end := range map[string]func(*stdio.Conn){
		"Close": func(*stdio.Conn) {},
		"Kill":  func(c *stdio.Conn) { c.Kill(); <-c.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan struct{}, 8)
			cfg := serverConfig(t)
			cfg.OnLost = func() { told <- struct{}{} }
			c := start(t, cfg)
			mustCall(t, c, "echo", `{}`)
			end(c)
			require.NoError(t, c.Close())
			require.Empty(t, told)
		})
	}
}
