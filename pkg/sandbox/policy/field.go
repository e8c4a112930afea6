package policy

import (
	"strings"
)

// field is one word of a command after expansion. A NUL in its text, which no
// argument can contain, represents an unknown part: any text.
type field struct {
	text      string
	maybeMany bool // may be any number of fields, none included
	fromGlob  bool // the unknown parts are names of files that a glob matches
}

// hasUnknown reports whether a part of the text is unknown.
func (f field) hasUnknown() bool { return strings.IndexByte(f.text, 0) >= 0 }

// is reports whether the field is one field, known to be equal to one of texts.
func (f field) is(texts ...string) bool {
	for _, text := range texts {
		if f.text == text && !f.maybeMany {
			return true
		}
	}
	return false
}
