package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/writeguard"
)

// guardRoots records the state of the writable roots before the command starts,
// and sets s.Guard to the paths that the kernel must protect from writes. rules
// say which files the user allows commands to write.
func (r *Runner) guardRoots(s *spec, rules Rules) *writeguard.Command {
	writable := func(string) bool { return false }
	if f, ok := rules.(interface{ WriteAllowed(abs string) bool }); ok {
		writable = f.WriteAllowed
	}
	s.Guard = slices.DeleteFunc(s.Guard, func(path string) bool { return s.anyRootMatches(path, isGitOperationState) })
	byUser := func(string) bool { return false }
	if f, ok := rules.(interface{ ProtectedByUser(abs string) bool }); ok {
		byUser = f.ProtectedByUser
	}
	guard := r.guards.NewCommand(writeguard.CommandRules{
		Level: guardLevel(s.Level), Writable: writable, InAnyRoot: s.isWatched, Protected: slices.Clone(s.Guard), MustStay: byUser, Git: writeguard.UserGitSettingsOf(rules),
	})
	s.Guard = slices.DeleteFunc(s.Guard, func(path string) bool {
		return s.anyRootMatches(path, func(rel string) bool { return writeguard.HasComponent(rel, ".husky") })
	})
	guarded := map[string]*writeguard.RootGuard{}
	var readOnly []string
	for _, root := range s.Roots {
		if root.ReadOnly {
			readOnly = append(readOnly, root.Path)
		} else if one := guard.Begin(root.Path, s.scannedDirStates(root.Path)); one != nil {
			guarded[root.Path] = one
		}
	}
	guard.AddSettingsOfOtherRoots(readOnly, s.scannedDirStates)
	for _, root := range s.Roots {
		if one := guarded[root.Path]; one != nil && protectsByPath(s.Level) {
			s.Guard = slices.DeleteFunc(s.Guard, func(path string) bool { return !one.CanBeReadOnly(path) })
			s.addReadOnly(one.ReadOnlyPaths(), writable)
			s.keepWorktreesWritable(root.Path)
		}
	}
	if protectsByPath(s.Level) {
		guard.SetReadOnly(s.Guard, s.Writable)
	}
	return guard
}

// scannedDirStates returns the function dirState for writeguard.Command.Begin,
// with the states that the search of a root for hidden files has just read.
func (s *spec) scannedDirStates(root string) func(dir string) (writeguard.DirState, bool) {
	folders := s.scannedDirs[root]
	return func(dir string) (state writeguard.DirState, ok bool) {
		f := folders[dir]
		if f == nil {
			return state, false
		}
		return writeguard.DirState{Changed: f.changed.UnixNano(), Node: [2]uint64{uint64(f.id.dev), uint64(f.id.ino)}, Closed: f.ownerBarred}, true
	}
}

// WithWriteGuard calls apply, which writes files made by commands into the
// roots, and then reverts what would be reverted after a command. reverted and
// copyDirs are as in Result. gaps describes the roots that could not be
// guarded.
func (r *Runner) WithWriteGuard(rules Rules, apply func()) (reverted, copyDirs, gaps []string) {
	s := &spec{Spec: supervise.Spec{Level: L1}} // no mount protects files from writes
	for _, root := range rules.Roots() {
		s.Roots = append(s.Roots, supervise.Root(root))
	}
	guard := r.guardRoots(s, rules)
	guard.Restores = true
	apply()
	reverted, copyDirs = guard.End()
	return reverted, copyDirs, guard.Gaps()
}

// addReadOnly adds to s.Guard the paths that exist, except paths for which writable is
// true: the user allows commands to write them.
func (s *spec) addReadOnly(paths []string, writable func(string) bool) {
	for _, path := range paths {
		if writable(path) || slices.ContainsFunc(s.Guard, func(dir string) bool { return supervise.IsBeneath(dir, path) }) {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			s.Guard = append(s.Guard, path)
		}
	}
}

// readOnlyPaths returns the paths that the kernel protects from the command,
// nil at levels where it protects none.
func (s *spec) readOnlyPaths() []string {
	if !protectsByPath(s.Level) {
		return nil
	}
	return s.Guard
}

// keepWorktreesWritable keeps Claude Code's work trees in root writable, which
// are below its protected settings.
func (s *spec) keepWorktreesWritable(root string) {
	dir := filepath.Join(root, ".claude", "worktrees")
	info, err := os.Lstat(dir)
	if err == nil && info.IsDir() && slices.Contains(s.Guard, filepath.Dir(dir)) {
		s.Writable = append(slices.Clone(s.Writable), dir)
	}
}

// anyRootMatches reports whether path is in a root and holds is true for its
// path relative to that root.
func (s *spec) anyRootMatches(path string, holds func(rel string) bool) bool {
	return slices.ContainsFunc(s.Roots, func(root supervise.Root) bool {
		rel, err := filepath.Rel(root.Path, path)
		return err == nil && filepath.IsLocal(rel) && holds(rel)
	})
}

// isWatched reports whether the write guard checks path after a command: it is
// in a root, except in directories where git only stores objects, refs and
// logs.
func (s *spec) isWatched(path string) bool {
	return s.anyRootMatches(path, func(rel string) bool {
		return !slices.ContainsFunc([]string{"objects", "refs", "logs"}, func(name string) bool { return writeguard.HasComponent(rel, name) })
	})
}

// isGitOperationState reports whether a name in a root is git's index, or the
// state of an unfinished merge, rebase or similar operation, which one command
// begins and another continues.
func isGitOperationState(rel string) bool {
	last := strings.ToLower(filepath.Base(rel))
	return writeguard.HasComponent(rel, ".git") && (last == "index" || last == "merge_rr" || last == "merge_autostash" || strings.HasPrefix(last, "sharedindex.") || writeguard.HasComponent(rel, "rebase-merge") || writeguard.HasComponent(rel, "rebase-apply") || writeguard.HasComponent(rel, "sequencer"))
}

// WhyProtected returns a function for applying and undoing the changes of
// commands. It returns the reason why a command must not change the file at an
// absolute path, "" if it may. For files of git repositories it returns "":
// Runner.WithWriteGuard checks these by their content.
func WhyProtected(rules Rules) func(abs string) string {
	s := &spec{}
	for _, root := range rules.Roots() {
		s.Roots = append(s.Roots, supervise.Root(root))
	}
	return func(abs string) string {
		if s.anyRootMatches(abs, writeguard.IsInRepository) {
			return ""
		}
		return rules.Protected(abs)
	}
}
