package mcpservers

import "crypto/sha256"

// uses is what a file's meaning depended on when it was read, so that a change
// between two looks at it can't be missed.
type uses struct {
	text      digest              // of the file itself
	files     map[string]digest   // that it names
	variables map[string]variable // that it uses
}

type variable struct {
	value string
	set   bool
}

// digest stands for what a file held, or for why it couldn't be read.
type digest [sha256.Size]byte

func digestOf(data []byte, err *Error) digest {
	if err != nil {
		return sha256.Sum256([]byte("error: " + err.Reason))
	}
	return sha256.Sum256(append([]byte("text: "), data...))
}

func (u *uses) addFile(path string, d digest) {
	if u.files == nil {
		u.files = make(map[string]digest)
	}
	u.files[path] = d
}

func (u *uses) addVariable(name string, v variable) {
	if u.variables == nil {
		u.variables = make(map[string]variable)
	}
	u.variables[name] = v
}

// changed reports whether the file at path would be read differently now.
func (u *uses) changed(path string, o *Options) bool {
	differs := func(path string, d digest) bool { return digestOf(readFile(path, o.maxSize())) != d }
	if differs(path, u.text) {
		return true
	}
	for name, old := range u.files {
		if differs(name, old) {
			return true
		}
	}
	for name, old := range u.variables {
		value, set := o.getenv(name)
		if old != (variable{value, set}) {
			return true
		}
	}
	return false
}
