//go:build unix

package stdio_test

import (
	"testing"
	"time"

	"github.com/mcppool/mcppool/internal/proc"
	"github.com/mcppool/mcppool/internal/stdio"
)

// echoScript is a server that answers everything alike. A shell starts in a
// fraction of the time that a test binary takes, above all one built with -race.
const echoScript = `while read -r line; do
	id=${line#*'"id":'}
	echo '{"jsonrpc":"2.0","id":'"${id%%,*}"',"result":{"content":[{"type":"text","text":"hello"}]}}'
done`

// shellConfig is a server in the shell: hundreds of them cost little.
func shellConfig(t testing.TB, script string) stdio.Config {
	t.Helper()
	return stdio.Config{
		Proc:         proc.Config{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{mark(t)}},
		CloseTimeout: 2 * time.Second,
	}
}
