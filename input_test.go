package mcppool_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool"
)

func TestBadInputIsRefusedByNameBeforeAnythingStarts(t *testing.T) {
	ok := mcppool.Call{Tool: "t", Scope: "s"}
	for name, tc := range map[string]struct {
		srv   mcppool.Server
		call  mcppool.Call
		field string
	}{
		"nothing to run":      {mcppool.Server{}, ok, "Server.Command"},
		"two things to run":   {mcppool.Server{Command: "x", URL: "http://h/"}, ok, "Server.Command"},
		"NUL in command":      {mcppool.Server{Command: "x\x00"}, ok, "Server.Command"},
		"NUL in args":         {mcppool.Server{Command: "x", Args: []string{"a", "\x00"}}, ok, "Server.Args[1]"},
		"NUL in dir":          {mcppool.Server{Command: "x", Dir: "\x00"}, ok, "Server.Dir"},
		"= in env name":       {mcppool.Server{Command: "x", Env: map[string]string{"A=B": ""}}, ok, `Server.Env["A=B"]`},
		"NUL in env name":     {mcppool.Server{Command: "x", Env: map[string]string{"A\x00": ""}}, ok, `Server.Env["A\x00"]`},
		"empty env name":      {mcppool.Server{Command: "x", Env: map[string]string{"": ""}}, ok, `Server.Env[""]`},
		"NUL in env value":    {mcppool.Server{Command: "x", Env: map[string]string{"A": "\x00"}}, ok, `Server.Env["A"]`},
		"headers for a child": {mcppool.Server{Command: "x", Header: map[string]string{"A": "b"}}, ok, "Server.Header"},
		"scheme":              {mcppool.Server{URL: "ftp://secret@h/"}, ok, "Server.URL"},
		"no host":             {mcppool.Server{URL: "http:///secret"}, ok, "Server.URL"},
		"not a URL":           {mcppool.Server{URL: "http://[secret"}, ok, "Server.URL"},
		"args for a URL":      {mcppool.Server{URL: "http://h/", Args: []string{"secret"}}, ok, "Server.Args"},
		"env for a URL":       {mcppool.Server{URL: "http://h/", Env: map[string]string{"A": "secret"}}, ok, "Server.Env"},
		"dir for a URL":       {mcppool.Server{URL: "http://h/", Dir: "secret"}, ok, "Server.Dir"},
		"header name":         {mcppool.Server{URL: "http://h/", Header: map[string]string{"A b": "secret"}}, ok, "Server.Header"},
		"header value":        {mcppool.Server{URL: "http://h/", Header: map[string]string{"A": "secret\r\n"}}, ok, "Server.Header"},
		"no tool":             {stdio, mcppool.Call{Scope: "s"}, "Call.Tool"},
		"blank tool":          {stdio, mcppool.Call{Tool: " ", Scope: "s"}, "Call.Tool"},
		"args an array":       {stdio, mcppool.Call{Tool: "t", Args: []string{"secret"}}, "Call.Args"},
		"args a text":         {stdio, mcppool.Call{Tool: "t", Args: "secret"}, "Call.Args"},
		"args broken":         {stdio, mcppool.Call{Tool: "t", Args: json.RawMessage(`{"a":"secret"`)}, "Call.Args"},
		"args two":            {stdio, mcppool.Call{Tool: "t", Args: json.RawMessage(`{} {}`)}, "Call.Args"},
		"args a channel":      {stdio, mcppool.Call{Tool: "t", Args: map[string]any{"c": make(chan int)}}, "Call.Args"},
		"args infinite":       {stdio, mcppool.Call{Tool: "t", Args: map[string]any{"c": math.Inf(1)}}, "Call.Args"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakes{}
			p := newPool(t, f, nil)
			_, err := p.CallTool(t.Context(), tc.srv, tc.call)
			var bad *mcppool.ConfigError
			require.ErrorAs(t, err, &bad)
			require.Contains(t, bad.Field, tc.field)
			require.NotContains(t, err.Error(), "secret")
			require.False(t, mcppool.SafeToRetry(err))
			require.Zero(t, f.dialed())
			require.Zero(t, p.Stats().Kept)
		})
	}
}

