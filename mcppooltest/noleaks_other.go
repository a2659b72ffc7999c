//go:build !linux

package mcppooltest

func addProcesses(map[string]string)   {}
func addDescriptors(map[string]string) {}
