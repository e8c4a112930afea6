package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// maxGoParse bounds the Go source that is parsed, in bytes: a syntax tree needs
// about twenty times the memory of its text.
const maxGoParse = 2 << 20

// goSymbols returns the declarations of Go source, also with syntax errors.
// Declarations that the parser misses because of an error are found by regular
// expressions.
func goSymbols(text []byte) []symbol {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution|parser.AllErrors)
	var symbols []symbol
	if file != nil {
		lines := bytes.Split(text, []byte("\n"))
		for _, decl := range file.Decls {
			symbols = append(symbols, goDeclSymbols(set, lines, decl)...)
		}
	}
	if err == nil {
		return symbols
	}
	known := map[int]int{}
	for i, s := range symbols {
		known[s.Line] = i
	}
	for _, s := range languageOf("", ".go").findSymbols(text) {
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

// goDeclSymbols returns the symbols of one declaration; none for imports.
func goDeclSymbols(set *token.FileSet, lines [][]byte, decl ast.Decl) []symbol {
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
			name = receiverType(decl.Recv.List[0].Type) + "." + name
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

// receiverType returns the type's name in "*T", "T[K]" and similar expressions.
func receiverType(expr ast.Expr) string {
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
