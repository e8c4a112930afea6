// Package glob matches slash-separated paths against glob patterns, many
// of them and without allocating.
//
// The syntax is that of doublestar v4: * ? [class] [^class] {a,b} \x, and **
// as a whole path element for any number of elements, none included. Paths
// are relative to the directory that is searched. doublestar does the matching,
// unless the beginning and the last element of a path already decide. Beyond
// that:
//
//   - A pattern without a slash matches at any depth, as in a .gitignore.
//   - A slash at its end makes it match directories only, one at its
//     beginning ties it to the top.
//   - "foo/**" matches all that is below foo, and foo itself if that is a
//     directory.
//   - A pattern that reads as a plain name is found as such: "[id].tsx" matches
//     the file of that very name besides "i.tsx" and "d.tsx", and so does
//     "{{name}}.txt".
//   - A class is read as bash reads it: "[]a]" has a bracket, "[[:upper:]]" the
//     capital letters of ASCII. It never matches a slash.
//   - ".." is refused: what is searched does not depend on the pattern.
package glob

import (
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The bounds of a pattern: they keep the cost of one path small.
const (
	maxLength       = 4096
	maxAlternatives = 512
)

// Glob is a compiled pattern. It is immutable and safe for concurrent use.
type Glob struct {
	source string
	alts   []alternative
	prefix []string
	fold   bool
	fault  error
}

// Compile reads a pattern. A pattern that is no valid glob but may be a plain
// name ("a[.txt") compiles as that name; Fault then says where it breaks as a
// glob. Errors are BAD_PATTERN, and OUTSIDE_ROOT for "..".
func Compile(pattern string) (*Glob, error) { return compile(pattern, false) }

// CompileFold is Compile for a pattern that matches whatever the case of the
// letters. It is slower: it allocates for each path.
func CompileFold(pattern string) (*Glob, error) { return compile(pattern, true) }

func compile(pattern string, fold bool) (*Glob, error) {
	if len(pattern) > maxLength {
		return nil, toolerr.New(toolerr.BadPattern, "pattern of %d bytes is too long: at most %d", len(pattern), maxLength)
	}
	if strings.ContainsRune(pattern, 0) {
		return nil, toolerr.New(toolerr.BadPattern, "pattern contains a NUL byte, which no path can")
	}
	g := &Glob{source: pattern, fold: fold}
	text := Slashes(pattern)
	if fold {
		text = strings.ToLower(text)
	}
	text, anchored, dirOnly := normalise(text)
	if text == "" {
		return nil, toolerr.New(toolerr.BadPattern, `pattern %q names no path: use "**" for everything`, pattern)
	}
	if !anchored && !strings.Contains(text, "/") {
		text = "**/" + text
	}
	read := scan(text)
	g.fault = read.fault(pattern)
	var texts []string
	if g.fault == nil && !read.parted {
		texts = []string{text}
	}
	if read.plain != text {
		texts = append(texts, read.plain)
	}
	for _, text := range texts {
		if err := g.add(text, dirOnly); err != nil {
			return nil, err
		}
	}
	g.prefix = commonPrefix(g.alts)
	return g, nil
}

// add compiles the alternatives of a valid pattern, which match directories
// only where dirOnly or a slash at their own end says so.
func (g *Glob) add(text string, dirOnly bool) error {
	expanded, ok := expand(text, maxAlternatives)
	if !ok {
		return toolerr.New(toolerr.BadPattern, "pattern %q has more than %d alternatives: use fewer braces or several calls", g.source, maxAlternatives)
	}
	for _, text := range expanded {
		text, _, slash := normalise(text)
		if text == "" {
			continue
		}
		alt := newAlternative(text, dirOnly || slash, g.fold)
		for _, s := range alt.segs {
			if s.kind == literal && s.text == ".." {
				return toolerr.New(toolerr.OutsideRoot,
					`pattern %q contains "..": set path to the directory, and pattern relative to it`, g.source)
			}
		}
		g.alts = append(g.alts, alt)
	}
	return nil
}

// Slashes returns the pattern with the separators of the system turned into
// slashes. Where the separator is a backslash, a pattern has no escapes.
func Slashes(pattern string) string {
	if runtime.GOOS == "windows" {
		return strings.ReplaceAll(pattern, `\`, "/")
	}
	return pattern
}

// normalise takes out what does not matter in a path: empty and "." elements,
// the slashes at both ends, "**" after "**".
func normalise(text string) (clean string, anchored, dirOnly bool) {
	anchored = strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./")
	parts := strings.Split(plainSlashes(text), "/")
	kept := parts[:0]
	for _, part := range parts {
		if part == "" || part == "." || part == "**" && len(kept) > 0 && kept[len(kept)-1] == "**" {
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, "/"), anchored, strings.HasSuffix(text, "/")
}

// plainSlashes takes the backslash off an escaped slash: a slash parts
// elements however it is written.
func plainSlashes(text string) string {
	if !strings.Contains(text, `\/`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if i++; text[i] != '/' {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// String returns the pattern as it was given.
func (g *Glob) String() string { return g.source }

// Fault is why the pattern is no valid glob, with the position; nil if it is
// one.
func (g *Glob) Fault() error { return g.fault }

// DirOnly reports whether the pattern ends in a slash, which makes it one for
// directories.
func (g *Glob) DirOnly() bool {
	return !slices.ContainsFunc(g.alts, func(a alternative) bool { return !a.dirOnly })
}

// Prefix returns the directory that everything the pattern matches lies
// below, "" if that is the top.
func (g *Glob) Prefix() string { return strings.Join(g.prefix, "/") }

// Or returns a pattern that matches what g or other matches. What it tells
// about itself is g's.
func (g *Glob) Or(other *Glob) *Glob {
	both := *g
	both.alts = slices.Concat(g.alts, other.alts)
	both.prefix = commonPrefix(both.alts)
	return &both
}

// Below returns the pattern as seen from the directory Prefix.
func (g *Glob) Below() *Glob {
	below := *g
	below.prefix, below.alts = nil, nil
	for _, alt := range g.alts {
		below.alts = append(below.alts, alternativeOf(alt.segs[len(g.prefix):], alt.dirOnly))
	}
	return &below
}

// Match reports whether the pattern matches a path, relative and with
// slashes, of a directory or of what may be one.
func (g *Glob) Match(path string) bool { return g.MatchEntry(path, true) }

// MatchEntry is Match for a path that is known to be a directory or not.
func (g *Glob) MatchEntry(path string, dir bool) bool {
	if g.fold {
		path = strings.ToLower(path)
	}
	for i := range g.alts {
		if g.alts[i].match(path, dir) {
			return true
		}
	}
	return false
}

// Enter reports whether something below the directory dir may match. It is
// what prunes a walk.
func (g *Glob) Enter(dir string) bool {
	if g.fold {
		dir = strings.ToLower(dir)
	}
	for i := range g.alts {
		if g.alts[i].enter(dir) {
			return true
		}
	}
	return false
}

// Literal returns the pattern that matches only the path itself.
func Literal(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if strings.IndexByte(`*?[]{},\`, path[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(path[i])
	}
	return b.String()
}

// HasMeta reports whether a piece of a pattern is more than a plain name.
func HasMeta(piece string) bool { return strings.ContainsAny(piece, `*?[{\`) }

// position counts characters, from 1.
func position(text string, offset int) int {
	return utf8.RuneCountInString(text[:min(offset, len(text))]) + 1
}
