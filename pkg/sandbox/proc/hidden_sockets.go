package proc

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// socketsToMask lists the unix sockets of this network namespace whose names
// are in directories that the command may write. Elsewhere the supervisor
// refuses all sockets. In these directories it connects the command to sockets
// that the command made, so the user's own sockets are masked. The kernel shows
// only the name that a socket was bound to: a socket that was renamed or linked
// into a root is not found.
func socketsToMask(s *spec) []string {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil
	}
	defer f.Close()
	var names []string
	visible := s.alwaysVisibleDirs()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), " /", 2)
		if len(fields) != 2 {
			continue
		}
		path := filepath.Clean("/" + fields[1])
		inRoot := slices.ContainsFunc(visible, func(dir string) bool { return supervise.Beneath(dir, path) })
		if inRoot && !slices.Contains(s.Sockets, path) {
			names = append(names, path)
		}
	}
	return names
}

// alwaysVisibleDirs returns the directories that the command sees even below a
// covered directory: the roots, and the writable directories outside them.
func (s *spec) alwaysVisibleDirs() []string {
	dirs := slices.Clone(s.Writable)
	for _, root := range s.Roots {
		dirs = append(dirs, root.Path)
	}
	return dirs
}
