package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/writeguard"
)

// guardRoots records the state of the roots before the command starts, and adds
// the paths to spec.Guard that the kernel must protect from writes. rules say
// which files the user allows commands to write.
func (r *Runner) guardRoots(s *spec, rules Rules) *writeguard.Command {
	writable := func(string) bool { return false }
	if f, ok := rules.(interface{ WriteAllowed(abs string) bool }); ok {
		writable = f.WriteAllowed
	}
	s.Guard = slices.DeleteFunc(s.Guard, func(path string) bool { return s.inRoot(path, isGitOperationState) })
	guard := r.guards.NewCommand(writeguard.CommandRules{
		Level: s.Level, Writable: writable, InAnyRoot: s.isWatched, Protected: slices.Clone(s.Guard), Git: writeguard.UserGitSettingsOf(rules),
	})
	s.Guard = slices.DeleteFunc(s.Guard, func(path string) bool {
		return s.inRoot(path, func(rel string) bool { return writeguard.HasComponent(rel, ".husky") })
	})
	for _, root := range s.Roots {
		if root.ReadOnly {
			continue
		}
		one := guard.Begin(root.Path, s.scannedChangeTimes(root.Path))
		if one != nil && s.Level == L2 {
			s.Guard = slices.DeleteFunc(s.Guard, func(path string) bool { return !one.CanBeReadOnly(path) })
			s.addReadOnly(one.ReadOnlyPaths(), writable)
			s.keepWorktreesWritable(root.Path)
		}
	}
	if s.Level == L2 {
		guard.SetReadOnly(s.Guard)
	}
	return guard
}

// scannedChangeTimes returns a function that returns a directory's time of change in
// nanoseconds since 1970, and whether its permissions keep its owner out, as
// the search for hidden files has just read them. It returns ok == false for a
// directory that was not searched.
func (s *spec) scannedChangeTimes(root string) func(dir string) (changed int64, closed, ok bool) {
	folders := s.scannedDirs[root]
	return func(dir string) (changed int64, closed, ok bool) {
		f := folders[dir]
		if f == nil {
			return 0, false, false
		}
		return f.changed.UnixNano(), f.barsOwner, true
	}
}

// Watched calls do, which writes files made by commands into the roots, and
// then reverts what would be reverted after a command. taken and aside are as
// in Result.TakenBack and Result.Aside. gaps describes the roots that could
// not be watched.
func (r *Runner) Watched(rules Rules, do func()) (taken, aside, gaps []string) {
	s := &spec{Spec: supervise.Spec{Level: L1}} // no mount protects files from writes
	for _, root := range rules.Roots() {
		s.Roots = append(s.Roots, supervise.Root(root))
	}
	guard := r.guardRoots(s, rules)
	do()
	taken, aside = guard.End()
	return taken, aside, guard.Gaps()
}

// addReadOnly adds existing files to those that the kernel protects from writes.
func (s *spec) addReadOnly(paths []string, writable func(string) bool) {
	for _, path := range paths {
		if writable(path) || slices.ContainsFunc(s.Guard, func(dir string) bool { return supervise.Beneath(dir, path) }) {
			continue
		}
		if _, err := os.Lstat(path); err == nil {
			s.Guard = append(s.Guard, path)
		}
	}
}

// readOnlyPaths returns what is mounted read-only, if the level mounts.
func (s *spec) readOnlyPaths() []string {
	if s.Level != L2 {
		return nil
	}
	return s.Guard
}

// keepWorktreesWritable keeps Claude Code's work trees writable, which are below its
// protected settings.
func (s *spec) keepWorktreesWritable(root string) {
	dir := filepath.Join(root, ".claude", "worktrees")
	info, err := os.Lstat(dir)
	if err == nil && info.IsDir() && slices.Contains(s.Guard, filepath.Dir(dir)) {
		s.Writable = append(slices.Clone(s.Writable), dir)
	}
}

// inRoot reports whether a path is in a root and f returns true for its name
// there.
func (s *spec) inRoot(path string, f func(rel string) bool) bool {
	return slices.ContainsFunc(s.Roots, func(root supervise.Root) bool {
		rel, err := filepath.Rel(root.Path, path)
		return err == nil && filepath.IsLocal(rel) && f(rel)
	})
}

// isWatched reports whether a path is in a root, except in directories
// where git only stores objects, refs and logs.
func (s *spec) isWatched(path string) bool {
	return s.inRoot(path, func(rel string) bool {
		return !slices.ContainsFunc([]string{"objects", "refs", "logs"}, func(name string) bool { return writeguard.HasComponent(rel, name) })
	})
}

// isGitOperationState reports whether a name in a root is git's index, or the state of
// an unfinished rebase or similar operation, which one command begins and
// another continues.
func isGitOperationState(rel string) bool {
	last := strings.ToLower(filepath.Base(rel))
	return writeguard.HasComponent(rel, ".git") && (last == "index" || strings.HasPrefix(last, "sharedindex.") || writeguard.HasComponent(rel, "rebase-merge") || writeguard.HasComponent(rel, "rebase-apply") || writeguard.HasComponent(rel, "sequencer"))
}

// mostBusyDirs bounds the directories of a root that inotify watches.
const mostBusyDirs = 200

// KeptFromCommands returns a function that returns the reason why commands in
// these roots must not leave a file, "" if they may. It returns "" for files
// of git repositories, which Runner.Watched judges by their content.
func KeptFromCommands(rules Rules) func(abs string) string {
	s := &spec{}
	for _, root := range rules.Roots() {
		s.Roots = append(s.Roots, supervise.Root(root))
	}
	return func(abs string) string {
		if s.inRoot(abs, writeguard.InRepository) {
			return ""
		}
		return rules.Protected(abs)
	}
}