func TestOptionsThatMeanNothingAreRefusedByName(t *testing.T) {
	for field, opts := range map[string]mcppool.Options{
		"Options.CloseTimeout": {CloseTimeout: -1},
		"Options.InheritEnv":   {InheritEnv: []string{"A=B"}},
	} {
		_, err := mcppool.New(&opts)
		var bad *mcppool.ConfigError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, field, bad.Field)
	}
}

func TestArgumentsReachTheClientAsOneLineOfJSON(t *testing.T) {
	type custom struct {
		N int64 `json:"n"`
	}
	for name, tc := range map[string]struct {
		args any
		want string
	}{
		"nil":              {nil, `{}`},
		"nil map":          {map[string]any(nil), `{}`},
		"nil pointer":      {(*custom)(nil), `{}`},
		"nil raw":          {json.RawMessage(nil), `{}`},
		"null":             {json.RawMessage("null"), `{}`},
		"big integer":      {custom{9007199254740993}, `{"n":9007199254740993}`},
		"raw digits":       {json.RawMessage(`{"n":12345678901234567890.10}`), `{"n":12345678901234567890.10}`},
		"raw line breaks":  {json.RawMessage("{\n\"a\":\r\n\"\\n\"}"), "{ \"a\":  \"\\n\"}"},
		"not escaped more": {map[string]any{"a": "<&>"}, `{"a":"<&>"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			f := &fakes{call: record(&got)}
			p := newPool(t, f, nil)
			_, err := p.CallTool(t.Context(), stdio, mcppool.Call{Tool: "t", Args: tc.args, Scope: "s"})
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestParseCommandMakesAServerOfACommandLine(t *testing.T) {
	s, err := mcppool.ParseCommand(`'my program' -y pkg "a b"`)
	require.NoError(t, err)
	require.Equal(t, mcppool.Server{Command: "my program", Args: []string{"-y", "pkg", "a b"}}, s)
	s, err = mcppool.ParseCommand("x")
	require.NoError(t, err)
	require.Equal(t, mcppool.Server{Command: "x"}, s)
	for _, line := range []string{"", "  \n", `''`, `a 'secret`, `a "secret`, `secret\`} {
		_, err := mcppool.ParseCommand(line)
		var bad *mcppool.ConfigError
		require.ErrorAs(t, err, &bad, line)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestServerLabelIsSafeForLogs(t *testing.T) {
	for want, srv := range map[string]mcppool.Server{
		"npx-":         {Command: "/secret/bin/npx", Args: []string{"secret"}},
		"srv.exe-":     {Command: `C:\secret\srv.exe`},
		"example.com-": {URL: "https://secret:secret@example.com:8080/secret?secret"},
		"http-":        {URL: "http://[secret"},
		"invalid-":     {},
		"a-":           {Command: "a secret\n"},
		"npx.cmd-":     {Command: `C:\Program Files\secret\npx.cmd -y secret`},
	} {
		label := srv.String()
		require.True(t, strings.HasPrefix(label, want), label)
		require.Len(t, label, len(want)+12)
		require.NotContains(t, label, "secret")
	}
}

func TestServerIsReadFromAnEntryOfAConfigurationFile(t *testing.T) {
	var srv mcppool.Server
	require.NoError(t, json.Unmarshal([]byte(`{"command":"npx","args":["-y","pkg"],"env":{"A":"1"},"cwd":"/tmp"}`), &srv))
	require.Equal(t, mcppool.Server{
		Command: "npx", Args: []string{"-y", "pkg"}, Env: map[string]string{"A": "1"}, Dir: "/tmp",
	}, srv)
	require.NoError(t, json.Unmarshal([]byte(`{"url":"https://h/mcp","headers":{"A":"b"}}`), &srv))
	require.True(t, srv.IsHTTP())
	require.Equal(t, "b", srv.Header["A"])
}

func TestSafeToRetryOnlyWhenNothingCanHaveRun(t *testing.T) {
	require.False(t, mcppool.SafeToRetry(nil))
	require.False(t, mcppool.SafeToRetry(mcp.ErrInternalError))
	require.True(t, mcppool.SafeToRetry(&mcppool.StartError{Err: mcp.ErrInternalError}))
	require.False(t, mcppool.SafeToRetry(&mcppool.SessionLostError{}))
}
