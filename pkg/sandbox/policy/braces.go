package policy

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// expandBraces returns the words, each as its parts, that brace expansion makes
// of a word. ok is false if there are more than maxBraceWords words or
// maxOpenBraces braces, or a sequence is not understood.
func expandBraces(word *syntax.Word) (words [][]syntax.WordPart, ok bool) {
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

// expandBraceParts returns every combination of the alternatives of parts. ok
// is false if they are too many or not known.
func expandBraceParts(parts []syntax.WordPart) (words [][]syntax.WordPart, ok bool) {
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

// braceAlternatives returns what one brace expression expands to. ok is false
// if that is too much or not known.
func braceAlternatives(brace *syntax.BraceExp) (alternatives [][]syntax.WordPart, ok bool) {
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

// sequenceAlternatives expands {1..9..2} and {a..e}. ok is false for too many
// values and for other forms, such as numbers with leading zeros.
func sequenceAlternatives(brace *syntax.BraceExp) (alternatives [][]syntax.WordPart, ok bool) {
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
