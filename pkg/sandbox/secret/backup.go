package secret

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// copySuffixes are endings that editors and people give to the name of a copy.
var copySuffixes = [...]string{".bak", ".old", ".orig", ".swp", ".swo", ".swn", ".save", ".backup", ".copy", ".tmp", ".rej", ".kate-swp", ".un", "___jb_tmp___", "___jb_old___"}

// original returns the name that a file was copied from, if its name is that of
// a backup or copy: .env for .env~, #.env#, .#.env and .env.bak, and id_rsa for
// .id_rsa.swp. It returns all other names unchanged.
func original(name string) string {
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

// isCopyOf reports whether a name is part, or that of a copy of part. Editors
// put a dot before the name of some copies: .config.json.swp.
func isCopyOf(name, part string) bool {
	bare := original(name)
	return pathname.EqualFold(bare, part) || len(bare) < len(name) && bare != "" && bare[0] == '.' && pathname.EqualFold(bare[1:], part)
}

// putsDot reports whether an editor puts a dot before the name of a file with
// this suffix: vim (.swp, .un~) and kate.
func putsDot(suffix string) bool {
	return suffix == ".un" || suffix == ".kate-swp" || suffix[:3] == ".sw"
}

// withoutSuffix removes a suffix of a copy, and the dot that an editor puts
// before the name if the rest is a secret's.
func withoutSuffix(name string) string {
	switch pathname.Lower(name[len(name)-1]) {
	case 'k', 'd', 'g', 'p', 'o', 'n', 'e', 'y', 'j', '_':
	default:
		return name
	}
	for _, suffix := range copySuffixes {
		if len(name) > len(suffix) && pathname.HasSuffixFold(name, suffix) {
			bare := name[:len(name)-len(suffix)]
			if putsDot(suffix) && len(bare) > 3 && bare[0] == '.' && (pathname.EqualFold(bare[1:4], "id_") || bare[1] == '.' || bare[1] == '_') {
				bare = bare[1:]
			}
			return bare
		}
	}
	return name
}
