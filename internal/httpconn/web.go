package httpconn

import (
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

const (
	// connsPerServer is how many idle connections to one server are kept. The two of
	// net/http have those of a busy server opened and closed all the time.
	connsPerServer = 32

	maxLegacy  = 1024
	legacyTime = 10 * time.Minute
)

// Web is what several Conns share, and nobody else: the HTTP connections, which are made
// for the first, and what was found out about servers. Its zero value is ready.
type Web struct {
	once sync.Once
	t    *http.Transport

	mu     sync.Mutex // protects legacy
	legacy map[[sha256.Size]byte]time.Time
}

func (w *Web) transport() *http.Transport {
	w.once.Do(func() {
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			w.t = t.Clone()
		} else {
			w.t = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
		}
		w.t.MaxIdleConnsPerHost = max(w.t.MaxIdleConnsPerHost, connsPerServer)
	})
	return w.t
}

// Close ends the connections. No Dial may be under way.
func (w *Web) Close() {
	if w.t != nil {
		w.t.CloseIdleConnections()
	}
}

// isLegacy reports whether the server at url was found, a while ago at most, to speak
// the old era alone. Many of these are silent when they are asked for it.
func (w *Web) isLegacy(url string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	found, ok := w.legacy[sha256.Sum256([]byte(url))]
	return ok && time.Since(found) < legacyTime
}

// learn notes whether the server at url spoke the old era.
func (w *Web) learn(url string, legacy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := sha256.Sum256([]byte(url))
	if !legacy {
		delete(w.legacy, key)
		return
	}
	if w.legacy == nil {
		w.legacy = make(map[[sha256.Size]byte]time.Time)
	}
	if _, known := w.legacy[key]; !known && len(w.legacy) >= maxLegacy {
		for other := range w.legacy {
			delete(w.legacy, other)
			break
		}
	}
	w.legacy[key] = time.Now()
}
