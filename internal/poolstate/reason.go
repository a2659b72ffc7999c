package poolstate

// Reason says why a session ended.
type Reason string

// The reasons that a State finds by itself. Others come from its owner.
const (
	OneShot      Reason = "one-shot"      // it was opened for one call
	Idle         Reason = "idle"          // unused for its idle timeout
	LRU          Reason = "lru"           // least recently used when there were more than MaxSessions
	Crashed      Reason = "crashed"       // the connection was lost
	ServerClosed Reason = "server closed" // its configuration is not to be used any more
	ByID         Reason = "closed by id"
	Retired      Reason = "retired"
	Shutdown     Reason = "shutdown"     // the pool ends
	Evicted      Reason = "evicted"      // another call needed its place at a limit
	Recycled     Reason = "recycled"     // too old, too many calls or too much memory
	StartFailed  Reason = "start failed" // it never came up
	Abandoned    Reason = "abandoned"    // nobody waited for its connect any longer
	Unanswered   Reason = "wedged"       // it didn't answer a probe
)

// unwanted reports whether a session ended so that its server's spares are not
// wanted either.
func (r Reason) unwanted() bool {
	switch r {
	case Retired, ServerClosed, Shutdown, ByID:
		return true
	default:
		return false
	}
}
