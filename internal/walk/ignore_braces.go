package walk

// expandBraces returns the alternatives of a pattern with {a,b}, and the
// pattern itself if it has no braces. It returns nil if braces do not pair up
// or there are more than maxAlternatives. It subtracts the size of the
// alternatives from budget, and returns nil if that becomes negative.
func expandBraces(p string, budget *int) []string {
	done, todo := []string(nil), []string{p}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		open, ends, ok := firstBraceGroup(p)
		switch {
		case !ok || len(done)+len(todo) > maxAlternatives:
			return nil
		case open < 0:
			done, todo = append(done, p), todo[:len(todo)-1]
		default:
			all := alternatives(p, open, ends)
			for _, one := range all {
				*budget -= len(one) + expansionCost
			}
			if *budget < 0 {
				return nil
			}
			todo = append(todo[:len(todo)-1], all...)
		}
	}
	return done
}

// firstBraceGroup finds the first group: the index of its opening brace (-1: no
// group) and the ends of its alternatives. ok is false if braces or brackets do
// not pair up.
func firstBraceGroup(p string) (open int, ends []int, ok bool) {
	depth, unclosed := 0, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			_, size := parseRipgrepClass(p[i:])
			if size == 1 {
				unclosed++
			}
			if size == 0 || unclosed > maxUnclosed {
				return 0, nil, false
			}
			i += size - 1
		case '{':
			if depth == 0 {
				open = i
			}
			depth++
		case ',':
			if depth == 1 {
				ends = append(ends, i)
			}
		case '}':
			depth--
			switch {
			case depth < 0:
				return 0, nil, false
			case depth == 0:
				return open, append(ends, i), true
			}
		}
	}
	return -1, nil, depth == 0
}

// alternatives returns p with the group replaced by each alternative. Empty
// alternatives are skipped, unless there is only one.
func alternatives(p string, open int, ends []int) []string {
	var all []string
	start := open + 1
	for _, end := range ends {
		if start < end || len(ends) == 1 {
			all = append(all, p[:open]+p[start:end]+p[ends[len(ends)-1]+1:])
		}
		start = end + 1
	}
	return all
}
