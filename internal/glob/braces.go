package glob

// brace is one brace of a pair that pairBraces has found.
type brace struct {
	hasAlternatives bool // the pair contains a comma, so it has alternatives
}

// pairBraces returns, by their index, the opening and closing braces that belong
// together. Braces that are escaped, in a class, or without a partner are left out.
func pairBraces(text string) map[int]brace {
	found := map[int]brace{}
	type open struct {
		at    int
		comma bool
	}
	var stack []open
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			if end, reason := classEnd(text, i); reason == "" {
				i = end - 1
			}
		case '{':
			stack = append(stack, open{at: i})
		case ',':
			if len(stack) > 0 {
				stack[len(stack)-1].comma = true
			}
		case '}':
			if len(stack) > 0 {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				found[top.at], found[i] = brace{top.comma}, brace{top.comma}
			}
		}
	}
	return found
}

// expandBraces returns the alternatives of a valid pattern. ok is false if
// there are more than limit.
func expandBraces(text string, limit int) (alternatives []string, ok bool) {
	open, cuts, end := firstBraceGroup(text)
	if open < 0 {
		return []string{text}, limit >= 1
	}
	var all []string
	from := open + 1
	for _, cut := range append(cuts, end) {
		more, ok := expandBraces(text[:open]+text[from:cut]+text[end+1:], limit-len(all))
		if !ok {
			return nil, false
		}
		all = append(all, more...)
		from = cut + 1
	}
	return all, true
}

// firstBraceGroup returns the indices of the first opening brace, of the commas
// between its alternatives, and of its closing brace. open is -1 if there are
// no braces.
func firstBraceGroup(text string) (open int, commas []int, end int) {
	open = -1
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			if end, reason := classEnd(text, i); reason == "" {
				i = end - 1
			}
		case '{':
			if depth == 0 {
				open = i
			}
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth--; depth == 0 {
				return open, commas, i
			}
		}
	}
	return -1, nil, 0
}
