package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

func TestTheLoopPrintsWhatAReaderExpects(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, `tool mcp__calc__add     Add two numbers.
tool mcp__notes__read   Read all notes.
tool mcp__notes__write  Note something down.

monday> What are 19 apples and 23 pears? Keep it in mind.
  mcp__calc__add {"a":19,"b":23} -> 42
  mcp__notes__write {"text":"they asked for a sum"} -> noted as number 1
  mcp__calc__add {"a":19,"b": -> Error: MCP tool 'add' got invalid arguments: invalid JSON at byte 12: unexpected end
  mcp__notes__write {"text":"the sum is 42"} -> noted as number 2
monday< 42 pieces of fruit.

tuesday> What do you have in mind?
  mcp__notes__read  -> nothing
tuesday< nothing

monday> What do you have in mind?
  mcp__notes__read  -> they asked for a sum, the sum is 42
monday< they asked for a sum, the sum is 42
`, out.String())
}
