package container

import (
	"context"
	"time"

	"github.com/mcppool/mcppool/internal/await"
)

// Container is the container of one start.
type Container struct {
	cli   *cli
	label string
	name  string
}

// Reserve is what of the time for a close is kept for the removal.
func Reserve(d time.Duration) time.Duration { return max(0, min(d/4, 3*time.Second)) }

// lookTime is what a removal has beyond its deadline, at the least.
const lookTime = time.Second

// Close ends the container and the process that runs it, which end is called with the
// deadline for. The steps are those of a process: end of input, after the grace the
// signal that its image is stopped by, then the kill. Its errors are that of end, and why
// the container may be left.
func (c *Container) Close(deadline time.Time, grace time.Duration, end func(deadline time.Time) error) (endErr, left error) {
	begun, d := time.Now(), time.Until(deadline)
	first := deadline.Add(-Reserve(d))
	ended, stopped := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithDeadline(context.Background(), first)
	go func() {
		defer close(stopped)
		// A client that dies of its own signal has told its container nothing.
		if !await.Closed(ended, grace) || time.Since(begun) >= grace {
			c.cli.stop(ctx, c.name, time.Until(first)/2)
		}
	}()
	endErr = end(first)
	close(ended)
	<-stopped
	cancel()
	ctx, cancel = context.WithDeadline(context.Background(), deadline.Add(lookTime))
	defer cancel()
	return endErr, c.cli.remove(ctx, c.label)
}
