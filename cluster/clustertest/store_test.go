//go:build unix

package clustertest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/clustertest"
	"github.com/mcppool/mcppool/cluster/directorytest"
	"github.com/mcppool/mcppool/cluster/memdir"
)

func TestMain(m *testing.M) {
	if !clustertest.Main(func(url string) (cluster.Directory, error) { return dial(url), nil }) {
		m.Run()
	}
}

func TestFailures(t *testing.T) {
	clustertest.Run(t, func(t *testing.T) string { return serve(t, memdir.New()) })
}

func TestStoreOfTheTestsKeepsTheContract(t *testing.T) {
	directorytest.Run(t, func(t *testing.T) func() cluster.Directory {
		url := serve(t, memdir.New())
		return func() cluster.Directory { return dial(url) }
	})
}

// op is an operation on a store in memory, over HTTP, and reply its answer.
type op struct {
	Op, Key  string
	Bucket   cluster.Bucket
	Value    []byte
	Revision uint64
}

type reply struct {
	Record cluster.Record
	Age    time.Duration
	Error  string
}

// serve serves a store, until the end of the test.
func serve(t *testing.T, store *memdir.Store) string {
	dir := store.Open()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o op
		if json.NewDecoder(r.Body).Decode(&o) != nil {
			return
		}
		e := json.NewEncoder(w)
		if o.Op == "watch" {
			_ = dir.Watch(r.Context(), o.Bucket, func(ev cluster.Event) {
				_ = e.Encode(ev)
				_ = http.NewResponseController(w).Flush()
			})
			return
		}
		_ = e.Encode(do(r.Context(), dir, &o))
	}))
	t.Cleanup(func() {
		_ = dir.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func do(ctx context.Context, d cluster.Directory, o *op) (r reply) {
	var err error
	switch o.Op {
	case "get":
		r.Record, err = d.Get(ctx, o.Bucket, o.Key)
	case "create":
		r.Record.Revision, err = d.Create(ctx, o.Bucket, o.Key, o.Value)
	case "update":
		r.Record.Revision, err = d.Update(ctx, o.Bucket, o.Key, o.Value, o.Revision)
	case "put":
		r.Record.Revision, err = d.Put(ctx, o.Bucket, o.Key, o.Value)
	case "delete":
		err = d.Delete(ctx, o.Bucket, o.Key, o.Revision)
	case "age":
		r.Age, err = d.Age(ctx)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// remote is a directory over HTTP.
type remote struct {
	url  string
	http http.Client
	life context.Context
	end  context.CancelFunc
}

func dial(url string) *remote {
	d := &remote{url: url, http: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	d.life, d.end = context.WithCancel(context.Background())
	return d
}

func (d *remote) post(ctx context.Context, o *op) (*http.Response, error) {
	if d.life.Err() != nil {
		return nil, errors.New("closed")
	}
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return d.http.Do(req)
}

func (d *remote) do(ctx context.Context, o op) (r reply, err error) {
	res, err := d.post(ctx, &o)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		return r, err
	}
	for _, known := range []error{cluster.ErrNotFound, cluster.ErrExists, cluster.ErrConflict} {
		if r.Error == known.Error() {
			return r, known
		}
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

func (d *remote) Get(ctx context.Context, b cluster.Bucket, key string) (cluster.Record, error) {
	r, err := d.do(ctx, op{Op: "get", Bucket: b, Key: key})
	return r.Record, err
}

func (d *remote) Create(ctx context.Context, b cluster.Bucket, key string, value []byte) (uint64, error) {
	r, err := d.do(ctx, op{Op: "create", Bucket: b, Key: key, Value: value})
	return r.Record.Revision, err
}

func (d *remote) Update(ctx context.Context, b cluster.Bucket, key string, value []byte, rev uint64) (uint64, error) {
	r, err := d.do(ctx, op{Op: "update", Bucket: b, Key: key, Value: value, Revision: rev})
	return r.Record.Revision, err
}

func (d *remote) Put(ctx context.Context, b cluster.Bucket, key string, value []byte) (uint64, error) {
	r, err := d.do(ctx, op{Op: "put", Bucket: b, Key: key, Value: value})
	return r.Record.Revision, err
}

func (d *remote) Delete(ctx context.Context, b cluster.Bucket, key string, rev uint64) error {
	_, err := d.do(ctx, op{Op: "delete", Bucket: b, Key: key, Revision: rev})
	return err
}

func (d *remote) Age(ctx context.Context) (time.Duration, error) {
	r, err := d.do(ctx, op{Op: "age"})
	return r.Age, err
}

func (d *remote) Watch(ctx context.Context, b cluster.Bucket, f func(cluster.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	res, err := d.post(ctx, &op{Op: "watch", Bucket: b})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	in := json.NewDecoder(bufio.NewReader(res.Body))
	for {
		var ev cluster.Event
		if err := in.Decode(&ev); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("watch: %w", err))
		}
		f(ev)
	}
}

func (d *remote) Close() error {
	d.end()
	d.http.CloseIdleConnections()
	return nil
}
