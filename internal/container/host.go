// Package container ends the containers that servers run in. Of `docker run -i IMAGE`
// the process that was started is only a client: when it is killed, the container
// goes on. So each container gets labels, by which it is found and removed, also by
// the next host when its own was killed.
//
// All is done through the program that the server's command line names, which has to
// be no particular one as long as it takes docker's arguments.
package container

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mcppool/mcppool/internal/tenure"
)

// The labels of a container.
const (
	LabelHost    = "mcppool.host"    // the machine's name, for people
	LabelPool    = "mcppool.pool"    // see Host.Pool
	LabelSession = "mcppool.session" // see Host.Adopt
)

// Host is what the containers of one pool have in common. Its methods may be called from
// any goroutine.
type Host struct {
	Pool string   // its id, unique on the machine
	Base string   // of a tenure for each pool that ran containers
	CLIs []string // names of further programs, see Parse

	work   sync.WaitGroup
	begin  sync.Once // of the next
	tenure *tenure.Tenure

	mu    sync.Mutex // protects the fields below
	known map[string]*noted
	life  context.Context // of the sweeps
	end   context.CancelFunc
}

// noted is a program that has run containers.
type noted struct {
	cli  *cli
	once sync.Once
}

// Adopt gives the container that cmd is to run, if it is to run one, labels and, unless
// it has one, a name. It returns nil if there is none. The session's id is unique; of
// several starts with one id none begins before the last one's end.
func (h *Host) Adopt(cmd *exec.Cmd, session string) *Container {
	run, ok := Parse(cmd.Args, h.CLIs)
	if !ok {
		return nil
	}
	c := &Container{cli: cliOf(cmd, run), label: LabelSession + "=" + session, name: run.Name}
	host, _ := os.Hostname()
	more := []string{"--label", LabelHost + "=" + host, "--label", LabelPool + "=" + h.Pool, "--label", c.label}
	if c.name == "" {
		c.name = "mcppool-" + session
		more = append(more, "--name", c.name)
	}
	cmd.Args = slices.Insert(slices.Clone(cmd.Args), run.at+1, more...)
	h.note(c.cli)
	return c
}

// note begins to look, once for each program, for what hosts have left that are gone.
func (h *Host) note(c *cli) {
	key := c.key()
	h.mu.Lock()
	if h.known == nil {
		h.known = make(map[string]*noted)
		h.life, h.end = context.WithTimeout(context.Background(), sweepTime)
	}
	if h.known[key] == nil {
		h.known[key] = &noted{cli: c}
	}
	n, life := h.known[key], h.life
	h.mu.Unlock()
	n.once.Do(func() {
		h.begin.Do(func() { h.tenure, _ = tenure.Begin(h.Base, h.Pool) })
		if h.tenure == nil {
			return // the containers are labelled all the same, and nobody else's
		}
		_ = os.WriteFile(filepath.Join(h.tenure.Dir(), key), nil, 0o600)
		h.work.Go(func() { h.sweep(life, c, key) })
	})
}

// sweepTime bounds the search for what other hosts left.
const sweepTime = time.Minute

// sweep removes the containers that c ran for hosts that are gone. Those are told by
// their locks, never by their age.
func (h *Host) sweep(ctx context.Context, c *cli, key string) {
	for _, gone := range tenure.Ended(h.Base) {
		h.sweepOne(ctx, c, filepath.Join(gone.Dir(), key), gone)
	}
}

func (h *Host) sweepOne(ctx context.Context, c *cli, note string, gone *tenure.Tenure) {
	defer gone.Leave()
	if _, err := os.Stat(note); err == nil {
		if c.remove(ctx, LabelPool+"="+gone.ID()) != nil {
			return // the next one looks again
		}
		_ = os.Remove(note)
	}
	if left, err := os.ReadDir(gone.Dir()); err == nil && len(left) == 0 {
		_ = gone.End()
	}
}

// End removes what there still is of the pool's containers, until ctx ends. No container
// may be adopted afterwards.
func (h *Host) End(ctx context.Context) error {
	h.mu.Lock()
	known, end := h.known, h.end
	h.known = nil
	h.mu.Unlock()
	if known == nil {
		return nil
	}
	end()
	h.work.Wait()
	var err error
	for _, n := range known {
		err = cmp.Or(err, n.cli.remove(ctx, LabelPool+"="+h.Pool))
	}
	switch {
	case h.tenure == nil:
	case err != nil:
		h.tenure.Leave() // for the next host
	default:
		err = h.tenure.End()
	}
	return err
}
