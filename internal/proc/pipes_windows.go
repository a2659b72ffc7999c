package proc

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

var procCreateNamedPipe = kernel32.NewProc("CreateNamedPipeW")

const (
	pipeAccessInbound         = 0x1
	pipeAccessOutbound        = 0x2
	fileFlagFirstPipeInstance = 0x80000
	pipeRejectRemoteClients   = 0x8
	pipeBufferSize            = 64 << 10
)

// open opens named pipes: the host's ends of those can be overlapped, which
// deadlines need, while the child's ends are the plain ones that it expects.
func (ps *pipes) open() error {
	for i := range 3 {
		hostMode, childMode := uint32(pipeAccessInbound), uint32(syscall.GENERIC_WRITE)
		if i == 0 {
			hostMode, childMode = pipeAccessOutbound, syscall.GENERIC_READ
		}
		if err := ps.openOne(i, hostMode, childMode); err != nil {
			ps.closeChild()
			ps.closeHost()
			return err
		}
	}
	return nil
}

func (ps *pipes) openOne(i int, hostMode, childMode uint32) error {
	var id [16]byte
	rand.Read(id[:])
	name, err := syscall.UTF16PtrFromString(`\\.\pipe\mcppool-` + hex.EncodeToString(id[:]))
	if err != nil {
		return err
	}
	r, _, err := procCreateNamedPipe.Call(uintptr(unsafe.Pointer(name)),
		uintptr(hostMode|syscall.FILE_FLAG_OVERLAPPED|fileFlagFirstPipeInstance),
		pipeRejectRemoteClients, 1, pipeBufferSize, pipeBufferSize, 0, 0)
	host := syscall.Handle(r)
	if host == syscall.InvalidHandle {
		return os.NewSyscallError("CreateNamedPipe", err)
	}
	child, err := syscall.CreateFile(name, childMode, 0, nil, syscall.OPEN_EXISTING, 0, 0)
	if err != nil {
		syscall.CloseHandle(host)
		return os.NewSyscallError("CreateFile", err)
	}
	ps.host[i] = os.NewFile(uintptr(host), "|host")
	ps.child[i] = os.NewFile(uintptr(child), "|child")
	return nil
}

// environment returns env as Windows needs it: without SYSTEMROOT, system
// libraries fail to load in ways that look like anything else.
func environment(env []string) []string {
	const name = "SYSTEMROOT"
	for _, entry := range env {
		if _, ok := cutEnv(entry, name); ok {
			return env
		}
	}
	return append(env[:len(env):len(env)], name+"="+os.Getenv(name))
}

func cutEnv(entry, key string) (string, bool) {
	if len(entry) > len(key) && entry[len(key)] == '=' && strings.EqualFold(entry[:len(key)], key) {
		return entry[len(key)+1:], true
	}
	return "", false
}
