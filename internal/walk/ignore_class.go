package walk

import "strings"

// parseGitClass parses the bracket expression at the start of p like git's
// wildmatch. It returns the bytes that the class matches, and its length; nil
// if it is not closed or names an unknown class. No class needs to exclude a
// slash, since only bytes of one path element are tested. If fold is set, names
// are tested in lower case; as in git, ranges and [:upper:] allow for that and
// single letters do not.
func parseGitClass(p string, fold bool) (set *byteSet, size int) {
	set = new(byteSet)
	i, negated := 1, false
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		negated = true
		i++
	}
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0
		}
		if p[i] == ']' && !first {
			break
		}
		if strings.HasPrefix(p[i:], "[:") {
			if size, known := set.addNamed(p[i:], fold); size > 0 {
				if !known {
					return nil, 0
				}
				i += size
				continue
			}
		}
		from, size := classByte(p[i:])
		if size == 0 {
			return nil, 0
		}
		i += size
		set.add(from)
		if i+1 < len(p) && p[i] == '-' && p[i+1] != ']' {
			end, size := classByte(p[i+1:])
			if size == 0 {
				return nil, 0
			}
			set.addRange(from, end, fold)
			i += 1 + size
		}
	}
	if negated {
		set.invert()
	}
	return set, i + 1
}

// parseRipgrepClass parses the bracket expression at the start of p like
// ripgrep. It returns the bytes that the class matches, and its length. A
// backslash is an ordinary member, named classes do not exist, and an unclosed
// bracket matches itself (length 1). A reversed range makes the pattern
// invalid: the result is nil.
func parseRipgrepClass(p string) (set *byteSet, size int) {
	set = new(byteSet)
	i, negated := 1, false
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		negated = true
		i++
	}
	begins, inRange := -1, false // the first byte of a range that may follow or is open
	for first := true; ; first = false {
		if i >= len(p) {
			*set = byteSet{}
			set.add('[')
			return set, 1
		}
		c := p[i]
		i++
		switch {
		case c == ']' && !first:
			if inRange {
				set.add('-')
			}
			if negated {
				set.invert()
			}
			return set, i
		case c == '-' && !first && !inRange:
			inRange = true
			continue
		case inRange && int(c) < begins:
			return nil, 0
		case inRange:
			set.addRange(byte(begins), c, false)
		default:
			begins = int(c)
			set.add(c)
		}
		inRange = false
	}
}

// classByte returns one member of a class, which a backslash may precede, and
// its length in p; 0 if it is incomplete.
func classByte(p string) (byte, int) {
	if p[0] != '\\' {
		return p[0], 1
	}
	if len(p) < 2 {
		return 0, 0
	}
	return p[1], 2
}

// addNamed adds a class like [:alpha:] and returns its length. size is 0 if p
// does not start with a named class; known is false for an unknown name. As in
// git, "[::]" is an unknown class, without a name, and "[:]" is not a class.
func (s *byteSet) addNamed(p string, fold bool) (size int, known bool) {
	end := strings.IndexByte(p[2:], ']') + 2
	if end < 3 || p[end-1] != ':' {
		return 0, true
	}
	in := namedClass(p[2:end-1], fold)
	if in == nil {
		return end + 1, false
	}
	for c := 0; c < 128; c++ {
		if in(byte(c)) {
			s.add(byte(c))
		}
	}
	return end + 1, true
}

// namedClass returns the membership test of a POSIX class in ASCII, or nil for
// an unknown name. If fold is set, letters are in lower case.
func namedClass(name string, fold bool) func(byte) bool {
	isUpper := func(c byte) bool { return 'A' <= c && c <= 'Z' }
	isLower := func(c byte) bool { return 'a' <= c && c <= 'z' }
	isDigit := func(c byte) bool { return '0' <= c && c <= '9' }
	isAlnum := func(c byte) bool { return isUpper(c) || isLower(c) || isDigit(c) }
	switch name {
	case "alnum":
		return isAlnum
	case "alpha":
		return func(c byte) bool { return isUpper(c) || isLower(c) }
	case "blank":
		return func(c byte) bool { return c == ' ' || c == '\t' }
	case "cntrl":
		return func(c byte) bool { return c < ' ' || c == 0x7f }
	case "digit":
		return isDigit
	case "graph":
		return func(c byte) bool { return c > ' ' && c < 0x7f }
	case "lower":
		return isLower
	case "print":
		return func(c byte) bool { return c >= ' ' && c < 0x7f }
	case "punct":
		return func(c byte) bool { return c > ' ' && c < 0x7f && !isAlnum(c) }
	case "space":
		return func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
	case "upper":
		if fold {
			return isLower
		}
		return isUpper
	case "xdigit":
		return func(c byte) bool { return isDigit(c) || 'a' <= lowerASCII(c) && lowerASCII(c) <= 'f' }
	}
	return nil
}
