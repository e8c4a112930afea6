package tree

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Take returns a member of an object and notes that it was read; nil: there
// is none, or it is null, which says no more.
func (v *Value) Take(name string) *Value {
	if v == nil {
		return nil
	}
	for i := range v.Members {
		if m := &v.Members[i]; m.Name == name {
			v.read, m.read = true, true
			if m.Value.Kind == Null {
				return nil
			}
			return m.Value
		}
	}
	return nil
}

// List returns the items of an array and notes that it was read.
func (v *Value) List() []*Value {
	if !v.Is(Array) {
		return nil
	}
	v.read = true
	return v.Items
}

// Fields returns the members of an object, and marks the object, but not its members'
// values, as read.
func (v *Value) Fields() []Member {
	if !v.Is(Object) {
		return nil
	}
	v.read = true
	for i := range v.Members {
		v.Members[i].read = true
	}
	return v.Members
}

// Str returns the text of a string, "" of anything else, and notes that it
// was read.
func (v *Value) Str() string {
	if !v.Is(String) {
		return ""
	}
	v.read = true
	return v.Text
}

// Flag returns a boolean; nil: it is none.
func (v *Value) Flag() *bool {
	if !v.Is(Bool) {
		return nil
	}
	v.read = true
	b := v.Text == "true"
	return &b
}

// Float returns a number; nil: it is none, or too large.
func (v *Value) Float() *float64 {
	if !v.Is(Number) {
		return nil
	}
	f, err := strconv.ParseFloat(v.Text, 64)
	if err != nil {
		return nil
	}
	v.read = true
	return &f
}

// Int returns a whole number; 0: it is none. A string of digits is one, too,
// which is how some write numbers of 64 bits.
func (v *Value) Int() int {
	if !v.Is(Number) && !v.Is(String) {
		return 0
	}
	n, err := strconv.Atoi(v.Text)
	if err != nil {
		return 0
	}
	v.read = true
	return n
}

// Whole returns the value as it was received and notes that all of it was
// read; nil: it is absent.
func (v *Value) Whole() json.RawMessage {
	if v == nil {
		return nil
	}
	v.read, v.torn = true, false // half a pair is kept in what is kept as it was
	v.mark()
	if v.raw != nil {
		return v.raw
	}
	return v.JSON()
}

func (v *Value) mark() {
	v.read, v.torn = true, false
	for i := range v.Members {
		v.Members[i].read = true
		v.Members[i].Value.mark()
	}
	for _, item := range v.Items {
		item.mark()
	}
}

// Seen marks the value itself, not its contents, as read.
func (v *Value) Seen() {
	if v != nil {
		v.read = true
	}
}

// Skip notes that a value says nothing that has to be kept.
func (v *Value) Skip() {
	if v != nil {
		v.mark()
	}
}

// Rest visits what was not read, by its JSON pointer below at. A null is
// nothing. torn tells that the value was read but for half of a surrogate
// pair.
func (v *Value) Rest(at string, visit func(pointer string, torn bool)) {
	switch {
	case v == nil || v.Kind == Null:
	case !v.read:
		visit(at, false)
	case v.torn:
		visit(at, true)
	}
	if v == nil || !v.read {
		return
	}
	for _, m := range v.Members {
		if !m.read {
			if m.Value.Kind != Null {
				visit(at+"/"+Escape(m.Name), false)
			}
			continue
		}
		m.Value.Rest(at+"/"+Escape(m.Name), visit)
	}
	for i, item := range v.Items {
		item.Rest(at+"/"+strconv.Itoa(i), visit)
	}
}

// Escape makes a name the token of a JSON pointer (RFC 6901).
func Escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Unescape is the reverse of Escape.
func Unescape(token string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

// At returns what a JSON pointer leads to; nil: nothing.
func (v *Value) At(pointer string) *Value {
	if pointer == "" {
		return v
	}
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return nil
	}
	for _, token := range strings.Split(rest, "/") {
		switch {
		case v.Is(Object):
			v = v.Get(Unescape(token))
		case v.Is(Array):
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v.Items) {
				return nil
			}
			v = v.Items[i]
		default:
			return nil
		}
	}
	return v
}
