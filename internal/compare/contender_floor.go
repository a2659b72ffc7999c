package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
)

// floorSession is what any client has to do: the same bytes per line over pipes,
// a lock for writing, a goroutine that reads and hands each line, kept in
// memory, to its caller. It has no JSON, looks at no ctx, and is ended only by
// close.
type floorSession struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	ended  chan struct{}

	writing sync.Mutex // protects the field below, and is held while writing
	out     []byte

	mu      sync.Mutex // protects the fields below
	last    int64
	pending map[int64]chan []byte

	waits sync.Pool // of chan []byte with room for one
}

func dialFloor(_ context.Context, t target) (session, error) {
	command, args := t.child()
	f := &floorSession{cmd: exec.Command(command, args...), ended: make(chan struct{}), pending: make(map[int64]chan []byte)}
	f.waits.New = func() any { return make(chan []byte, 1) }
	var err error
	if f.stdin, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if f.stdout, err = f.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	go f.read()
	return f, nil
}

func (f *floorSession) call(_ context.Context, tool string, args any) (reply, error) {
	raw, ok := args.(json.RawMessage)
	if !ok {
		return reply{}, fmt.Errorf("%T: the floor has no JSON, so its arguments are raw", args)
	}
	wait := f.waits.Get().(chan []byte)
	f.mu.Lock()
	f.last++
	id := f.last
	f.pending[id] = wait
	f.mu.Unlock()

	f.writing.Lock()
	f.out = append(f.out[:0], `{"jsonrpc":"2.0","id":`...)
	f.out = strconv.AppendInt(f.out, id, 10)
	f.out = append(f.out, `,"method":"tools/call","params":{"name":"`...)
	f.out = append(f.out, tool...)
	f.out = append(f.out, `","arguments":`...)
	f.out = append(f.out, raw...)
	f.out = append(f.out, "}}\n"...)
	_, err := f.stdin.Write(f.out)
	f.writing.Unlock()
	if err != nil {
		return reply{}, err
	}
	line := <-wait
	f.waits.Put(wait)
	if line == nil {
		return reply{}, errors.New("the server has ended")
	}
	return reply{line: line}, nil
}

const floorBuffer = 64 << 10

func (f *floorSession) read() {
	defer close(f.ended)
	defer f.fail()
	buf := make([]byte, floorBuffer)
	start, end := 0, 0
	for {
		n, err := f.stdout.Read(buf[end:])
		if err != nil {
			return
		}
		scan := end
		end += n
		for {
			i := bytes.IndexByte(buf[scan:end], '\n')
			if i < 0 {
				break
			}
			line := buf[start : scan+i]
			start, scan = scan+i+1, scan+i+1
			if len(line) < floorBuffer/4 {
				f.deliver(bytes.Clone(line))
				continue
			}
			// A long line keeps the buffer, and the next is as long.
			next := make([]byte, len(buf))
			end = copy(next, buf[start:end])
			f.deliver(line)
			buf, start, scan = next, 0, 0
		}
		switch {
		case start == end:
			start, end = 0, 0
		case end == len(buf):
			next := buf
			if start == 0 {
				next = make([]byte, 2*len(buf))
			}
			end = copy(next, buf[start:end])
			buf, start = next, 0
		}
	}
}

func (f *floorSession) deliver(line []byte) {
	digits := line[len(`{"jsonrpc":"2.0","id":`):]
	id := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + int64(c-'0')
	}
	f.mu.Lock()
	wait := f.pending[id]
	delete(f.pending, id)
	f.mu.Unlock()
	if wait != nil {
		wait <- line
	}
}

func (f *floorSession) fail() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, wait := range f.pending {
		wait <- nil
	}
}

func (f *floorSession) close() error {
	err := f.stdin.Close()
	<-f.ended
	return errors.Join(err, f.cmd.Wait())
}
