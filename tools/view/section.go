package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/internal/editdistance"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// section is a part of a file that was requested by name.
type section struct {
	Name        string // of the heading or symbol
	First, Last int    // line numbers, from 1
	// Note tells how the name was interpreted if it did not match exactly,
	// and lists other sections with the same name; "": none.
	Note string
}

// findSection returns the heading or symbol named want: as it is written, with or
// without "#" marks, as "Type.Method" or its last part, ignoring case, as a link's
// anchor, or by a substring that only one name has. name is the file's. It returns
// NOT_FOUND, with a list of the sections, if nothing matches, INVALID_PARAMS for an
// empty want, and TOO_LARGE above maxOutline.
func findSection(name string, text []byte, want string) (section, error) {
	if len(text) > maxOutline {
		return section{}, toolerr.New(toolerr.TooLarge, "%s has %d bytes, and section works up to %d; use offset and limit", name, len(text), maxOutline)
	}
	symbols := findSymbols(name, text)
	asked := strings.TrimSpace(want)
	level := len(asked) - len(strings.TrimLeft(asked, "#"))
	bare := strings.TrimSpace(asked[level:])
	if bare == "" {
		return section{}, toolerr.New(toolerr.InvalidParams, "section is empty: give a heading or a symbol of %s", name)
	}
	if level > 0 { // "## Install" prefers a heading of that level
		exact := matchingSymbols(symbols, func(s symbol) bool { return strings.TrimRight(s.Text, " #") == strings.TrimRight(asked, " #") })
		if len(exact) > 0 {
			return newSection(exact, "")
		}
	}
	ladder := []func(s symbol) bool{
		func(s symbol) bool { return s.Name == bare || s.Text == asked },
		func(s symbol) bool { return unqualified(s.Name) == bare || s.Kind+" "+s.Name == bare },
		func(s symbol) bool {
			return strings.EqualFold(s.Name, bare) || strings.EqualFold(unqualified(s.Name), bare)
		},
		func(s symbol) bool { return linkAnchor(s.Name) == linkAnchor(bare) && linkAnchor(bare) != "" },
		func(s symbol) bool {
			return unqualified(s.Name) == unqualified(bare) && strings.Contains(bare, unqualified(s.Name)) && isQualifiedBy(symbols, s, bare)
		},
	}
	for _, matches := range ladder {
		if found := matchingSymbols(symbols, matches); len(found) > 0 {
			return newSection(found, bare)
		}
	}
	if part := matchingSymbols(symbols, func(s symbol) bool { return strings.Contains(strings.ToLower(s.Name), strings.ToLower(bare)) }); len(part) == 1 {
		return newSection(part, bare)
	}
	return section{}, noSectionError(name, text, symbols, bare)
}

// matchingSymbols returns the symbols for which matches returns true.
func matchingSymbols(symbols []symbol, matches func(symbol) bool) (found []symbol) {
	for _, s := range symbols {
		if matches(s) {
			found = append(found, s)
		}
	}
	return found
}

// newSection returns the first of several symbols as a section. Its note has
// the lines of the others, and the name if it differs from asked.
func newSection(found []symbol, asked string) (section, error) {
	s := found[0]
	result := section{Name: s.Name, First: max(1, s.Start), Last: max(s.Line, s.End)}
	var notes []string
	if asked != "" && s.Name != asked && unqualified(s.Name) != asked {
		notes = append(notes, fmt.Sprintf("section %q is the closest to %q", truncate(s.Name, 80), truncate(asked, 80)))
	}
	if len(found) > 1 {
		var lines []string
		for _, other := range found[1:min(len(found), 9)] {
			lines = append(lines, fmt.Sprint(other.Line))
		}
		notes = append(notes, fmt.Sprintf("%d sections have this name; others at lines %s", len(found), strings.Join(lines, ", ")))
	}
	result.Note = strings.Join(notes, "; ")
	return result, nil
}

// unqualified returns "Method" for "Type.Method", "Type::method" and
// "Type#method". A heading, which has spaces, is returned unchanged.
func unqualified(name string) string {
	if strings.ContainsAny(name, " \t") {
		return name
	}
	return name[strings.LastIndexAny(name, ".:#")+1:]
}

// isQualifiedBy reports whether s is inside a symbol named by the qualifier of
// asked ("Class" in "Class.method").
func isQualifiedBy(symbols []symbol, s symbol, asked string) bool {
	owner := strings.TrimRight(strings.TrimSuffix(asked, unqualified(asked)), ".:#")
	if owner == "" {
		return false
	}
	return slices.ContainsFunc(symbols, func(outer symbol) bool {
		return outer.Line < s.Line && outer.End >= s.End && strings.EqualFold(unqualified(outer.Name), unqualified(owner))
	})
}

// linkAnchor returns a heading as used in a link: lower case, with words joined
// by "-".
func linkAnchor(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-")
}

// noSectionError returns the NOT_FOUND error that lists the sections, with similar names
// first.
func noSectionError(name string, text []byte, symbols []symbol, asked string) error {
	lines := strings.Count(string(text), "\n")
	if len(text) > 0 && text[len(text)-1] != '\n' {
		lines++
	}
	if len(symbols) == 0 {
		return toolerr.New(toolerr.NotFound, "no section %q: no headings or symbols found in %s (%d lines); use offset and limit", truncate(asked, 80), name, lines)
	}
	message := fmt.Sprintf("no section %q in %s (%d lines).", truncate(asked, 80), name, lines)
	if near := similarNames(symbols, asked); len(near) > 0 {
		message += " Did you mean " + strings.Join(near, ", ") + "?"
	}
	message += " Sections:\n" + renderOutline(symbols, 4000)
	return toolerr.New(toolerr.NotFound, "%s", strings.TrimRight(message, "\n"))
}

// similarNames returns up to three names similar to asked, in quotes.
func similarNames(symbols []symbol, asked string) []string {
	type near struct {
		name     string
		distance int
	}
	var all []near
	seen := map[string]bool{}
	for _, s := range symbols[:min(len(symbols), 2000)] {
		a, b := strings.ToLower(truncate(unqualified(s.Name), 60)), strings.ToLower(truncate(unqualified(asked), 60))
		most := max(1, len(b)/3)
		d := editdistance.Between(a, b, most)
		if strings.Contains(a, b) {
			d = 1
		}
		if !seen[s.Name] && d <= most {
			seen[s.Name] = true
			all = append(all, near{fmt.Sprintf("%q", truncate(s.Name, 60)), d})
		}
	}
	slices.SortStableFunc(all, func(x, y near) int { return cmp.Compare(x.distance, y.distance) })
	var names []string
	for _, n := range all[:min(3, len(all))] {
		names = append(names, n.name)
	}
	return names
}
