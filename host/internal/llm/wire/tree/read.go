package tree

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Take returns the member called name and marks the object and the member, but not what is
// in it, as read. It returns nil if the member is absent or null, which mean the same.
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

// TakeItems returns the items of an array and marks the array, but not its items, as read;
// nil for any other value.
func (v *Value) TakeItems() []*Value {
	if !v.Is(Array) {
		return nil
	}
	v.read = true
	return v.Items
}

// TakeMembers returns the members of an object and marks the object, but not the values of
// its members, as read; nil for any other value.
func (v *Value) TakeMembers() []Member {
	if !v.Is(Object) {
		return nil
	}
	v.read = true
	for i := range v.Members {
		v.Members[i].read = true
	}
	return v.Members
}

// Str returns the text of a string, "" for any other value, and marks the value as
// read.
func (v *Value) Str() string {
	if !v.Is(String) {
		return ""
	}
	v.read = true
	return v.Text
}

// Flag returns a boolean and marks it as read; nil for any other value.
func (v *Value) Flag() *bool {
	if !v.Is(Bool) {
		return nil
	}
	v.read = true
	b := v.Text == "true"
	return &b
}

// Float returns a number and marks it as read; nil for any other value and for a number
// out of range.
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

// Int returns a whole number and marks it as read; 0 for any other value. It accepts a
// string of digits, because some programs write 64-bit numbers as strings.
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

// TakeRaw returns the JSON text of the whole value as received and marks the value and all
// in it as read; nil if the value is absent.
func (v *Value) TakeRaw() json.RawMessage {
	if v == nil {
		return nil
	}
	v.read, v.brokenText = true, false // the unchanged text keeps half of a surrogate pair
	v.markAll()
	if v.raw != nil {
		return v.raw
	}
	return v.JSON()
}

// markAll marks a value and all in it as read.
func (v *Value) markAll() {
	v.read, v.brokenText = true, false
	for i := range v.Members {
		v.Members[i].read = true
		v.Members[i].Value.markAll()
	}
	for _, item := range v.Items {
		item.markAll()
	}
}

// MarkRead marks the value itself, not its contents, as read.
func (v *Value) MarkRead() {
	if v != nil {
		v.read = true
	}
}

// MarkAllRead marks a value and all in it as read, since they contain nothing to keep.
func (v *Value) MarkAllRead() {
	if v != nil {
		v.markAll()
	}
}

// EachUnread visits each value that was not read, with its JSON pointer below at. It
// skips null. loneSurrogate means that the value was read except for half of a surrogate pair in
// it.
func (v *Value) EachUnread(at string, visit func(pointer string, loneSurrogate bool)) {
	switch {
	case v == nil || v.Kind == Null:
	case !v.read:
		visit(at, false)
	case v.brokenText:
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
		m.Value.EachUnread(at+"/"+Escape(m.Name), visit)
	}
	for i, item := range v.Items {
		item.EachUnread(at+"/"+strconv.Itoa(i), visit)
	}
}

// Escape returns the name of a member as a token of a JSON pointer (RFC 6901).
func Escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Unescape is the reverse of Escape.
func Unescape(token string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

// At returns the value at a JSON pointer without marking it as read; nil: no such value.
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
