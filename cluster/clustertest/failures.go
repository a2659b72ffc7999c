//go:build unix

package clustertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ttl of the replicas; patient is that of tests in which no lease may run out, however
// slow the machine is. A store that is young holds claims up for as long.
const (
	ttl     = time.Second
	patient = 6 * time.Second
)

// Run breaks clusters. For each test, fresh returns the url of a directory whose store is empty, which
// replicas give to the func that [Main] got.
func Run(t *testing.T, fresh func(t *testing.T) (url string)) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*suite)
		ttl  time.Duration
	}{
		{"OwnerThatIsKilledIdleIsTakenOverOnceTheTTLIsOver", (*suite).killIdle, ttl},
		{"CallOfAnOwnerThatIsKilledFailsAtOnceAndIsNotRepeated", (*suite).killBusy, ttl},
		{"OwnerThatIsStoppedPastItsLeaseRunsNothingAfterwards", (*suite).stop, ttl},
		{"DrainUnderLoadLosesNoCall", (*suite).drain, patient},
		{"CloseServerCountsAStoppedReplicaAsDoneAfterTheTTL", (*suite).closeStopped, ttl},
		{"ReplicaThatIsKilledAndBackUnderItsNameOwnsNothing", (*suite).restart, ttl},
		{"ManyReplicasRaceForScopes", (*suite).race, patient},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &suite{T: t, ttl: test.ttl, url: fresh(t), ledger: filepath.Join(t.TempDir(), "ledger")}
			test.run(s)
			s.check()
		})
	}
}

// suite is one test.
type suite struct {
	*testing.T
	url    string
	ledger string
	ttl    time.Duration

	mu   sync.Mutex // protects the fields below
	next int
	good map[string]bool // ids of calls that succeeded
	bad  map[string]bool // ids of calls that were certainly not sent
}

// replica is a process.
type replica struct {
	s    *suite
	name string
	addr string
	cmd  *exec.Cmd
	end  io.Closer // its input
	done chan struct{}
}

// start starts a replica, which the end of the test ends.
func (s *suite) start(name string) *replica {
	s.Helper()
	c, err := json.Marshal(config{Name: name, URL: s.url, TTL: s.ttl})
	s.noError(err)
	self, err := os.Executable()
	s.noError(err)
	r := &replica{s: s, name: name, done: make(chan struct{})}
	r.cmd = exec.Command(self)
	r.cmd.Env = append(os.Environ(), replicaEnv+"="+string(c), "GORACE=atexit_sleep_ms=0")
	r.cmd.Stderr = os.Stderr
	in, err := r.cmd.StdinPipe()
	s.noError(err)
	out, err := r.cmd.StdoutPipe()
	s.noError(err)
	s.noError(r.cmd.Start())
	r.end = in
	line, err := bufio.NewReader(out).ReadString('\n')
	r.addr = strings.TrimSpace(line)
	go func() {
		_ = r.cmd.Wait()
		close(r.done)
	}()
	s.Cleanup(r.stop)
	if err != nil || strings.HasPrefix(r.addr, "error:") {
		s.Fatalf("replica %s: %s (%v)", name, r.addr, err)
	}
	return r
}

func (r *replica) signal(sig syscall.Signal) { _ = r.cmd.Process.Signal(sig) }

// stop ends a replica in order, or kills it when it takes too long.
func (r *replica) stop() {
	r.signal(syscall.SIGCONT)
	_ = r.end.Close()
	select {
	case <-r.done:
	case <-time.After(20 * time.Second):
		r.signal(syscall.SIGKILL)
		<-r.done
		r.s.Errorf("replica %s didn't end", r.name)
	}
}

func (r *replica) kill() {
	r.signal(syscall.SIGKILL)
	<-r.done
}

func (s *suite) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// order asks a replica. One that is gone answers with an error.
func (r *replica) order(o order) outcome {
	o.Ledger = r.s.ledger
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var out outcome
	res, err := http.Post("http://"+r.addr, "application/json", bytes.NewReader(body)) //nolint:noctx // the replica has a timeout
	if err == nil {
		err = json.NewDecoder(res.Body).Decode(&out)
		_ = res.Body.Close()
	}
	if err != nil {
		out = outcome{Error: "replica " + r.name + " is gone: " + err.Error()}
	}
	return out
}

// call makes a call by a replica, and notes how it ended.
func (r *replica) call(scope string, ms int) outcome {
	s := r.s
	s.mu.Lock()
	s.next++
	id := fmt.Sprintf("%s/%d", scope, s.next)
	s.mu.Unlock()
	out := r.order(order{Do: "call", Scope: scope, ID: id, MS: ms})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.good == nil {
		s.good, s.bad = map[string]bool{}, map[string]bool{}
	}
	s.good[id] = out.Error == ""
	s.bad[id] = out.NotSent
	return out
}

// ok is call for what must succeed.
func (r *replica) ok(scope, want, node string) outcome {
	r.s.Helper()
	out := r.call(scope, 0)
	if out.Error != "" || want != "" && out.Text != want || node != "" && out.Served.Node != node {
		r.s.Fatalf("call by %s: %q on %q (%s), want %q on %q", r.name, out.Text, out.Served.Node, out.Error, want, node)
	}
	return out
}

// executions reads the ledger.
func (s *suite) executions() map[string]int {
	b, err := os.ReadFile(s.ledger)
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	ran := map[string]int{}
	for id := range strings.FieldsSeq(string(b)) {
		ran[id]++
	}
	return ran
}

