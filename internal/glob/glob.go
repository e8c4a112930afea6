// Package glob matches slash-separated paths against glob patterns, quickly and
// without allocating.
//
// The syntax is doublestar v4's: * ? [class] [^class] {a,b} \x, and ** as a
// whole path element for any number of elements, including none. Paths are
// relative to the searched directory. doublestar does the matching, unless the
// beginning and the last element of a path already decide. In addition:
//
//   - A pattern without a slash matches at any depth, as in a .gitignore.
//   - A final slash restricts the pattern to directories, and a leading slash
//     ties it to the top.
//   - "foo/**" matches everything below foo, and foo itself if that is a
//     directory.
//   - A pattern that may also be a plain name matches that name: "[id].tsx"
//     matches the file "[id].tsx" as well as "i.tsx" and "d.tsx", and
//     "{{name}}.txt" matches the file of that name.
//   - Classes have bash's syntax: "[]a]" contains a bracket, "[[:upper:]]" the
//     capital letters of ASCII. A class never matches a slash.
//   - ".." is refused: a pattern must not change the searched directory.
package glob

import (
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Limits of a pattern: they bound the cost of matching one path.
const (
	maxLength       = 4096
	maxAlternatives = 512
)

// Glob is a compiled pattern. It is immutable and safe for concurrent use.
type Glob struct {
	source string        // as given to Compile
	alts   []alternative // a path that one of them matches is a match
	prefix []string      // elements of Prefix
	fold   bool          // alts are for paths in lower case
	fault  error         // see Fault
}

// Compile compiles a pattern. A pattern that is not a valid glob but may be a
// plain name ("a[.txt") compiles as that name; Fault then returns the glob's
// error. Errors have the code BAD_PATTERN, or OUTSIDE_ROOT for "..".
func Compile(pattern string) (*Glob, error) { return compile(pattern, false) }

// CompileFold is Compile, with the same errors, for a pattern that is matched regardless
// of case. Matching is slower, because it allocates for each path.
func CompileFold(pattern string) (*Glob, error) { return compile(pattern, true) }

// compile does what Compile does or, if fold is set, CompileFold.
func compile(pattern string, fold bool) (*Glob, error) {
	if len(pattern) > maxLength {
		return nil, toolerr.New(toolerr.BadPattern, "pattern of %d bytes is too long: at most %d", len(pattern), maxLength)
	}
	if strings.ContainsRune(pattern, 0) {
		return nil, toolerr.New(toolerr.BadPattern, "pattern contains a NUL byte, which no path can")
	}
	g := &Glob{source: pattern, fold: fold}
	text := ToSlash(pattern)
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
	read := scanPattern(text)
	g.fault = read.patternError(pattern)
	var texts []string
	if g.fault == nil && !read.classHasSlash {
		texts = []string{text}
	}
	if read.plainPattern != text {
		texts = append(texts, read.plainPattern)
	}
	for _, text := range texts {
		if err := g.addAlternatives(text, dirOnly); err != nil {
			return nil, err
		}
	}
	g.prefix = commonPrefix(g.alts)
	return g, nil
}

// addAlternatives compiles the alternatives of a valid pattern. If dirOnly is
// set they match only directories, as do those with a final slash. It returns
// BAD_PATTERN for more than maxAlternatives, and OUTSIDE_ROOT for "..".
func (g *Glob) addAlternatives(text string, dirOnly bool) error {
	expanded, ok := expandBraces(text, maxAlternatives)
	if !ok {
		return toolerr.New(toolerr.BadPattern, "pattern %q has more than %d alternatives: use fewer braces or several calls", g.source, maxAlternatives)
	}
	for _, text := range expanded {
		text, _, slash := normalise(text)
		if text == "" {
			continue
		}
		alt := newAlternative(text, dirOnly || slash, g.fold)
		for _, s := range alt.segments {
			if s.kind == literal && s.text == ".." {
				return toolerr.New(toolerr.OutsideRoot,
					`pattern %q contains "..": set path to the directory, and pattern relative to it`, g.source)
			}
		}
		g.alts = append(g.alts, alt)
	}
	return nil
}

// ToSlash returns the pattern with the system's path separators replaced by
// slashes. Where the separator is a backslash, patterns have no escapes.
func ToSlash(pattern string) string {
	if runtime.GOOS == "windows" {
		return strings.ReplaceAll(pattern, `\`, "/")
	}
	return pattern
}

// normalise returns a pattern without empty and "." elements, leading and final slashes,
// and repeated "**". anchored is true if the pattern began with "/" or "./", dirOnly if
// it ended with a slash.
func normalise(text string) (clean string, anchored, dirOnly bool) {
	anchored = strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./")
	parts := strings.Split(unescapeSlashes(text), "/")
	kept := parts[:0]
	for _, part := range parts {
		if part == "" || part == "." || part == "**" && len(kept) > 0 && kept[len(kept)-1] == "**" {
			continue
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, "/"), anchored, strings.HasSuffix(text, "/")
}

// unescapeSlashes removes the backslash before each escaped slash: a slash
// separates elements whether it is escaped or not.
func unescapeSlashes(text string) string {
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

// String returns the pattern as given to Compile.
func (g *Glob) String() string { return g.source }

// Fault returns a BAD_PATTERN error, with the position, if the pattern was
// compiled as a plain name because it is not a valid glob. It returns nil for a
// valid glob.
func (g *Glob) Fault() error { return g.fault }

// DirOnly reports whether the pattern matches only directories, because it has
// a final slash.
func (g *Glob) DirOnly() bool {
	return !slices.ContainsFunc(g.alts, func(a alternative) bool { return !a.dirOnly })
}

// Prefix returns the path of the directory below which all matches are; ""
// means the searched directory itself.
func (g *Glob) Prefix() string { return strings.Join(g.prefix, "/") }

// Or returns a pattern that matches a path if g or other matches it. Its String
// and its case come from g.
func (g *Glob) Or(other *Glob) *Glob {
	both := *g
	both.alts = slices.Concat(g.alts, other.alts)
	both.prefix = commonPrefix(both.alts)
	return &both
}

// RelativeToPrefix returns the pattern for paths relative to the directory
// Prefix.
func (g *Glob) RelativeToPrefix() *Glob {
	below := *g
	below.prefix, below.alts = nil, nil
	for _, alt := range g.alts {
		below.alts = append(below.alts, alternativeOf(alt.segments[len(g.prefix):], alt.dirOnly))
	}
	return &below
}

// Match reports whether the pattern matches a path that may be a directory.
// path is relative to the searched directory and has slashes.
func (g *Glob) Match(path string) bool { return g.MatchEntry(path, true) }

// MatchEntry reports whether the pattern matches a path that is a directory if isDir is
// set, and otherwise is no directory: a pattern with a final slash matches only
// directories.
func (g *Glob) MatchEntry(path string, isDir bool) bool {
	if g.fold {
		path = strings.ToLower(path)
	}
	for i := range g.alts {
		if g.alts[i].match(path, isDir) {
			return true
		}
	}
	return false
}

// MayMatchBelow reports whether the pattern may match a path below the
// directory dir. A walk need not enter other directories.
func (g *Glob) MayMatchBelow(dir string) bool {
	if g.fold {
		dir = strings.ToLower(dir)
	}
	for i := range g.alts {
		if g.alts[i].mayMatchBelow(dir) {
			return true
		}
	}
	return false
}

// QuoteMeta returns a pattern that matches only the given path.
func QuoteMeta(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if strings.IndexByte(`*?[]{},\`, path[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(path[i])
	}
	return b.String()
}

// HasMeta reports whether a part of a pattern contains a special character, so
// that it is more than a plain name.
func HasMeta(piece string) bool { return strings.ContainsAny(piece, `*?[{\`) }

// charPosition returns the number, from 1, of the character at a byte offset.
func charPosition(text string, offset int) int {
	return utf8.RuneCountInString(text[:min(offset, len(text))]) + 1
}
