package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// privateDirs are the directories that commands at L2 have privately, instead
// of the machine's.
var privateDirs = [...]string{"/tmp", "/var/tmp", "/run", "/dev/shm"}

// homeRules let commands read a home directory that would otherwise be hidden.
type homeRules struct {
	*sandbox.FS
	home string
}

// Roots returns the roots of the FS and the home directory, read-only.
func (r homeRules) Roots() []sandbox.Root {
	return append(r.FS.Roots(), sandbox.Root{Path: r.home, ReadOnly: true})
}

// rulesWithHome returns the rules for a command. A home directory below one of
// privateDirs becomes a read-only root, so that the user's settings apply there
// as elsewhere; secrets in it are masked as in any root.
func rulesWithHome(fsys *sandbox.FS, level proc.Level) proc.Rules {
	home, err := filepath.EvalSymlinks(os.Getenv("HOME"))
	if err != nil || level != proc.L2 || !filepath.IsAbs(home) || isInRoots(fsys, home) {
		return fsys
	}
	if info, err := os.Stat(home); err != nil || !info.IsDir() ||
		!slices.ContainsFunc(privateDirs[:], func(dir string) bool { return strings.HasPrefix(home, dir+"/") }) {
		return fsys
	}
	return homeRules{fsys, home}
}
