package childenv_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/internal/childenv"
)

func TestChildGetsTheSafePartOfTheHostsEnvironmentAndWhatIsAsked(t *testing.T) {
	t.Setenv("CHILDENV_PLANTED", "planted")
	t.Setenv("CHILDENV_OTHER", "other")
	t.Setenv("CHILDENV_FUNC", "() { :; }")
	path := "PATH=" + os.Getenv("PATH")

	env := childenv.Build(nil, map[string]string{"MINE": "1"})
	require.Contains(t, env, "MINE=1")
	require.Contains(t, env, path)
	require.NotContains(t, env, "CHILDENV_PLANTED=planted")

	env = childenv.Build([]string{"CHILDENV_PLANTED", "CHILDENV_MISSING"}, nil)
	require.Contains(t, env, "CHILDENV_PLANTED=planted")
	require.NotContains(t, env, "CHILDENV_OTHER=other")

	env = childenv.Build([]string{"*"}, map[string]string{"CHILDENV_PLANTED": "mine", "PATH": "/mine"})
	require.Contains(t, env, "CHILDENV_OTHER=other")
	require.Contains(t, env, "CHILDENV_PLANTED=mine")
	require.Contains(t, env, "PATH=/mine")
	require.NotContains(t, env, path, "once each")
	require.NotContains(t, env, "CHILDENV_PLANTED=planted", "once each")

	require.NotNil(t, childenv.Build(nil, nil), "nil would mean the host's")
}

func TestFunctionOfAShellIsPassedOnOnlyByName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("LC_ is safe elsewhere")
	}
	const function = "() { :; }"
	t.Setenv("LC_CHILDENV", function)
	require.NotContains(t, childenv.Build(nil, nil), "LC_CHILDENV="+function)
	require.Contains(t, childenv.Build([]string{"LC_CHILDENV"}, nil), "LC_CHILDENV="+function)
}

func TestNamesOfVariables(t *testing.T) {
	for name, ok := range map[string]bool{"A": true, "a b": true, "": false, "A=B": false, "A\x00": false} {
		require.Equal(t, ok, childenv.IsName(name), name)
	}
	require.True(t, childenv.IsSafe("PATH"))
	require.False(t, childenv.IsSafe("AWS_SECRET_ACCESS_KEY"))
}
