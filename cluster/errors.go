package cluster

import (
	"errors"
	"fmt"
)

// ErrOwnerLost: the replica that ran the call died, or lost its lease, before the answer was known
// to be its to give. The tool may have run; the call is not sent again. Errors are of
// type [*OwnerLostError].
var ErrOwnerLost = errors.New("cluster: the owner of the scope was lost during the call, whose outcome is unknown")

// ErrClosed: the node is closed.
var ErrClosed = errors.New("cluster: node is closed")

// OwnerLostError is the [ErrOwnerLost] of a call.
type OwnerLostError struct {
	Node string // the owner
	Err  error  // how it was noticed
}

func (e *OwnerLostError) Error() string {
	return fmt.Sprintf("%v: replica %s: %v", ErrOwnerLost, e.Node, e.Err)
}

// Is makes every OwnerLostError an [ErrOwnerLost].
func (e *OwnerLostError) Is(target error) bool { return target == ErrOwnerLost }

func (e *OwnerLostError) Unwrap() error { return e.Err }

// RemoteError is an error of a call that another replica ran. It wraps what the error
// was there, as far as that is one of mcppool's.
type RemoteError struct {
	Node string
	Text string // as it was there
	Err  error
}

func (e *RemoteError) Error() string { return e.Text + " (on replica " + e.Node + ")" }

func (e *RemoteError) Unwrap() error { return e.Err }

// A refusal is why a replica did not run a call. Nothing was sent to a server, so that the call
// may be made again elsewhere.
type refusal string

const (
	notOwner refusal = "notowner" // the scope isn't its own
	fenced   refusal = "fenced"   // it has no lease at the moment
	draining refusal = "draining" // it takes no new scopes
	busy     refusal = "busy"     // it is full
	stranger refusal = "stranger" // it doesn't know the caller's lease yet
	gone     refusal = "gone"     // another incarnation is there, or nobody
)

func (r refusal) Error() string { return "cluster: refused: " + string(r) }

// asRefusal returns the refusal that err is; empty when it is none.
func asRefusal(err error) refusal {
	var r refusal
	errors.As(err, &r)
	return r
}
