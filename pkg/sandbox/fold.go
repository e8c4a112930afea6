package sandbox

import (
	"strings"
	"unicode/utf8"
)

// foldName maps what file systems that ignore case take for ASCII letters, and
// drops the characters that they ignore in a name: HFS+, APFS, and ext4 and
// f2fs in directories with the attribute F. It allocates only if there is any.
func foldName(name string) string {
	for i, r := range name {
		if r < utf8.RuneSelf {
			continue
		}
		if _, ok := foldRune(r); ok {
			return folded(name[:i], name[i:])
		}
	}
	return name
}

// folded appends the folded rest to start.
func folded(start, rest string) string {
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

// foldRune returns the ASCII letters that a character is folded to; "" for one
// that is ignored. It is false for all others.
func foldRune(r rune) (string, bool) {
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
	ignored := r >= utf8.RuneSelf && r != utf8.RuneError && hidden(r) ||
		r == 0xfe0f || r >= 0xfff0 && r <= 0xfff8 || r >= 0x1bca0 && r <= 0x1bca3 || r >= 0x1d173 && r <= 0x1d17a
	return "", ignored
}

// is compares with an ASCII word, ignoring case.
func is(s, word string) bool {
	if len(s) != len(word) {
		return false
	}
	for i := range len(s) {
		if lower(s[i]) != lower(word[i]) {
			return false
		}
	}
	return true
}

func endsIn(s, suffix string) bool {
	return len(s) >= len(suffix) && is(s[len(s)-len(suffix):], suffix)
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
