package pooldebug

// The JSON of a page. Times are milliseconds since 1970, durations milliseconds.

// snapshot is what a page shows.
type snapshot struct {
	Now      int64              `json:"now"`
	Window   float64            `json:"window"`
	Covered  float64            `json:"covered"` // the part of the window that the page has been there for
	Title    string             `json:"title"`
	Attached bool               `json:"attached"`
	Actions  bool               `json:"actions"`
	Stats    statsInfo          `json:"stats"`
	Limits   []limitInfo        `json:"limits"`
	Series   seriesInfo         `json:"series"`
	Latency  map[string]latInfo `json:"latency"`
	Bounds   []float64          `json:"bounds"` // upper ends of the buckets; the last has none
	Servers  []serverInfo       `json:"servers"`
	Sessions []sessionInfo      `json:"sessions"`
	Matching int                `json:"matching"` // sessions that the query asks for, shown or not
	Total    int                `json:"total"`
	Events   []eventInfo        `json:"events"`  // the oldest first
	LeftOut  uint64             `json:"leftOut"` // lines of output that are no events, since there were too many
}

type statsInfo struct {
	Open       int               `json:"open"`
	Queued     int               `json:"queued"`
	Connecting int               `json:"connecting"`
	Live       int               `json:"live"`
	Closing    int               `json:"closing"`
	Kept       int               `json:"kept"`
	Idle       int               `json:"idle"`
	Borrowed   int               `json:"borrowed"`
	Spares     int               `json:"spares"`
	Processes  int               `json:"processes"`
	Waiting    int               `json:"waiting"`
	Connects   uint64            `json:"connects"`
	Failures   uint64            `json:"failures"`
	Opened     uint64            `json:"opened"`
	Evicted    uint64            `json:"evicted"`
	Calls      uint64            `json:"calls"`
	Closed     map[string]uint64 `json:"closed"`   // by reason
	Outcomes   map[string]uint64 `json:"outcomes"` // of calls

	BytesSent     int64 `json:"bytesSent"`     // to processes
	BytesReceived int64 `json:"bytesReceived"` // from processes
}

// limitInfo is a limit beside what it bounds. Where it bounds several, such as
// scopes, Used is that of the one that uses most.
type limitInfo struct {
	Name string `json:"name"`
	Used int    `json:"used"`
	Max  int    `json:"max"`
}

// seriesInfo is what happened in each slot of the window, the oldest first.
type seriesInfo struct {
	Slot   float64             `json:"slot"` // how long one is
	Counts map[string][]uint32 `json:"counts"`
}

// latInfo is the histogram of the durations in the window.
type latInfo struct {
	Count   uint64   `json:"count"`
	P50     float64  `json:"p50"`
	P90     float64  `json:"p90"`
	P99     float64  `json:"p99"`
	Max     float64  `json:"max"`
	Buckets []uint32 `json:"buckets"`
}

type serverInfo struct {
	Server   string `json:"server"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Sessions int    `json:"sessions"`
	Busy     int    `json:"busy"`
	Spares   int    `json:"spares"`
	Calls    uint64 `json:"calls"` // of the open sessions
	Backoff  string `json:"backoff,omitempty"`
}

type sessionInfo struct {
	ID        string     `json:"id"`
	Server    string     `json:"server"`
	Scope     string     `json:"scope"`
	State     string     `json:"state"`
	Reason    string     `json:"reason,omitempty"` // of its end
	OneShot   bool       `json:"oneShot,omitempty"`
	Spare     bool       `json:"spare,omitempty"`
	Kept      bool       `json:"kept"`
	Opened    int64      `json:"opened"`
	Used      int64      `json:"used"`
	Closed    int64      `json:"closed,omitempty"`
	InFlight  int        `json:"inFlight"`
	Calls     uint64     `json:"calls"`
	Tool      string     `json:"tool,omitempty"`
	ToolSince int64      `json:"toolSince,omitempty"`
	Running   int64      `json:"running,omitempty"` // while it connects: since when its process runs
	LastError string     `json:"lastError,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Protocol  string     `json:"protocol,omitempty"`
	Name      string     `json:"name,omitempty"`
	Version   string     `json:"version,omitempty"`
	Stderr    string     `json:"stderr,omitempty"`
	Spans     []spanInfo `json:"spans"`
}

type spanInfo struct {
	Begin int64   `json:"begin"`
	Took  float64 `json:"took"`
	Start float64 `json:"start,omitempty"` // of a connect: until its process ran; the rest is the handshake
	Kind  string  `json:"kind"`
	N     uint32  `json:"n"` // how many lie so near that they are one
}

type eventInfo struct {
	Seq     uint64  `json:"seq"`
	At      int64   `json:"at"`
	Kind    string  `json:"kind"`
	Level   string  `json:"level"`
	Session string  `json:"session,omitempty"`
	Server  string  `json:"server"`
	Tool    string  `json:"tool,omitempty"`
	Text    string  `json:"text,omitempty"`
	Took    float64 `json:"took,omitempty"`
}
