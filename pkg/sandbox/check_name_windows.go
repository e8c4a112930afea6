package sandbox

import (
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// checkSystemName returns INVALID_PARAMS for names with a colon, which open another stream of a file
// ("id_rsa::$DATA"), and names that end in a dot or a space, because Windows removes
// those and opens another file.
func checkSystemName(name string) error {
	for part := range strings.FieldsFuncSeq(name[len(filepath.VolumeName(name)):], func(r rune) bool { return r == '/' || r == '\\' }) {
		if strings.Contains(part, ":") || part != "." && part != ".." && strings.TrimRight(part, ". ") != part {
			return toolerr.New(toolerr.InvalidParams, "%s: a name cannot contain a colon or end in a dot or a space", pathname.Escape(name))
		}
	}
	return nil
}
