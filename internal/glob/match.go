package glob

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// matchKind selects how one path element of a pattern is compared with a name.
type matchKind uint8

const (
	// literal is a name without wildcards.
	literal      matchKind = iota
	globstar               // **
	anyName                // *
	prefix                 // text*
	suffix                 // *text
	byDoublestar           // compared by doublestar
)

// segment is one path element of a pattern.
type segment struct {
	kind   matchKind
	text   string // the text to compare
	source string // in doublestar's syntax
}

// newSegment compiles one path element of a pattern, in the fastest kind. If
// fold is set, names are in lower case.
func newSegment(text string, fold bool) segment {
	if text == "**" {
		return segment{globstar, "", text}
	}
	text = singleStars(text)
	if text == "*" {
		return segment{anyName, "", text}
	}
	if plain, ok := unescape(text); ok {
		return segment{literal, plain, text}
	}
	head, tail, _ := strings.Cut(text, "*")
	switch {
	case strings.ContainsAny(text, `?[\`) || head != "" && tail != "" || strings.Contains(tail, "*"):
		text = rewriteClasses(text, fold)
		return segment{byDoublestar, text, text}
	case head == "":
		return segment{suffix, tail, text}
	}
	return segment{prefix, head, text}
}

// singleStars replaces each run of stars by one star, which means the same
// within an element.
func singleStars(text string) string {
	if !strings.Contains(text, "**") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i + 1
		switch text[i] {
		case '*':
			for end < len(text) && text[end] == '*' {
				end++
			}
			i = end - 1
		case '\\':
			end = min(i+2, len(text))
		case '[':
			end, _ = classEnd(text, i)
		}
		b.WriteString(text[i:end])
		i = end
	}
	return b.String()
}

// unescape returns the name that a path element without wildcards matches. ok
// is false if it has wildcards.
func unescape(text string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			i++
		}
		if i < len(text) {
			b.WriteByte(text[i])
		}
	}
	return b.String(), true
}

// match reports whether the element matches name, one element of a path. The
// comparisons without doublestar are faster and have the same result.
func (s *segment) match(name string) bool {
	switch s.kind {
	case literal:
		return name == s.text
	case prefix:
		return strings.HasPrefix(name, s.text)
	case suffix:
		return strings.HasSuffix(name, s.text)
	case byDoublestar:
		return doublestar.MatchUnvalidated(s.text, name)
	}
	return true
}

// matchMode says for which part of a path doublestar is needed.
type matchMode uint8

const (
	direct        matchMode = iota // names, then one element: not needed
	anyDepth                       // names, ** and perhaps one element: not needed
	viaDoublestar                  // for the whole path, unless its beginning or end decides
)

// alternative is one pattern without braces.
type alternative struct {
	segments  []segment
	mode      matchMode
	plainHead string // the plain directories at its beginning, with a final slash
	text      string // for doublestar
	ownDir    string // if ** is last: the pattern for the directory at which it begins; else ""
	dirOnly   bool   // the pattern has a final slash
}

// newAlternative compiles a normalised pattern without braces. If fold is set, paths are
// in lower case. dirOnly means that it matches only directories.
func newAlternative(text string, dirOnly, fold bool) alternative {
	parts := strings.Split(text, "/")
	segs := make([]segment, len(parts))
	for i, part := range parts {
		segs[i] = newSegment(part, fold)
	}
	return alternativeOf(segs, dirOnly)
}

// alternativeOf returns the alternative with the path elements segs, in the fastest mode.
// dirOnly means that it matches only directories.
func alternativeOf(segs []segment, dirOnly bool) alternative {
	sources := make([]string, len(segs))
	for i, s := range segs {
		sources[i] = s.source
	}
	a := alternative{segments: segs, mode: viaDoublestar, text: strings.Join(sources, "/"), dirOnly: dirOnly}
	if a.last().kind == globstar {
		// doublestar itself accepts x for "x/**", but not for "x*/**".
		a.ownDir = strings.TrimSuffix(a.text, "/**")
		a.text += "/*"
	}
	plain := a.plainDirs()
	for _, name := range plain {
		a.plainHead += name + "/"
	}
	switch rest := segs[len(plain):]; {
	case rest[0].kind == globstar && len(rest) <= 2:
		a.mode = anyDepth
	case len(rest) == 1:
		a.mode = direct
	}
	return a
}

// last returns the last path element of the pattern.
func (a *alternative) last() *segment { return &a.segments[len(a.segments)-1] }

// plainDirs returns the plain names at the beginning, without the last element.
func (a *alternative) plainDirs() []string {
	var names []string
	for _, s := range a.segments[:len(a.segments)-1] {
		if s.kind != literal {
			break
		}
		names = append(names, s.text)
	}
	return names
}

// match reports whether the pattern matches the path. It compares the path's
// beginning and last element, and calls doublestar if these do not decide.
func (a *alternative) match(path string, isDir bool) bool {
	if a.dirOnly && !isDir {
		return false
	}
	base := strings.LastIndexByte(path, '/') + 1
	if !strings.HasPrefix(path, a.plainHead) || !a.last().match(path[base:]) {
		// "head/**" matches the directory head.
		return isDir && a.mode == anyDepth && a.last().kind == globstar && len(path)+1 == len(a.plainHead) && strings.HasPrefix(a.plainHead, path)
	}
	switch {
	case a.mode == anyDepth:
		return true
	case a.mode == direct:
		return base == len(a.plainHead)
	case isDir && a.ownDir != "" && doublestar.MatchUnvalidated(a.ownDir, path):
		return true
	}
	return doublestar.MatchUnvalidated(a.text, path)
}

// mayMatchBelow reports whether the pattern may match a path below dir.
func (a *alternative) mayMatchBelow(dir string) bool {
	segs := a.segments
	for more := true; more; segs = segs[1:] {
		if len(segs) == 0 {
			return false
		}
		if segs[0].kind == globstar {
			return true
		}
		var name string
		name, dir, more = strings.Cut(dir, "/")
		if !segs[0].match(name) {
			return false
		}
	}
	return len(segs) > 0
}

// commonPrefix returns the plain directories with which all alternatives begin.
func commonPrefix(alts []alternative) []string {
	var common []string
	for n, alt := range alts {
		own := alt.plainDirs()
		if n == 0 {
			common = own
			continue
		}
		same := 0
		for same < min(len(common), len(own)) && common[same] == own[same] {
			same++
		}
		common = common[:same]
	}
	return common
}
