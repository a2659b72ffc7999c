package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// hold keeps sessions of all tenants, with a daemon, until it is killed.
func hold(out io.Writer, dir string) error {
	h, err := open(dir)
	if err != nil {
		return err
	}
	for _, tenant := range []string{"alice", "bob", "mallory"} {
		if _, err := h.call(tenant, "filesystem", "write", map[string]any{"name": "diary", "text": diary}); err != nil {
			return err
		}
	}
	if _, err := h.sh("mallory", `setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' >/dev/null 2>&1 &`); err != nil {
		return err
	}
	fmt.Fprintln(out, remains(dir))
	select {}
}

// left is the next pool on the machine: with its first start it removes what a dead host
// has left.
func left(out io.Writer, dir string) error {
	h, err := open(dir)
	if err != nil {
		return err
	}
	if _, err := h.call("carol", "memory", "keep", map[string]any{"key": "a", "text": "b"}); err != nil {
		return errors.Join(err, h.pool.Close())
	}
	if err := h.pool.Close(); err != nil {
		return err
	}
	for range 1000 { // what is swept is removed in the background
		if len(folders(dir)) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_, err = fmt.Fprintln(out, remains(dir))
	return err
}

func remains(dir string) string {
	return fmt.Sprintf("%d processes and %d folders are there.", len(marked(dir)), len(folders(dir)))
}

// isClean reports what is left of a house.
func isClean(dir string) error {
	if p, f := marked(dir), folders(dir); len(p)+len(f) > 0 {
		return fmt.Errorf("processes %v and folders %v are left", p, f)
	}
	return nil
}

// marked are the processes of a house's servers: all have its folder in their environment.
func marked(dir string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		env, _ := os.ReadFile(path) // one that has ended has none
		if bytes.Contains(env, []byte(markEnv+"="+dir)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// folders are those that the sessions of a house have of their own.
func folders(dir string) []string {
	found, _ := filepath.Glob(filepath.Join(dir, "scratch", "folders", "*", "*"))
	return found
}
