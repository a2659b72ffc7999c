package cluster

// Window is a window of request numbers.
type Window = window

// Fresh reports whether a number wasn't seen before, and notes it.
func Fresh(w *Window, seq uint64) bool { return w.fresh(seq) }
