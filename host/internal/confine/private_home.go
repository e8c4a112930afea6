package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// privateHome returns the home directory of a confined server, with links resolved. It
// creates the directory if it does not exist; the error is SANDBOX_UNAVAILABLE.
func (c *Confiner) privateHome(server string) (string, error) {
	dir := filepath.Join(c.dir, "servers", uniqueFileName(server), "home")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", toolerr.New(toolerr.SandboxUnavailable, "the private home of server %s cannot be made: %w", server, err)
	}
	return filepath.EvalSymlinks(dir)
}

// uniqueFileName returns a file name for a server's name. Different names have different file
// names, also on file systems that ignore the case of letters.
func uniqueFileName(server string) string {
	var name strings.Builder
	for i := range len(server) {
		switch b := server[i]; {
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b == '-', b == '_':
			name.WriteByte(b)
		default: // file systems may ignore the case of letters
			fmt.Fprintf(&name, "%%%02x", b)
		}
	}
	return name.String()
}

// linkGivenPaths makes links in the private home to the paths of the user's homes that the
// server was given, so that it finds them by ~. It leaves what the server made there.
// The server can change the links, but that gives it no access to anything.
func (v *view) linkGivenPaths() {
	for _, path := range v.given {
		for _, home := range v.homes {
			rest, err := filepath.Rel(home, path)
			if err != nil || rest == "." || strings.HasPrefix(rest, "..") {
				continue
			}
			// A directory above that is a link leads to a given directory, which
			// contains the path, or to one of the server's own.
			root, err := os.OpenRoot(v.home)
			if err != nil {
				return
			}
			if old, err := root.Readlink(rest); err == nil && old != path {
				root.Remove(rest) //nolint:errcheck // then the link stays as it is
			}
			root.MkdirAll(filepath.Dir(rest), 0o700) //nolint:errcheck // then the link cannot be made either
			root.Symlink(path, rest)                 //nolint:errcheck // there is a file of the server's
			root.Close()                             //nolint:errcheck // only a descriptor
		}
	}
}
