package secret

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// copySuffixes are endings that editors and people give to the name of a copy.
var copySuffixes = [...]string{".bak", ".old", ".orig", ".swp", ".swo", ".swn", ".save", ".backup", ".copy", ".tmp", ".lock", ".rej", ".kate-swp", ".un", "___jb_tmp___", "___jb_old___"}

// copyWords are the words by which people mark a copy, behind a separator: .env-old,
// .env - Copy. Those of copySuffixes are not repeated.
var copyWords = [...]string{"bak", "old", "orig", "save", "backup", "copy"}

// copyPrefix begins the name of a copy that a file manager made.
const copyPrefix = "copy of "

// originalName returns the name that a file was copied from, if its name is that of
// a backup or copy: .env for .env~, #.env#, .#.env, .env.bak, .env (1) and
// Copy of .env, and id_rsa for .id_rsa.swp. It returns all other names unchanged.
func originalName(name string) string {
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
		case (name[0] == 'C' || name[0] == 'c') && n > len(copyPrefix) && pathname.EqualFold(name[:len(copyPrefix)], copyPrefix):
			bare = name[len(copyPrefix):]
		case name[n-1] == '~':
			bare = name[:n-1]
			if numbered, ok := strings.CutSuffix(strings.TrimRight(bare, "0123456789"), ".~"); ok { // .env.~1~
				bare = numbered
			}
		default:
			bare = trimCopySuffix(name)
		}
		if len(bare) == n {
			return name
		}
		name = bare
	}
	return name
}

// isCopyOf reports whether name is part, a file's name, or the name of a copy
// of that file. Editors put a dot before the name of some copies:
// .config.json.swp.
func isCopyOf(name, part string) bool {
	bare := originalName(name)
	return pathname.EqualFold(bare, part) || len(bare) < len(name) && bare != "" && bare[0] == '.' && pathname.EqualFold(bare[1:], part)
}

// addsLeadingDot reports whether an editor puts a dot before the name of a file with
// this suffix: vim (.swp, .un~) and kate.
func addsLeadingDot(suffix string) bool {
	return suffix == ".un" || suffix == ".kate-swp" || suffix[:3] == ".sw"
}

// trimCopyNumber removes the number of a copy, " (1)" or " 2" or ".1" or "-1", from the
// end of a name.
func trimCopyNumber(name string) string {
	bare := strings.TrimSuffix(name, ")")
	closed, at := len(bare) < len(name), len(bare)
	for at > 0 && bare[at-1] >= '0' && bare[at-1] <= '9' {
		at--
	}
	switch {
	case at == len(bare) || at < 2:
		return name
	case closed && bare[at-1] == '(':
		return strings.TrimSuffix(bare[:at-1], " ")
	case !closed && strings.IndexByte(" .-", bare[at-1]) >= 0:
		return bare[:at-1]
	}
	return name
}

// trimCopyWord removes a word of copyWords and the characters that separate it from
// the end of a name: .env-old, .env_backup, .env - Copy, .env (copy).
func trimCopyWord(name string) string {
	bare, closed := strings.CutSuffix(name, ")")
	separators := " -_"
	if closed {
		separators = " ("
	}
	if bare == "" {
		return name
	}
	last := pathname.Lower(bare[len(bare)-1])
	for _, word := range copyWords {
		if last != word[len(word)-1] || !pathname.HasSuffixFold(bare, word) {
			continue
		}
		rest := bare[:len(bare)-len(word)]
		if trimmed := strings.TrimRight(rest, separators); trimmed != "" && len(trimmed) < len(rest) {
			return trimmed
		}
	}
	return name
}

// isVisibleCopyOf reports whether name names a copy of the file hidden, without
// the dot that hidden begins with: env.bak for .env.
func isVisibleCopyOf(name, hidden string) bool {
	n := len(hidden) - 1
	return len(name) > n+1 && name[n] == '.' && pathname.EqualFold(name[:n], hidden[1:]) &&
		slices.ContainsFunc(copyWords[:], func(word string) bool { return pathname.EqualFold(name[n+1:], word) })
}

// trimCopySuffix removes a suffix of copySuffixes, a number or a word of a copy
// from the end of a name, and the dot that an editor puts before the name if
// the rest is a secret's.
func trimCopySuffix(name string) string {
	last := pathname.Lower(name[len(name)-1])
	switch {
	case last == ')':
		if bare := trimCopyNumber(name); len(bare) < len(name) {
			return bare
		}
		return trimCopyWord(name)
	case last >= '0' && last <= '9':
		return trimCopyNumber(name)
	case strings.IndexByte("kdgponeyj_", last) < 0:
		return name
	}
	if bare := trimCopyWord(name); len(bare) < len(name) {
		return bare
	}
	for _, suffix := range copySuffixes {
		if last == suffix[len(suffix)-1] && len(name) > len(suffix) && pathname.HasSuffixFold(name, suffix) {
			bare := name[:len(name)-len(suffix)]
			if addsLeadingDot(suffix) && len(bare) > 3 && bare[0] == '.' && (pathname.EqualFold(bare[1:4], "id_") || bare[1] == '.' || bare[1] == '_') {
				bare = bare[1:]
			}
			return bare
		}
	}
	return name
}
