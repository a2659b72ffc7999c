package proc

import "fmt"

// Exit tells how a program ended.
type Exit struct {
	Code      int    // the exit code; -1 after a signal, or if it can't be known
	Signal    string // the name of the signal that ended it, such as "killed"; "" if none did
	CoreDump  bool   // the signal left a core dump
	Requested bool   // Stop or Kill was called before it ended
}

// String returns "exit status 3", "signal: killed" and the like.
func (e Exit) String() string {
	switch {
	case e.Signal != "" && e.CoreDump:
		return "signal: " + e.Signal + " (core dumped)"
	case e.Signal != "":
		return "signal: " + e.Signal
	case e.Code < 0:
		return "exit status unknown"
	}
	return fmt.Sprintf("exit status %d", e.Code)
}
