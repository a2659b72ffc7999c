//go:build !linux

package tenure

func mountWithin(string) string { return "" }
