package backoff

import "time"

// SetRandom replaces what is taken off a pause at random.
func (s *Set[K]) SetRandom(random func(atMost time.Duration) time.Duration) { s.random = random }
