package pathname

import (
	"strings"
	"unicode/utf8"
)

// Fold replaces characters that file systems which ignore letter case take for
// ASCII letters by those letters (ſ by s, ﬁ by fi), and drops the characters
// that they ignore in a name. ASCII letters keep their case: see EqualFold. The
// rules are those of HFS+, APFS, and of ext4 and f2fs in directories with the
// attribute F. It allocates only if the name changes.
func Fold(name string) string {
	for i, r := range name {
		if r < utf8.RuneSelf {
			continue
		}
		if _, ok := foldRune(r); ok {
			return appendFolded(name[:i], name[i:])
		}
	}
	return name
}

// appendFolded appends the folded rest to start.
func appendFolded(start, rest string) string {
	var b strings.Builder
	b.WriteString(start)
	for i, r := range rest {
		if text, ok := foldRune(r); ok {
			b.WriteString(text)
		} else {
			_, size := utf8.DecodeRuneInString(rest[i:])
			b.WriteString(rest[i : i+size])
		}
	}
	return b.String()
}

// foldRune returns the ASCII letters that a character is folded to, or "" for
// one that is ignored. ok is false for all other characters.
func foldRune(r rune) (letters string, ok bool) {
	switch r {
	case 0x17f:
		return "s", true
	case 0x212a:
		return "k", true
	case 0xdf, 0x1e9e:
		return "ss", true
	case 0xfb00:
		return "ff", true
	case 0xfb01:
		return "fi", true
	case 0xfb02:
		return "fl", true
	case 0xfb03:
		return "ffi", true
	case 0xfb04:
		return "ffl", true
	case 0xfb05, 0xfb06:
		return "st", true
	}
	ignored := r >= utf8.RuneSelf && r != utf8.RuneError && IsHidden(r) ||
		r == 0xfe0f || r >= 0xfff0 && r <= 0xfff8 || r >= 0x1bca0 && r <= 0x1bca3 || r >= 0x1d173 && r <= 0x1d17a
	return "", ignored
}

// EqualFold reports whether two names are equal if the case of ASCII letters is
// ignored. Other letters are compared as they are: see Fold.
func EqualFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if Lower(a[i]) != Lower(b[i]) {
			return false
		}
	}
	return true
}

// HasSuffixFold reports whether s ends in suffix if the case of ASCII letters
// is ignored.
func HasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && EqualFold(s[len(s)-len(suffix):], suffix)
}

// Lower returns the lower case of an ASCII letter, and any other byte as it is.
func Lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// IsASCII reports whether s has ASCII characters only, so that Fold returns it
// unchanged.
func IsASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
