package cluster

import "encoding/json"

// protocolVersion is of records and of what replicas ask of each other. A replica
// works with others whose version is at least minVersion.
const (
	protocolVersion = 1
	minVersion      = 1
)

// leaseState is what a lease says of its replica.
type leaseState string

const (
	leaseLive     leaseState = "live"
	leaseDrain    leaseState = "drain"    // it takes no new scopes
	leaseReleased leaseState = "released" // it ended in order: what it owned is free
	leaseFenced   leaseState = "fenced"   // others found it silent: what it owned is free
)

func (s leaseState) over() bool { return s == leaseReleased || s == leaseFenced }

// leaseRecord is the value of a record in the bucket Leases, whose key is the incarnation.
type leaseRecord struct {
	Version int        `json:"v"`
	Name    string     `json:"name"`
	Addr    string     `json:"addr"`
	State   leaseState `json:"state"`
	Host    bool       `json:"host"`
	Scopes  int        `json:"scopes"`
	Used    int        `json:"used"`
	Limit   int        `json:"limit,omitempty"` // 0: none
	Ack     uint64     `json:"ack"`             // up to which revision of Generations it has closed
}

// ownerRecord is the value of a record in the bucket Owners.
type ownerRecord struct {
	Version     int    `json:"v"`
	Incarnation string `json:"inc"`
	// Claim is new for each claim, so that a record is told from another one whose
	// revision is the same in a store that was made anew.
	Claim string `json:"claim"`
}

// closeKind says what a record in the bucket Generations closes.
type closeKind string

const (
	closeServer  closeKind = "server"
	closeCommand closeKind = "command"
	closeScope   closeKind = "scope"
	retireServer closeKind = "retire"
)

type generationRecord struct {
	Version int       `json:"v"`
	Kind    closeKind `json:"kind"`
}

// encode makes a record's value.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("bug: " + err.Error()) // the types above always encode
	}
	return b
}

// decode reads a record's value. One that can't be read is the zero value.
func decode[V any](b []byte) (v V) {
	if json.Unmarshal(b, &v) != nil {
		var none V
		return none
	}
	return v
}