// check looks whether each call that succeeded ran once, none ran twice, and none that
// was said not to be sent.
func (s *suite) check() {
	ran := s.executions()
	for id, n := range ran {
		if n > 1 {
			s.Errorf("call %s ran %d times", id, n)
		}
	}
	for id, good := range s.good {
		if good && ran[id] != 1 {
			s.Errorf("call %s succeeded and ran %d times", id, ran[id])
		}
		if s.bad[id] && ran[id] != 0 {
			s.Errorf("call %s was said not to be sent, and ran", id)
		}
	}
}

// ran waits until a call of a scope runs that has not ended.
func (s *suite) ran(calls int) {
	s.Helper()
	for end := time.Now().Add(10 * time.Second); len(s.executions()) < calls; {
		if time.Now().After(end) {
			s.Fatal("the call never ran")
		}
		<-time.After(time.Millisecond)
	}
}

func (s *suite) killIdle() {
	a, b := s.start("a"), s.start("b")
	a.ok("s", "1", "a")
	b.ok("s", "2", "a")
	a.kill()
	begun := time.Now()
	if out := b.call("s", 0); out.Error == "" && out.Text != "1" || out.Error != "" && !out.Lost {
		s.Errorf("the call ended with %+v", out) // it is lost when it was written before the kill was noticed
	}
	out := b.call("s", 0)
	if out.Error != "" || out.Served.Node != "b" {
		s.Errorf("the call ended with %+v", out)
	}
	if took := time.Since(begun); took > 2*ttl {
		s.Errorf("took over after %s", took)
	}
}

func (s *suite) killBusy() {
	a, b := s.start("a"), s.start("b")
	a.ok("s", "1", "a")
	b.ok("s", "2", "a")
	done := make(chan outcome)
	go func() { done <- b.call("s", 60000) }()
	s.ran(3)
	a.kill()
	begun := time.Now()
	out := <-done
	if !out.Lost || out.NotSent {
		s.Errorf("the call ended with %+v", out)
	}
	s.Logf("it failed %s after the kill", time.Since(begun))
	b.ok("s", "1", "b")
}

// load makes calls of scopes by turns by replicas until the func that it returns is called,
// which reports how many there were, and what failed.
func (s *suite) load(scopes int, by ...*replica) (end func() (n int, failed []outcome)) {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		n      int
		failed []outcome
		over   = make(chan struct{})
	)
	for i := range scopes {
		wg.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-over:
					return
				default:
				}
				out := by[(i+k)%len(by)].call(fmt.Sprint("load", i), 0)
				mu.Lock()
				n++
				if out.Error != "" {
					failed = append(failed, out)
				}
				mu.Unlock()
			}
		})
	}
	return func() (int, []outcome) {
		close(over)
		wg.Wait()
		return n, failed
	}
}

func (s *suite) stop() {
	a, b := s.start("a"), s.start("b")
	for round := range 3 {
		end := s.load(4, a, b)
		<-time.After(ttl / 4)
		a.signal(syscall.SIGSTOP)
		<-time.After(ttl + ttl/2)
		out := b.call(fmt.Sprint("load", round), 0)
		a.signal(syscall.SIGCONT)
		<-time.After(ttl / 4)
		n, failed := end()
		if out.Error != "" {
			s.Errorf("the scope wasn't taken over: %+v", out)
		}
		for _, f := range failed {
			if !f.Lost && !f.NotSent {
				s.Errorf("round %d: a call ended with %+v", round, f)
			}
		}
		s.Logf("round %d: %d calls, %d of them with an unknown outcome or not sent", round, n, len(failed))
	}
}

func (s *suite) drain() {
	a, b, c := s.start("a"), s.start("b"), s.start("c")
	for i := range 6 {
		a.ok(fmt.Sprint("load", i), "1", "a")
	}
	end := s.load(6, a, b, c)
	<-time.After(ttl / 4)
	out := a.order(order{Do: "drain"})
	<-time.After(ttl / 4)
	n, failed := end()
	if out.Error != "" || len(failed) > 0 {
		s.Errorf("drain: %q; of %d calls failed %d: %+v", out.Error, n, len(failed), failed)
	}
	s.Logf("%d calls, none failed", n)
	for i := range 6 {
		if out := a.ok(fmt.Sprint("load", i), "", ""); out.Served.Node == "a" {
			s.Error("a drained replica runs a scope")
		}
	}
}

func (s *suite) closeStopped() {
	a, b, c := s.start("a"), s.start("b"), s.start("c")
	a.ok("s", "1", "a")
	b.ok("t", "1", "b")
	a.signal(syscall.SIGSTOP)
	begun := time.Now()
	if out := c.order(order{Do: "close"}); out.Error != "" {
		s.Fatal(out.Error)
	}
	s.Logf("closed after %s", time.Since(begun))
	a.signal(syscall.SIGCONT)
	for out := a.call("s", 0); out.Text != "1"; out = a.call("s", 0) { // of a fresh session
		if !out.Closed { // a caller that is behind
			s.Fatalf("the call ended with %+v", out)
		}
	}
	b.ok("t", "1", "")
}

func (s *suite) restart() {
	a, b := s.start("a"), s.start("b")
	first := a.ok("s", "1", "a")
	a.kill()
	again := s.start("a")
	out := again.ok("s", "1", "")
	if out.Served.SessionID == first.Served.SessionID {
		s.Error("the session of a dead process is said to have answered")
	}
	b.ok("s", "2", out.Served.Node)
}

func (s *suite) race() {
	by := []*replica{s.start("a"), s.start("b"), s.start("c")}
	const scopes = 8
	var wg sync.WaitGroup
	for i := range scopes {
		for _, r := range by {
			wg.Go(func() {
				if out := r.call(fmt.Sprint("race", i), 0); out.Error != "" {
					s.Errorf("a call ended with %+v", out)
				}
			})
		}
	}
	wg.Wait()
	for i := range scopes {
		by[0].ok(fmt.Sprint("race", i), "4", "") // all four in one session
	}
}
