package walk

import "strings"

// glob matches one path element. Common shapes are compared directly. Other
// patterns are lists of tokens, matched without recursion, by backtracking only
// to the last star, in time proportional to pattern times name.
type glob struct {
	shape  shape
	text   string // of literal, prefix, suffix
	tokens []token
	minLen int // length of the shortest matching name
}

// shape says how a glob is compared with a name.
type shape uint8

const (
	// literal is a name without wildcards.
	literal shape = iota
	anyName       // *
	prefix        // text*
	suffix        // *text
	// tokenList is any other pattern, matched by its tokens.
	tokenList
	anyDirs // **, between slashes: any number of directories
)

// token matches any number of bytes if star is set, otherwise one byte.
type token struct {
	star bool
	set  *byteSet // nil: the byte c
	c    byte
}

// byteSet is a set of bytes, one bit each.
type byteSet [4]uint64

// add adds a byte to the set.
func (s *byteSet) add(c byte) { s[c>>6] |= 1 << (c & 63) }

// has reports whether the set contains a byte.
func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

// addRange adds the bytes from from to to; if fold is set, also their lower
// case.
func (s *byteSet) addRange(from, to byte, fold bool) {
	for c := int(from); c <= int(to); c++ {
		s.add(byte(c))
		if fold {
			s.add(lowerASCII(byte(c)))
		}
	}
}

// invert replaces the set by its complement.
func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// match reports whether the whole name matches.
func (g *glob) match(name string) bool {
	switch g.shape {
	case literal:
		return name == g.text
	case anyName, anyDirs:
		return true
	case prefix:
		return strings.HasPrefix(name, g.text)
	case suffix:
		return strings.HasSuffix(name, g.text)
	}
	if len(name) < g.minLen {
		return false
	}
	return matchTokens(g.tokens, name)
}

// matchTokens reports whether the whole name matches the tokens.
func matchTokens(list []token, name string) bool {
	t, n := 0, 0
	star, mark := -1, 0 // the last star, and the end in name that is being tried for it
	for n < len(name) {
		if t < len(list) {
			tok := &list[t]
			if tok.star {
				star, mark = t, n
				t++
				continue
			}
			if tok.set == nil && tok.c == name[n] || tok.set != nil && tok.set.has(name[n]) {
				t++
				n++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		t, n = star+1, mark
	}
	for t < len(list) && list[t].star {
		t++
	}
	return t == len(list)
}

// newGlob returns the glob for the tokens of one path element, in its simplest
// shape.
func newGlob(list []token) glob {
	stars, plain := 0, true
	text := make([]byte, 0, len(list))
	for _, t := range list {
		switch {
		case t.star:
			stars++
		case t.set != nil:
			plain = false
		default:
			text = append(text, t.c)
		}
	}
	switch {
	case plain && stars == 0:
		return glob{shape: literal, text: string(text)}
	case plain && stars == 1 && len(text) == 0:
		return glob{shape: anyName}
	case plain && stars == 1 && list[0].star:
		return glob{shape: suffix, text: string(text)}
	case plain && stars == 1 && list[len(list)-1].star:
		return glob{shape: prefix, text: string(text)}
	}
	return glob{shape: tokenList, tokens: list, minLen: len(list) - stars}
}

// matchDir reports whether the elements of a pattern match dir, a relative path
// with slashes; "" has no elements. If prefixOnly is set, matching the
// beginning of dir is enough.
func matchDir(pattern []glob, dir string, prefixOnly bool) bool {
	p, rest := 0, dir
	star, mark := -1, ""
	for {
		if p < len(pattern) && pattern[p].shape == anyDirs {
			p++
			if p == len(pattern) {
				return true
			}
			star, mark = p, rest
			continue
		}
		if p == len(pattern) && (prefixOnly || rest == "") {
			return true
		}
		if rest == "" {
			return false // a longer ** would leave less
		}
		element, after, _ := strings.Cut(rest, "/")
		if p < len(pattern) && pattern[p].match(element) {
			p, rest = p+1, after
			continue
		}
		if star < 0 {
			return false
		}
		_, mark, _ = strings.Cut(mark, "/")
		p, rest = star, mark
	}
}
