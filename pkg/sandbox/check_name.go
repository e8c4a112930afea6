package sandbox

import (
	"os"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// maxPath and maxComponent bound a path and each of its components, in
	// bytes (limits.h).
	maxPath      = 4096 // bytes
	maxComponent = 255  // bytes
)

// checkName returns INVALID_PARAMS for a path that no operating system accepts: too long,
// with a component that is too long, or with a NUL. It also refuses the names of
// checkSystemName. An empty path is no error.
func checkName(name string) error {
	if len(name) > maxPath {
		return toolerr.New(toolerr.InvalidParams, "the path is too long: %d bytes, at most %d", len(name), maxPath)
	}
	if strings.IndexByte(name, 0) >= 0 {
		return toolerr.New(toolerr.InvalidParams, "the path %s contains a NUL byte, which no file name can", pathname.Escape(name))
	}
	start := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && !os.IsPathSeparator(name[i]) {
			continue
		}
		if i-start > maxComponent {
			return toolerr.New(toolerr.InvalidParams, "the path has a component that is too long: %d bytes (%s…), at most %d",
				i-start, pathname.Escape(strings.ToValidUTF8(name[start:start+40], "")), maxComponent)
		}
		start = i + 1
	}
	return checkSystemName(name)
}
