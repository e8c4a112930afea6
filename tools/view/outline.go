package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// maxOutline bounds the text that is searched for symbols, in bytes.
const maxOutline = 8 << 20

// symbol is a named part of a file: a declaration or a heading.
type symbol struct {
	Name string // "Serve", "Server.Serve" for a Go method, a heading's text
	Kind string // "func", "type", "class", "heading", "key", …
	Text string // declaring line, trimmed
	Line int    // line number of Text, from 1
	// Start and End are the first and last line, including comments and
	// decorators above the declaration.
	Start, End int
	Depth      int // number of enclosing symbols; 0 is top level
}

// findSymbols returns the symbols of a text in the order of their lines. The
// file name selects the language. The result is nil if the language is unknown
// or the text is longer than maxOutline.
func findSymbols(name string, text []byte) []symbol {
	if len(text) > maxOutline {
		return nil
	}
	base := strings.ToLower(filepath.Base(name))
	ext := filepath.Ext(base)
	var symbols []symbol
	switch {
	case ext == ".go" && len(text) <= maxGoParse:
		symbols = goSymbols(text)
	case headingMarks[ext] != "":
		symbols = headingSymbols(text, headingMarks[ext])
	default:
		language := languageOf(base, ext)
		if language == nil {
			return nil
		}
		symbols = language.findSymbols(text)
	}
	slices.SortStableFunc(symbols, func(a, b symbol) int { return cmp.Compare(a.Line, b.Line) })
	setDepths(symbols)
	return symbols
}

// setDepths sets each symbol's depth from the ranges of the other symbols,
// which are in the order of their lines.
func setDepths(symbols []symbol) {
	var around []int // last lines of the enclosing symbols
	for i, s := range symbols {
		for len(around) > 0 && around[len(around)-1] < s.Line {
			around = around[:len(around)-1]
		}
		symbols[i].Depth = len(around)
		around = append(around, max(s.End, s.Line))
	}
}

// renderOutline returns the symbols as lines, with as many levels as fit into
// budget bytes, the top level first. The last line tells how many symbols were
// left out.
func renderOutline(symbols []symbol, budget int) string {
	deepest := 0
	for _, s := range symbols {
		deepest = max(deepest, s.Depth)
	}
	for depth := min(deepest, 2); depth >= 0; depth-- {
		if text, left := renderToDepth(symbols, depth, budget); left == 0 || depth == 0 {
			return text
		}
	}
	return ""
}

// renderToDepth is renderOutline for the symbols down to a depth. left is the
// number of these that did not fit.
func renderToDepth(symbols []symbol, depth, budget int) (text string, left int) {
	var out strings.Builder
	for _, s := range symbols {
		if s.Depth > depth {
			continue
		}
		line := fmt.Sprintf("%*s%d-%d  %s\n", 2*s.Depth, "", s.Line, s.End, truncate(s.Text, 120))
		if left > 0 || out.Len()+len(line) > budget {
			left++
			continue
		}
		out.WriteString(line)
	}
	if left > 0 {
		fmt.Fprintf(&out, "(%d more symbols)\n", left)
	}
	return out.String(), left
}

// truncate returns s, cut to at most n bytes between characters and with an
// ellipsis if it is longer.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// sortedKeys returns the keys of m, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
