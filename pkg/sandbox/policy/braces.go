package policy

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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
	return expandBraceParts(copied.Parts)
}

func expandBraceParts(parts []syntax.WordPart) ([][]syntax.WordPart, bool) {
	results := [][]syntax.WordPart{nil}
	for _, part := range parts {
		options := [][]syntax.WordPart{{part}}
		if brace, ok := part.(*syntax.BraceExp); ok {
			if options, ok = braceAlternatives(brace); !ok {
				return nil, false
			}
		}
		if len(results)*len(options) > maxBraceWords {
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

func braceAlternatives(brace *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	if brace.Sequence {
		return sequenceAlternatives(brace)
	}
	var options [][]syntax.WordPart
	for _, elem := range brace.Elems {
		more, ok := expandBraceParts(elem.Parts)
		if !ok || len(options)+len(more) > maxBraceWords {
			return nil, false
		}
		options = append(options, more...)
	}
	return options, true
}

// sequence expands {1..9..2} and {a..e}; numbers written with leading zeros
// are left unknown.
func sequenceAlternatives(brace *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	if len(brace.Elems) < 2 {
		return nil, false
	}
	first, last := brace.Elems[0].Lit(), brace.Elems[1].Lit()
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	letters := err1 != nil || err2 != nil
	if letters {
		if len(first) != 1 || len(last) != 1 || !isLetterByte(first[0]) || !isLetterByte(last[0]) {
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
	if step <= 0 || distance/uint64(step) >= maxBraceWords {
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
