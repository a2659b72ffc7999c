package main

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		if serve() != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestTourTellsWhatThePoolDoes(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, tour(&out))
	text := out.String()
	t.Log("\n" + text)

	// What differs from one run to another: the time, and the word for a kill.
	back := regexp.MustCompile(`after (\d+\.\d) s\n`)
	m := back.FindStringSubmatch(text)
	require.NotNil(t, m)
	took, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, took, 0.2)
	require.Less(t, took, 10.0, "the call itself takes 60")
	text = back.ReplaceAllString(text, "after TIME s\n")
	text = regexp.MustCompile(`lost, (signal: killed|exit status 1);`).ReplaceAllString(text, "lost, KILLED;")

	require.Equal(t, `1. Each chat has a server process of its own, which keeps its basket.
   chat A   add apples    basket: apples
   chat B   add bread     basket: bread
   chat A   add pears     basket: apples, pears
   chat B   add butter    basket: bread, butter
   chat A   add plums     basket: apples, pears, plums

2. A call without a chat has a process to itself, and nothing is kept.
   no chat  add wine      basket: wine
   no chat  add cheese    basket: cheese

3. The server of chat A is killed during a call. The pool doesn't send the
   call again, as it may have had its effect. The next call starts afresh.
   chat A   pay           error: session lost, KILLED; safe to retry: false
   chat A   add cherries  basket: cherries
   chat B   add honey     basket: bread, butter, honey

4. Chat B's call would take a minute; its deadline of 0.2 s is kept. The
   process that may be stuck in it is replaced.
   chat B   pay           error: deadline exceeded after TIME s
   chat B   add eggs      basket: eggs

5. When Close returns, no process is left.
   12 calls, 6 processes started; kept until Close: 2, left now: 0
`, text)
}
