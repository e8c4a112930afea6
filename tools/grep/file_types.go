package main

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// typeList is the output of ripgrep 15.0.0 for --type-list: a line "name: glob,
// glob" for each type.
//
//go:embed file_types.txt
var typeList string

// allTypes is the name of the type of all types together, as in ripgrep.
const allTypes = "all"

// typeGlobs returns the file name globs of a ripgrep type, and INVALID_PARAMS
// for an unknown type.
func typeGlobs(name string) ([]*glob.Glob, error) {
	var globs []*glob.Glob
	for line := range strings.Lines(typeList) {
		known, list, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if known != name && name != allTypes {
			continue
		}
		for _, text := range splitList(list) {
			g, err := glob.Compile(text)
			if err != nil {
				return nil, err
			}
			globs = append(globs, g)
		}
	}
	if len(globs) == 0 {
		return nil, unknownTypeError(name)
	}
	return globs, nil
}

// splitList splits globs at commas outside braces.
func splitList(list string) []string {
	var parts []string
	depth, from := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(list[from:i]))
				from = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(list[from:]))
}

// maxTypeSuggestions bounds the types that an error suggests.
const maxTypeSuggestions = 5

// unknownTypeError returns the INVALID_PARAMS error, with suggestions: first the types of
// files with that extension, then types with similar names.
func unknownTypeError(name string) error {
	plain := strings.ToLower(strings.TrimLeft(strings.TrimSpace(name), "*."))
	var near, far []string
	for line := range strings.Lines(typeList) {
		known, list, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case known == plain, slices.Contains(splitList(list), "*."+plain):
			near = append(near, known)
		case len(plain) > 1 && (strings.HasPrefix(known, plain) || strings.HasPrefix(plain, known) && len(known) > 1), differByOneEdit(plain, known):
			far = append(far, known)
		}
	}
	near = append(near, far...)
	if len(near) == 0 {
		return toolerr.New(toolerr.InvalidParams, `type: unknown file type %q; use ripgrep's names such as go, py, js, ts, rust, md, or use glob: "*.%s"`,
			pathname.Escape(name), pathname.Escape(plain))
	}
	return toolerr.New(toolerr.InvalidParams, `type: unknown file type %q; did you mean %s? (or use glob: "*.%s")`,
		pathname.Escape(name), strings.Join(near[:min(len(near), maxTypeSuggestions)], ", "), pathname.Escape(plain))
}

// differByOneEdit reports whether two words of at least three letters differ in
// exactly one letter: changed, added, removed, or swapped with the next.
func differByOneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 3 || len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	swapped := i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	return i < len(a) && a[i+1:] == b[i+1:] || swapped
}
