package tenure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mountWithin returns a mount point in dir, or "".
func mountWithin(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "" // nothing is there
	}
	table, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		at := unescape(fields[4])
		if at == real || strings.HasPrefix(at, real+"/") {
			return at
		}
	}
	return ""
}

// unescape undoes the octal escapes of blanks and backslashes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
