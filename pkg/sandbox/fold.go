package sandbox

import (
	"os"
	"path/filepath"
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

// inDirectory reports whether path is dir or beneath it, also in another spelling
// where the file system takes both for the same name.
func inDirectory(dir, path string) bool {
	above, down := len(splitPath(dir)), splitPath(path)
	return contains(dir, path) || len(down) >= above && sameDirectory(joinPath(volumeTop(path), down[:above]), dir)
}

func volumeTop(path string) string { return filepath.VolumeName(path) + pathSeparator }

// sameDirectory reports whether two paths are one directory in two spellings.
// Of those that do not exist, the name of the repository next to them tells
// whether letter case matters there.
func sameDirectory(a, b string) bool {
	if a == b || !strings.EqualFold(foldName(a), foldName(b)) {
		return a == b
	}
	one, err := os.Stat(a)
	two, err2 := os.Stat(b)
	switch {
	case err == nil && err2 == nil:
		return os.SameFile(one, two)
	case err == nil || err2 == nil:
		return false
	}
	lower, err := os.Stat(filepath.Join(filepath.Dir(b), ".git"))
	upper, err2 := os.Stat(filepath.Join(filepath.Dir(b), ".GIT"))
	if err != nil {
		return foldsCase
	}
	return err2 == nil && os.SameFile(lower, upper)
}

// copySuffixes are endings that editors and people give to the name of a copy.
var copySuffixes = [...]string{".bak", ".old", ".orig", ".swp", ".swo", ".swn", ".save", ".backup", ".copy", ".tmp", ".rej", ".kate-swp"}

// undecorated returns the name of the file that a file is a copy of by its
// name: .env~, #.env#, .#.env, .env.bak, .id_rsa.swp; else the name itself.
func undecorated(name string) string {
	for range 3 {
		n := len(name)
		if n < 2 {
			return name
		}
		bare := name
		switch {
		case name[0] == '#' && name[n-1] == '#' && n > 2:
			bare = name[1 : n-1]
		case name[0] == '.' && (name[1] == '#' || name[1] == '~') && n > 2:
			bare = name[2:]
		case name[n-1] == '~':
			bare = name[:n-1]
			if numbered, ok := strings.CutSuffix(strings.TrimRight(bare, "0123456789"), ".~"); ok { // .env.~1~
				bare = numbered
			}
		default:
			bare = withoutSuffix(name)
		}
		if len(bare) == n {
			return name
		}
		name = bare
	}
	return name
}

// withoutSuffix removes a suffix of a copy, and the dot that vim puts before
// the name of a swap file.
func withoutSuffix(name string) string {
	switch lower(name[len(name)-1]) {
	case 'k', 'd', 'g', 'p', 'o', 'n', 'e', 'y', 'j':
	default:
		return name
	}
	for _, suffix := range copySuffixes {
		if len(name) > len(suffix) && endsIn(name, suffix) {
			bare := name[:len(name)-len(suffix)]
			if is(suffix[:3], ".sw") && len(bare) > 3 && bare[0] == '.' && (is(bare[1:4], "id_") || bare[1] == '.' || bare[1] == '_') {
				bare = bare[1:]
			}
			return bare
		}
	}
	return name
}
