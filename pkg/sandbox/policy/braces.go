package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// ansiC decodes the inside of $'…' as bash does; a NUL ends it.
func ansiC(text string) string {
	var out []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		c := text[i]
		if at := strings.IndexByte("abeEfnrtv", c); at >= 0 {
			out = append(out, "\a\b\x1b\x1b\f\n\r\t\v"[at])
			continue
		}
		switch {
		case c == '\\' || c == '\'' || c == '"' || c == '?':
			out = append(out, c)
		case c == 'c' && i+1 < len(text):
			i++
			if text[i] == '\\' && i+1 < len(text) && text[i+1] == '\\' {
				i++
			}
			out = append(out, text[i]&0x1f)
		case c == 'x' || c == 'u' || c == 'U' || c >= '0' && c <= '7':
			var size int
			out, size = numeric(out, text[i:])
			i += size - 1
		default:
			out = append(out, '\\', c)
		}
		if len(out) > 0 && out[len(out)-1] == 0 {
			return string(out[:len(out)-1])
		}
	}
	return string(out)
}

// numeric decodes the escape that text begins with (after the backslash) and
// returns how much of it that is.
func numeric(out []byte, text string) ([]byte, int) {
	base, skip, most := 16, 1, 2
	switch text[0] {
	case 'u':
		most = 4
	case 'U':
		most = 8
	case 'x':
	default:
		base, skip, most = 8, 0, 3
	}
	end := skip
	for end < len(text) && end-skip < most && digit(text[end]) < base {
		end++
	}
	if end == skip {
		return append(out, '\\', text[0]), 1
	}
	n, _ := strconv.ParseUint(text[skip:end], base, 32)
	if most <= 3 {
		return append(out, byte(n)), end
	}
	return utf8.AppendRune(out, rune(n)), end
}

func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return 99
}

// expandBraces returns the words that a word's braces make of it, or false
// where they, or the braces, are too many.
func expandBraces(word *syntax.Word) ([][]syntax.WordPart, bool) {
	open := 0
	for _, part := range word.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			open += strings.Count(lit.Value, "{")
		}
	}
	if open > maxOpenBraces { // SplitBraces takes time with its cube
		return nil, false
	}
	copied := &syntax.Word{Parts: append([]syntax.WordPart(nil), word.Parts...)}
	if !syntax.SplitBraces(copied) {
		return [][]syntax.WordPart{word.Parts}, true
	}
	return braces(copied.Parts)
}

func braces(parts []syntax.WordPart) ([][]syntax.WordPart, bool) {
	results := [][]syntax.WordPart{nil}
	for _, part := range parts {
		options := [][]syntax.WordPart{{part}}
		if brace, ok := part.(*syntax.BraceExp); ok {
			if options, ok = braceOptions(brace); !ok {
				return nil, false
			}
		}
		if len(results)*len(options) > maxBraces {
			return nil, false
		}
		next := make([][]syntax.WordPart, 0, len(results)*len(options))
		for _, result := range results {
			for _, option := range options {
				next = append(next, append(result[:len(result):len(result)], option...))
			}
		}
		results = next
	}
	return results, true
}

func braceOptions(brace *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	if brace.Sequence {
		return sequence(brace)
	}
	var options [][]syntax.WordPart
	for _, elem := range brace.Elems {
		more, ok := braces(elem.Parts)
		if !ok || len(options)+len(more) > maxBraces {
			return nil, false
		}
		options = append(options, more...)
	}
	return options, true
}

// sequence expands {1..9..2} and {a..e}; numbers written with leading zeros
// are left unknown.
func sequence(brace *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	if len(brace.Elems) < 2 {
		return nil, false
	}
	first, last := brace.Elems[0].Lit(), brace.Elems[1].Lit()
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	letters := err1 != nil || err2 != nil
	if letters {
		if len(first) != 1 || len(last) != 1 || !letter(first[0]) || !letter(last[0]) {
			return nil, false
		}
		from, to = int(first[0]), int(last[0])
	} else if strconv.Itoa(from) != first || strconv.Itoa(to) != last {
		return nil, false
	}
	step := 1
	if len(brace.Elems) > 2 {
		if n, err := strconv.Atoi(brace.Elems[2].Lit()); err == nil && n != 0 {
			step = max(n, -n)
		}
	}
	distance := uint64(max(from, to)) - uint64(min(from, to))
	if step <= 0 || distance/uint64(step) >= maxBraces {
		return nil, false
	}
	if from > to {
		step = -step
	}
	var options [][]syntax.WordPart
	for i := range int(distance/uint64(max(step, -step))) + 1 {
		n := from + i*step
		text := strconv.Itoa(n)
		if letters {
			text = "\\" + string(rune(n)) // bash makes no glob of it
		}
		options = append(options, []syntax.WordPart{&syntax.Lit{Value: text}})
	}
	return options, true
}
