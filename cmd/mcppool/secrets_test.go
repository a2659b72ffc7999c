package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoSecretOfAFileIsPrinted(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "refused: "+r.URL.String()+" "+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	defer web.Close()
	const token = "sk-4f9c2b7e1d8a6035"
	t.Setenv("MCPPOOL_TEST_TOKEN", token)
	secretive := func(traits ...string) entry {
		return hostileEntry(traits...).setenv(chatter, "key "+token).setenv("API_KEY", token).with("args", []string{"--token", token, "--url=https://u:" + token + "@example.com/x"})
	}
	file := cursorFile(
		t,
		named{"fine", secretive()},
		named{"dying", secretive("die=start")},
		named{"mid", secretive("die=handshake")},
		named{"variable", hostileEntry("die=start").setenv(chatter, "${env:MCPPOOL_TEST_TOKEN}")},
		named{"missing", entry{"command": "no-such-program", "args": []string{"--token=" + token}, "env": map[string]string{"K": token}}},
		named{"web", entry{"url": web.URL + "/mcp/" + token + "?key=" + token, "headers": map[string]string{"Authorization": "Bearer " + token}}},
		named{"gone", entry{"url": "http://user:" + token + "@127.0.0.1:1/" + token, "headers": map[string]string{"X-Key": token}}},
		named{"bad", entry{"command": "x " + token, "args": map[string]string{"x": token}, "env": token, "headers": map[string]any{"A": []string{token}}}},
		named{"both", entry{"command": "x", "url": "https://example.com/" + token}},
		named{"odd", hostileEntry().with("apiToken", token).with("colour", token)},
	)
	for _, args := range [][]string{{file}, {"-json", file}} {
		got := mcppoolCheck(t, args...)
		require.Equal(t, statusFailed, got.status)
		require.Contains(t, got.stdout, "fine")
		require.NotContains(t, got.stdout+got.stderr, token)
		require.NotContains(t, got.stdout+got.stderr, token[3:])
	}
}
