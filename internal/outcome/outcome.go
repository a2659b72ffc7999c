// Package outcome sorts the ends of calls, so that they can be counted cheaply.
package outcome

// Kind is one of the ends that a call can have.
type Kind uint8

// The ends. What each means is said by the pool, whose words they are.
const (
	OK Kind = iota
	ToolError
	RPCError
	Timeout
	Cancelled
	Lost
	Closed
	NotSent
	Other
	count
)

// Counts is how many calls have had each.
type Counts [count]uint64

func (k Kind) String() string {
	return [count]string{"ok", "tool error", "rpc error", "timeout", "cancelled", "lost", "closed", "not sent", "other"}[k]
}
