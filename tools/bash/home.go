package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// ownDirs are those that commands at L2 have for themselves, so that they do
// not see the machine's.
var ownDirs = [...]string{"/tmp", "/var/tmp", "/run", "/dev/shm"}

// homeRules let commands read a home directory that they would not see.
type homeRules struct {
	*sandbox.FS
	home string
}

// Roots are those of the FS and the home directory, for reading.
func (r homeRules) Roots() []sandbox.Root {
	return append(r.FS.Roots(), sandbox.Root{Path: r.home, ReadOnly: true})
}

// withHome returns the rules of a command. A home directory below one of
// ownDirs is shown as a root that is only read, so that the user's settings
// count there as elsewhere; what must not be read is masked in it as in any root.
func withHome(fs *sandbox.FS, level proc.Level) proc.Rules {
	home, err := filepath.EvalSymlinks(os.Getenv("HOME"))
	if err != nil || level != proc.L2 || !filepath.IsAbs(home) || inRoots(fs, home) {
		return fs
	}
	if info, err := os.Stat(home); err != nil || !info.IsDir() ||
		!slices.ContainsFunc(ownDirs[:], func(dir string) bool { return strings.HasPrefix(home, dir+"/") }) {
		return fs
	}
	return homeRules{fs, home}
}
