package supervise

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// JSON has no way to say bytes that are not UTF-8: it would pass another name
// instead, and what a name hides or protects would be open. So a text that is
// not UTF-8 is passed as a NUL, which no path and no variable has, and each of
// its bytes as a character of its own.
const asBytes = "\x00"

// plainSpec is a Spec as JSON sees it.
type plainSpec Spec

// MarshalJSON keeps every byte of every text.
func (s Spec) MarshalJSON() ([]byte, error) {
	s.texts(func(text string) string {
		if utf8.ValidString(text) {
			return text
		}
		var b strings.Builder
		b.WriteString(asBytes)
		for i := range len(text) {
			b.WriteRune(rune(text[i]))
		}
		return b.String()
	})
	return json.Marshal(plainSpec(s))
}

// UnmarshalJSON is the reverse of MarshalJSON.
func (s *Spec) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*plainSpec)(s)); err != nil {
		return err
	}
	s.texts(func(text string) string {
		characters, ok := strings.CutPrefix(text, asBytes)
		if !ok {
			return text
		}
		bytes := make([]byte, 0, len(characters))
		for _, r := range characters {
			bytes = append(bytes, byte(r))
		}
		return string(bytes)
	})
	return nil
}

// texts replaces every text that may be a name or a value by what change makes
// of it. Lists are copied where something changes.
func (s *Spec) texts(change func(string) string) {
	for _, text := range []*string{&s.Dir, &s.Temp, &s.Home} {
		*text = change(*text)
	}
	for _, list := range []*[]string{&s.Argv, &s.Env, &s.Writable, &s.Mask, &s.Guard} {
		copied := false
		for i, text := range *list {
			changed := change(text)
			if changed == text {
				continue
			}
			if !copied {
				*list, copied = append([]string(nil), *list...), true
			}
			(*list)[i] = changed
		}
	}
	copied := false
	for i, root := range s.Roots {
		changed := change(root.Path)
		if changed == root.Path {
			continue
		}
		if !copied {
			s.Roots, copied = append([]Root(nil), s.Roots...), true
		}
		s.Roots[i].Path = changed
	}
}
