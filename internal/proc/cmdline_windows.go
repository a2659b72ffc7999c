package proc

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf16"
	"unsafe"
)

// BatchArgError tells that an argument, or the path, of a batch file can't be
// given to it: cmd.exe, which runs it, would read something else.
type BatchArgError struct {
	Index  int    // of the argument in Config.Args; -1 for Config.Path
	Reason string // without the argument, which may be a secret
}

func (e *BatchArgError) Error() string {
	if e.Index < 0 {
		return "path of a batch file: " + e.Reason
	}
	return fmt.Sprintf("argument %d of a batch file: %s", e.Index, e.Reason)
}

func isBatch(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".bat" || ext == ".cmd"
}

// maxBatchLine is what cmd.exe reads of a command line, in UTF-16 units.
const maxBatchLine = 8191

// batchCmdLine returns the command line that has cmd.exe run a batch file.
//
// The options keep the registry's AutoRun commands out (/d), "!" what it is
// (/v:off), and have /s strip the outermost pair of quotes and nothing else.
//
// Between quotes cmd.exe takes everything literally but "%", which expands
// variables everywhere and has no escape on a command line. A quote within an
// argument has one spelling that all programs read alike, \", and cmd.exe, to
// which the backslash means nothing, takes it for the end of the quotes: what
// follows must then be free of what cmd.exe acts on. The batch file itself
// reads the line a second time where it says %*, so that "^" escapes nothing.
func batchCmdLine(shell, path string, args []string) (string, error) {
	quotes := slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, `"`) })
	if strings.Contains(path, `"`) {
		return "", &BatchArgError{Index: -1, Reason: "it holds a quote"}
	}
	var b strings.Builder
	b.WriteString(`"` + shell + `" /d /e:on /v:off /s /c "`)
	for i, arg := range append([]string{path}, args...) {
		refused := "%\r\n\x00"
		if i > 0 && quotes {
			refused += "&|<>^()"
		}
		if j := strings.IndexAny(arg, refused); j >= 0 {
			return "", &BatchArgError{Index: i - 1, Reason: fmt.Sprintf(
				"cmd.exe can't be given %q safely here: run the program behind the batch file instead", arg[j])}
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		quoteBatchArg(&b, arg)
	}
	b.WriteString(`"`)
	if len(utf16.Encode([]rune(b.String()))) > maxBatchLine {
		return "", &BatchArgError{Index: len(args) - 1, Reason: fmt.Sprintf(
			"cmd.exe reads no more than %d characters of a command line", maxBatchLine)}
	}
	return b.String(), nil
}

// quoteBatchArg writes arg as C programs read their argv: backslashes count
// only before a quote, where each is doubled.
func quoteBatchArg(b *strings.Builder, arg string) {
	b.WriteByte('"')
	backslashes := 0
	for i := range len(arg) {
		switch arg[i] {
		case '\\':
			backslashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, backslashes+1))
			backslashes = 0
		default:
			backslashes = 0
		}
		b.WriteByte(arg[i])
	}
	b.WriteString(strings.Repeat(`\`, backslashes))
	b.WriteByte('"')
}

var procGetSystemDirectory = kernel32.NewProc("GetSystemDirectoryW")

// shellPath returns the path of cmd.exe, which no environment can change.
func shellPath() (string, error) {
	var buf [syscall.MAX_PATH + 1]uint16
	n, _, err := procGetSystemDirectory.Call(uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if n == 0 || int(n) >= len(buf) {
		return "", err
	}
	return syscall.UTF16ToString(buf[:n]) + `\cmd.exe`, nil
}
