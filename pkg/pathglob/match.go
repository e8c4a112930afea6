package pathglob

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// kind is how one path element of a pattern is compared.
type kind uint8

const (
	literal  kind = iota
	globstar      // **
	anything      // *
	prefix        // text*
	suffix        // *text
	around        // text*tail
	general       // by doublestar
)

// segment is one path element of a pattern.
type segment struct {
	kind kind
	text string
	tail string
}

func newSegment(text string) segment {
	if text == "**" {
		return segment{kind: globstar}
	}
	text = singleStars(text)
	if text == "*" {
		return segment{kind: anything}
	}
	if !strings.ContainsAny(text, `*?[\`) {
		return segment{kind: literal, text: text}
	}
	if plain, ok := unescape(text); ok {
		return segment{kind: literal, text: plain}
	}
	head, tail, _ := strings.Cut(text, "*")
	switch {
	case strings.ContainsAny(text, `?[\`) || strings.Contains(tail, "*"):
		return segment{kind: general, text: text}
	case head == "":
		return segment{kind: suffix, text: tail}
	case tail == "":
		return segment{kind: prefix, text: head}
	}
	return segment{kind: around, text: head, tail: tail}
}

// singleStars makes one star of several in a row, which mean no more.
func singleStars(text string) string {
	if !strings.Contains(text, "**") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i + 1
		switch text[i] {
		case '*':
			for end < len(text) && text[end] == '*' {
				end++
			}
			i = end - 1
		case '\\':
			end = min(i+2, len(text))
		case '[':
			end, _ = classEnd(text, i)
		}
		b.WriteString(text[i:end])
		i = end
	}
	return b.String()
}

// unescape returns the name that a piece without wildcards stands for.
func unescape(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			i++
		}
		if i < len(text) {
			b.WriteByte(text[i])
		}
	}
	return b.String(), true
}

func (s *segment) match(name string) bool {
	switch s.kind {
	case literal:
		return name == s.text
	case prefix:
		return strings.HasPrefix(name, s.text)
	case suffix:
		return strings.HasSuffix(name, s.text)
	case around:
		return len(name) >= len(s.text)+len(s.tail) && strings.HasPrefix(name, s.text) && strings.HasSuffix(name, s.tail)
	case general:
		return doublestar.MatchUnvalidated(s.text, name)
	}
	return true
}

// alternative is one pattern without braces.
type alternative struct {
	segs []segment
	// baseOnly is for "**/x": the last element alone decides.
	baseOnly bool
}

func newAlternative(text string) alternative {
	parts := strings.Split(text, "/")
	segs := make([]segment, len(parts))
	for i, part := range parts {
		segs[i] = newSegment(part)
	}
	return alternativeOf(segs)
}

func alternativeOf(segs []segment) alternative {
	return alternative{
		segs:     segs,
		baseOnly: len(segs) == 2 && segs[0].kind == globstar && segs[1].kind != globstar,
	}
}

func (a *alternative) match(path string) bool {
	if a.baseOnly {
		return a.segs[1].match(path[strings.LastIndexByte(path, '/')+1:])
	}
	// As in matching a string against one with stars, going back to the last
	// globstar is enough: what an earlier one could take, it can.
	segs, rest, more := a.segs, path, true
	var backSegs []segment
	var backRest string
	for more || len(segs) > 0 {
		switch {
		case len(segs) > 0 && segs[0].kind == globstar:
			if len(segs) == 1 {
				return true
			}
			segs = segs[1:]
			backSegs, backRest = segs, rest
			if !more {
				return false
			}
			continue
		case len(segs) > 0 && more:
			name, after, found := strings.Cut(rest, "/")
			if segs[0].match(name) {
				segs, rest, more = segs[1:], after, found
				continue
			}
		}
		if backSegs == nil {
			return false
		}
		_, after, found := strings.Cut(backRest, "/")
		if !found {
			return false
		}
		segs, rest, more, backRest = backSegs, after, true, after
	}
	return true
}

// enter reports whether a path below dir may match.
func (a *alternative) enter(dir string) bool {
	segs := a.segs
	for more := true; more; segs = segs[1:] {
		if len(segs) == 0 {
			return false
		}
		if segs[0].kind == globstar {
			return true
		}
		var name string
		name, dir, more = strings.Cut(dir, "/")
		if !segs[0].match(name) {
			return false
		}
	}
	return len(segs) > 0
}

// commonPrefix returns the plain directories that all alternatives begin
// with.
func commonPrefix(alts []alternative) []string {
	var common []string
	for n, alt := range alts {
		var own []string
		for _, s := range alt.segs[:len(alt.segs)-1] {
			if s.kind != literal {
				break
			}
			own = append(own, s.text)
		}
		if n == 0 {
			common = own
			continue
		}
		same := 0
		for same < min(len(common), len(own)) && common[same] == own[same] {
			same++
		}
		common = common[:same]
	}
	return common
}
