package policy

import (
	"strings"
)

// field is one word of a command after expansion. NUL in its text, which no
// argument can hold, means an unknown part: any text.
type field struct {
	text      string
	maybeMany bool // may be several fields, or none
	// files: what is not known are names of files that a glob matches.
	fromGlob bool
}

func (f field) hasUnknown() bool { return strings.IndexByte(f.text, 0) >= 0 }

// is reports whether the field is known to be one of the texts.
func (f field) is(texts ...string) bool {
	for _, text := range texts {
		if f.text == text && !f.maybeMany {
			return true
		}
	}
	return false
}
