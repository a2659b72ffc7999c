package poolstate

import "github.com/mcppool/mcppool/internal/list"

// file makes s, which is linked and which nobody borrows, one of those that may be
// ended for others: of all, of its server's and of its scope's, the least recently used
// first.
func (st *State) file(s *Session) {
	st.idle.File(&s.idle)
	fileIn(&s.Group.idle, &s.inGroup, s)
	st.fileInScope(s)
}

// fileInScope files s in its scope, while that is limited: else nobody looks there, and
// each call would have to touch it.
func (st *State) fileInScope(s *Session) {
	switch filed := s.inScope.In(); {
	case s.scope == nil:
	case st.limits.MaxPerScope <= 0 && filed:
		s.scope.idle.Remove(&s.inScope)
	case st.limits.MaxPerScope > 0 && !filed:
		fileIn(&s.scope.idle, &s.inScope, s)
	}
}

// fileIn puts s where its last use puts it, which is last but for times that tie.
func fileIn(to *list.List[*Session], n *list.Node[*Session], s *Session) {
	before := to.Back()
	for before != nil && before.Value.idle.Used > s.idle.Used {
		before = before.Prev()
	}
	to.InsertAfter(n, before)
}

// unfile undoes file; it does nothing to one that isn't filed.
func (st *State) unfile(s *Session) {
	if s.spare || !s.idle.Filed() {
		return
	}
	st.idle.Remove(&s.idle)
	s.Group.idle.Remove(&s.inGroup)
	if s.inScope.In() {
		s.scope.idle.Remove(&s.inScope)
	}
}

func first(l *list.List[*Session]) *Session {
	if n := l.Front(); n != nil {
		return n.Value
	}
	return nil
}
