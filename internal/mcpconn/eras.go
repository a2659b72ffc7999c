package mcpconn

import (
	"sync"
	"time"

	"github.com/mcppool/mcppool/internal/rpc"
)

// maxEras bounds the memory of eras; beyond it any one is forgotten.
const maxEras = 1024

// Eras remembers what was learnt of commands, by digest. Its zero value is ready,
// and may be used from any goroutine.
type Eras struct {
	mu sync.Mutex // protects the fields below
	of map[[16]byte]memory
}

// memory is what is known of a command. The zero value is nothing.
type memory struct {
	era rpc.Era
	// doubted is until when a server is taken for one of the old era that exited when it
	// was asked, and spoke that when it was started again. It may have been a mishap, so
	// that it is asked once more then. Zero where there is no doubt.
	doubted time.Time
	// slow is set where the server was started again after a long silence and was as
	// slow then: it gets all the time there is.
	slow bool
}

// mishapTime is how long a server that exited when it was asked for its era isn't asked
// again.
const mishapTime = 10 * time.Minute

// isLegacy reports whether a server is begun with as one of the old era. One that died of
// the question has been, too, but not for good.
func (m memory) isLegacy() bool {
	return m.era == rpc.Legacy && (m.doubted.IsZero() || time.Now().Before(m.doubted))
}

func (e *Eras) get(command [16]byte) memory {
	if e == nil {
		return memory{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[command]
}

func (e *Eras) set(command [16]byte, m memory) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if m == (memory{}) {
		delete(e.of, command)
		return
	}
	if e.of == nil {
		e.of = make(map[[16]byte]memory)
	}
	if _, known := e.of[command]; !known && len(e.of) >= maxEras {
		for other := range e.of {
			delete(e.of, other)
			break
		}
	}
	e.of[command] = m
}
