package search

import "slices"

// extractor computes the literals of a pattern.
type extractor struct {
	crlf bool // \n in the pattern also matches \r\n, and \r only if no \n follows
}

func (x extractor) literals(n *regexNode) literals {
	switch n.op {
	case opSet:
		return x.ofSet(n.set)
	case opConcat:
		return x.ofConcat(n.subs)
	case opAlternate:
		if len(n.subs) > 4*maxAlternatives { // too many to look for
			return anything()
		}
		total := x.literals(n.subs[0])
		for _, sub := range n.subs[1:] {
			total = total.or(x.literals(sub))
		}
		return total
	case opRepeat:
		return x.ofRepeat(n)
	}
	return literals{exact: []Literal{{}}}
}

// ofConcat joins runs of parts that match a single text at once: joining them
// one by one would copy a long pattern for each of its characters.
func (x extractor) ofConcat(subs []*regexNode) literals {
	var total *literals
	add := func(l literals) {
		if total != nil {
			l = total.then(l)
		}
		total = &l
	}
	var run []Literal
	flush := func() {
		if len(run) > 0 {
			add(literals{exact: []Literal{join(run...)}})
			run = run[:0]
		}
	}
	for _, sub := range subs {
		l := x.literals(sub)
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

func (x extractor) ofRepeat(n *regexNode) literals {
	const unrolled = 4
	if n.max == 0 {
		return literals{exact: []Literal{{}}}
	}
	sub := x.literals(n.subs[0])
	if n.min == 0 && n.max == 1 {
		return sub.or(literals{exact: []Literal{{}}})
	}
	if n.min == 0 {
		return anything()
	}
	total, copies := sub, min(n.min, unrolled)
	if len(sub.exact) == 1 {
		one := sub.exact[0]
		copies = min(n.min, max(unrolled, maxSetBytes/max(len(one.Text), 1)))
		total = literals{exact: []Literal{join(slices.Repeat([]Literal{one}, copies)...)}}
	} else {
		for range copies - 1 {
			total = total.then(sub)
		}
	}
	if n.max == n.min && n.min == copies {
		return total
	}
	// Further repetitions may be in between; the end is known again.
	total = total.then(anything())
	return total.then(sub)
}

// ofSet returns the members of a class; letters that differ only in case become
// one folded literal.
func (x extractor) ofSet(set charset) literals {
	if set.size(4*maxClass) >= 4*maxClass || len(set) == 0 {
		return anything()
	}
	out := literals{exact: []Literal{}}
	for _, s := range set {
		for r := s.lo; r <= s.hi; r++ {
			switch {
			case r >= rawBase:
				out.exact = append(out.exact, Literal{Text: []byte{byte(r - rawBase)}})
			case r >= 'A' && r <= 'Z' && set.has(r+32), r == longS && set.has('s'), r == kelvin && set.has('k'):
			case r >= 'a' && r <= 'z' && (set.has(r-32) || r == 's' && set.has(longS) || r == 'k' && set.has(kelvin)):
				out.exact = append(out.exact, Literal{Text: []byte{byte(r)}, Fold: true, loose: !set.has(r - 32)})
			case x.crlf && r == '\n':
				out.exact = append(out.exact, Literal{Text: []byte("\n")}, Literal{Text: []byte("\r\n")})
			default:
				out.exact = append(out.exact, Literal{Text: []byte(string(r)), loose: x.crlf && r == '\r'})
			}
		}
	}
	if len(out.exact) > maxClass {
		return anything()
	}
	return out
}

// join concatenates the parts. If one part is folded, the result is.
func join(parts ...Literal) Literal {
	var out Literal
	size, letters := 0, false // letters that are not folded
	for _, part := range parts {
		size += len(part.Text)
		out.Fold = out.Fold || part.Fold
		out.loose = out.loose || part.loose
		letters = letters || !part.Fold && hasLetter(part.Text)
	}
	out.Text = make([]byte, 0, size)
	for _, part := range parts {
		out.Text = append(out.Text, part.Text...)
	}
	if out.Fold && letters {
		out.loose = true
		lowerASCII(out.Text)
	}
	return out
}

func hasLetter(text []byte) bool {
	return slices.ContainsFunc(text, func(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' })
}

func lowerASCII(text []byte) {
	for i, b := range text {
		text[i] = lowerByte(b)
	}
}

// product returns every member of a followed by every member of b, or nil if
// these would be too many.
func product(a, b []Literal) []Literal {
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
			out = append(out, join(x, y))
		}
	}
	return distinct(out)
}
