package mcppooltest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcppool/mcppool/mcppooltest"
)

// verified runs the tests with a look for goroutines at the end.
type verified struct{ m *testing.M }

func (v verified) Run() int {
	goleak.VerifyTestMain(v.m) // exits
	return 0
}

func TestMain(m *testing.M) { mcppooltest.Main(verified{m}) }

// fakeT stands for the t of a test that may fail.
type fakeT struct {
	testing.TB // of the real test; nil in an example
	cleanups   []func()
	errors     []string
}

func (t *fakeT) Helper()          {}
func (t *fakeT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *fakeT) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}
func (t *fakeT) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func (t *fakeT) TempDir() string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (t *fakeT) Setenv(name, value string) {
	old, was := os.LookupEnv(name)
	t.Cleanup(func() {
		if was {
			os.Setenv(name, old)
		} else {
			os.Unsetenv(name)
		}
	})
	os.Setenv(name, value)
}

// end runs the cleanups and returns what has failed.
func (t *fakeT) end() string {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
	t.cleanups = nil
	return strings.Join(t.errors, "\n")
}

// exampleT is the t of an example. In a test it is the test's.
func exampleT() (t *fakeT, end func()) {
	t = new(fakeT)
	return t, func() {
		if failed := t.end(); failed != "" {
			fmt.Println(failed)
		}
	}
}
