package search

import "slices"

// extractor computes the literal sets of a pattern.
type extractor struct {
	crlf bool // \n in the pattern also matches \r\n, and \r only if no \n follows
}

// extract returns the literal sets of a node.
func (x extractor) extract(n *regexNode) literalSets {
	switch n.op {
	case opSet:
		return x.extractSet(n.set)
	case opConcat:
		return x.extractConcat(n.subs)
	case opAlternate:
		if len(n.subs) > 4*maxAlternatives { // too many to look for
			return anyText()
		}
		total := x.extract(n.subs[0])
		for _, sub := range n.subs[1:] {
			total = total.either(x.extract(sub))
		}
		return total
	case opRepeat:
		return x.extractRepeat(n)
	}
	return literalSets{exact: []Literal{{}}}
}

// extractConcat returns the literal sets of parts one after the other. It joins
// runs of parts that match a single text at once: joining them one by one would
// copy a long pattern for each of its characters.
func (x extractor) extractConcat(subs []*regexNode) literalSets {
	var total *literalSets
	add := func(l literalSets) {
		if total != nil {
			l = total.followedBy(l)
		}
		total = &l
	}
	var run []Literal
	flush := func() {
		if len(run) > 0 {
			add(literalSets{exact: []Literal{joinLiterals(run...)}})
			run = run[:0]
		}
	}
	for _, sub := range subs {
		l := x.extract(sub)
		if len(l.exact) == 1 {
			run = append(run, l.exact[0])
			continue
		}
		flush()
		add(l)
	}
	flush()
	return *total
}

// extractRepeat returns the literal sets of a repetition.
func (x extractor) extractRepeat(n *regexNode) literalSets {
	const unrolled = 4
	if n.max == 0 {
		return literalSets{exact: []Literal{{}}}
	}
	sub := x.extract(n.subs[0])
	if n.min == 0 && n.max == 1 {
		return sub.either(literalSets{exact: []Literal{{}}})
	}
	if n.min == 0 {
		return anyText()
	}
	total, copies := sub, min(n.min, unrolled)
	if len(sub.exact) == 1 {
		one := sub.exact[0]
		copies = min(n.min, max(unrolled, maxSetBytes/max(len(one.Text), 1)))
		total = literalSets{exact: []Literal{joinLiterals(slices.Repeat([]Literal{one}, copies)...)}}
	} else {
		for range copies - 1 {
			total = total.followedBy(sub)
		}
	}
	if n.max == n.min && n.min == copies {
		return total
	}
	// Further repetitions may be in between; the end is known again.
	total = total.followedBy(anyText())
	return total.followedBy(sub)
}

// extractSet returns the members of a class as literals, or anyText for a large
// class. Letters that differ only in case become one folded literal.
func (x extractor) extractSet(set charset) literalSets {
	if set.sizeUpTo(4*maxClassMembers) >= 4*maxClassMembers || len(set) == 0 {
		return anyText()
	}
	out := literalSets{exact: []Literal{}}
	for _, s := range set {
		for r := s.lo; r <= s.hi; r++ {
			switch {
			case r >= rawBase:
				out.exact = append(out.exact, Literal{Text: []byte{byte(r - rawBase)}})
			case r >= 'A' && r <= 'Z' && set.has(r+32), r == longS && set.has('s'), r == kelvin && set.has('k'):
			case r >= 'a' && r <= 'z' && (set.has(r-32) || r == 's' && set.has(longS) || r == 'k' && set.has(kelvin)):
				out.exact = append(out.exact, Literal{Text: []byte{byte(r)}, Fold: true, overmatches: !set.has(r - 32)})
			case x.crlf && r == '\n':
				out.exact = append(out.exact, Literal{Text: []byte("\n")}, Literal{Text: []byte("\r\n")})
			default:
				out.exact = append(out.exact, Literal{Text: []byte(string(r)), overmatches: x.crlf && r == '\r'})
			}
		}
	}
	if len(out.exact) > maxClassMembers {
		return anyText()
	}
	return out
}

// joinLiterals concatenates the parts. If one part is folded, the result is
// folded.
func joinLiterals(parts ...Literal) Literal {
	var out Literal
	size, letters := 0, false // letters that are not folded
	for _, part := range parts {
		size += len(part.Text)
		out.Fold = out.Fold || part.Fold
		out.overmatches = out.overmatches || part.overmatches
		letters = letters || !part.Fold && hasASCIILetter(part.Text)
	}
	out.Text = make([]byte, 0, size)
	for _, part := range parts {
		out.Text = append(out.Text, part.Text...)
	}
	if out.Fold && letters {
		out.overmatches = true
		lowerASCIIInPlace(out.Text)
	}
	return out
}

// hasASCIILetter reports whether text has an ASCII letter.
func hasASCIILetter(text []byte) bool {
	return slices.ContainsFunc(text, func(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' })
}

// lowerASCIIInPlace changes ASCII letters of text to lower case.
func lowerASCIIInPlace(text []byte) {
	for i, b := range text {
		text[i] = lowerASCIIByte(b)
	}
}

// crossProduct returns every member of a followed by every member of b, or nil
// if these would be too many.
func crossProduct(a, b []Literal) []Literal {
	total := 0
	for _, x := range a {
		for _, y := range b {
			total += len(x.Text) + len(y.Text)
		}
	}
	if len(a)*len(b) > maxAlternatives && len(a) != 1 && len(b) != 1 || len(a)*len(b) > 4*maxAlternatives || total > maxSetBytes && len(a)*len(b) > 1 {
		return nil
	}
	out := make([]Literal, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, joinLiterals(x, y))
		}
	}
	return withoutDuplicates(out)
}
