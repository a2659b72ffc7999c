package pooldebug

// ring keeps the last values that were put into it, max at most. It takes no more
// room than it needs.
type ring[T any] struct {
	max  int
	next int // where the oldest is, once it is full
	all  []T
}

func (r *ring[T]) add(v T) {
	if len(r.all) < r.max {
		r.all = append(r.all, v)
		return
	}
	r.all[r.next] = v
	r.next = (r.next + 1) % r.max
}

// last is the newest one, or nil.
func (r *ring[T]) last() *T {
	if len(r.all) == 0 {
		return nil
	}
	return &r.all[(r.next+len(r.all)-1)%len(r.all)]
}

// appendTo appends the values to out, the oldest first.
func (r *ring[T]) appendTo(out []T) []T {
	out = append(out, r.all[r.next:]...)
	return append(out, r.all[:r.next]...)
}
