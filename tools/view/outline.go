package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxOutline bounds the text that is searched for symbols, maxGoParse
	// the Go source that is parsed, in bytes: a syntax tree needs about
	// twenty times the memory of its text.
	maxOutline = 8 << 20
	maxGoParse = 2 << 20
)

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

// outline lists the symbols of a text in the order of their lines. The file
// name selects the language. The result is nil if the language is unknown or
// the text is too long.
func outline(name string, text []byte) []symbol {
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
		symbols = language.symbols(text)
	}
	slices.SortStableFunc(symbols, func(a, b symbol) int { return cmp.Compare(a.Line, b.Line) })
	nest(symbols)
	return symbols
}

// nest sets each symbol's depth from the ranges of the other symbols.
func nest(symbols []symbol) {
	var around []int // last lines of the enclosing symbols
	for i, s := range symbols {
		for len(around) > 0 && around[len(around)-1] < s.Line {
			around = around[:len(around)-1]
		}
		symbols[i].Depth = len(around)
		around = append(around, max(s.End, s.Line))
	}
}

// renderOutline writes the symbols as lines, with as many levels as fit into
// budget bytes, the top level first. It says how many symbols it left out.
func renderOutline(symbols []symbol, budget int) string {
	deepest := 0
	for _, s := range symbols {
		deepest = max(deepest, s.Depth)
	}
	for depth := min(deepest, 2); depth >= 0; depth-- {
		if text, left := outlineTo(symbols, depth, budget); left == 0 || depth == 0 {
			return text
		}
	}
	return ""
}

func outlineTo(symbols []symbol, depth, budget int) (text string, left int) {
	var out strings.Builder
	for _, s := range symbols {
		if s.Depth > depth {
			continue
		}
		line := fmt.Sprintf("%*s%d-%d  %s\n", 2*s.Depth, "", s.Line, s.End, clip(s.Text, 120))
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

// clip truncates a text to n bytes, without splitting characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// goSymbols parses Go source, also with syntax errors. Symbols that the parser
// misses because of an error are found by regular expressions.
func goSymbols(text []byte) []symbol {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution|parser.AllErrors)
	var symbols []symbol
	if file != nil {
		lines := bytes.Split(text, []byte("\n"))
		for _, decl := range file.Decls {
			symbols = append(symbols, goDecl(set, lines, decl)...)
		}
	}
	if err == nil {
		return symbols
	}
	known := map[int]int{}
	for i, s := range symbols {
		known[s.Line] = i
	}
	for _, s := range languageOf("", ".go").symbols(text) {
		if i, ok := known[s.Line]; !ok {
			symbols = append(symbols, s)
		} else if symbols[i].End < s.Line { // the error cut the declaration off
			symbols[i].End = s.End
		}
	}
	slices.SortStableFunc(symbols, func(a, b symbol) int { return cmp.Compare(a.Line, b.Line) })
	for i := range symbols {
		if i+1 < len(symbols) { // all are top level, so with a missing brace a symbol must not include the next one
			symbols[i].End = min(symbols[i].End, symbols[i+1].Start-1)
		}
		symbols[i].End = max(symbols[i].End, symbols[i].Line)
	}
	return symbols
}

func goDecl(set *token.FileSet, lines [][]byte, decl ast.Decl) []symbol {
	newSymbol := func(name, kind string, node ast.Node, doc *ast.CommentGroup) symbol {
		line := set.PositionFor(node.Pos(), false).Line
		s := symbol{Name: name, Kind: kind, Line: line, Start: line, End: set.PositionFor(node.End(), false).Line}
		if doc != nil {
			s.Start = set.PositionFor(doc.Pos(), false).Line
		}
		if line >= 1 && line <= len(lines) {
			s.Text = strings.TrimSpace(strings.ToValidUTF8(string(lines[line-1]), "\uFFFD"))
		}
		return s
	}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		name := decl.Name.Name
		if decl.Recv != nil && len(decl.Recv.List) > 0 {
			name = receiver(decl.Recv.List[0].Type) + "." + name
		}
		return []symbol{newSymbol(name, "func", decl, decl.Doc)}
	case *ast.GenDecl:
		if decl.Tok == token.IMPORT {
			return nil
		}
		var symbols []symbol
		for _, spec := range decl.Specs {
			node, doc := ast.Node(spec), decl.Doc
			if !decl.Lparen.IsValid() {
				node = decl
			}
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Doc != nil {
					doc = spec.Doc
				}
				symbols = append(symbols, newSymbol(spec.Name.Name, "type", node, doc))
			case *ast.ValueSpec:
				if doc = spec.Doc; !decl.Lparen.IsValid() {
					doc = decl.Doc
				}
				for _, name := range spec.Names {
					if name.Name != "_" {
						symbols = append(symbols, newSymbol(name.Name, decl.Tok.String(), node, doc))
					}
				}
			}
		}
		return symbols
	}
	return nil
}

// receiver returns the type's name in "*T", "T[K]" and similar expressions.
func receiver(expr ast.Expr) string {
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return "?"
		}
	}
}
