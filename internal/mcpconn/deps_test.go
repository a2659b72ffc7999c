package mcpconn_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The client, the transports and the server of mcp-go bring a server, a validator and
// x/text into every program; connections to child processes need its types alone.
func TestChildConnectionsNeedOfMCPGoTheTypesAlone(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"github.com/mcppool/mcppool/internal/mcpconn", "github.com/mcppool/mcppool/internal/stdio").Output()
	if err != nil {
		t.Skip("no go command here: ", err)
	}
	var others []string
	for line := range strings.Lines(string(out)) {
		path := strings.TrimSpace(line)
		host, _, _ := strings.Cut(path, "/")
		if strings.Contains(host, ".") && !strings.HasPrefix(path, "github.com/mcppool/") {
			others = append(others, path)
		}
	}
	slices.Sort(others)
	require.Equal(t, []string{
		"github.com/google/jsonschema-go/jsonschema", // these three are what the types need
		"github.com/mark3labs/mcp-go/mcp",
		"github.com/spf13/cast",
		"github.com/yosida95/uritemplate/v3",
	}, others)
}
