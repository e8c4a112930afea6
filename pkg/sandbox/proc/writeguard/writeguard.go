// Package writeguard reverts what commands write into roots for other programs
// to run: git's hooks and settings, and project settings that make agents,
// editors or shells run programs.
//
// The guard's life of one command:
//
//  1. Guards.NewCommand takes the rules of the command.
//  2. Command.Begin adds a writable root. If no other command runs in it, the
//     changes since the last command are the user's: an inventory finds the
//     watched files, and their state becomes the baseline. If the server of an
//     earlier command was killed, its changes are checked first. After the
//     last root, Command.AddSettingsOfOtherRoots adds the files that git's settings in
//     one root name in another.
//  3. RootGuard.ReadOnlyPaths lists the files to mount read-only at L2, where
//     the kernel refuses the write; Command.SetReadOnly says which are mounted.
//  4. Command.CheckWhileRunning checks the roots every second, and as soon as
//     inotify reports a file with a suspicious name.
//  5. Command.End checks them a last time. A check compares the files with the
//     baseline, removes new forbidden files and settings, restores changed
//     files, and stores a copy of each reverted file.
//
// All servers of a user share the baselines through a state directory. They
// see each other's commands in the same root or an overlapping one by file
// locks, see commandLocks and overlappingRoot.
package writeguard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// Guards holds the guards of all roots that the commands of one runner write
// to. It is safe for concurrent use.
type Guards struct {
	stateDir     string
	mu           sync.Mutex
	hideCommands bool                  // for tests: other servers do not see the commands
	roots        map[string]*RootGuard // by paths of the roots
	readOnly     map[string]*readOnlyRoot
	settings     settingsCache
}

// New returns an empty set of guards. The baselines and the copies of reverted
// files are stored in stateDir, which all servers of a user should share; ""
// keeps the baselines in memory and stores no copies.
func New(stateDir string) *Guards {
	return &Guards{stateDir: stateDir, roots: map[string]*RootGuard{}}
}

// HideFromOtherServers keeps other servers from seeing the commands in roots that are
// guarded from now on. It is for tests.
func (g *Guards) HideFromOtherServers() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hideCommands = true
}

// Close closes the guards of all roots. No command must be running.
func (g *Guards) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for root, w := range g.roots {
		w.close()
		delete(g.roots, root)
	}
	clear(g.readOnly)
}

// guardOf returns the guard of a root, which it opens at the first call. If the
// state directory cannot be written, the guard works without it.
func (g *Guards) guardOf(root string) (*RootGuard, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w := g.roots[root]; w != nil {
		return w, nil
	}
	w, err := openRootGuard(root, g.stateDir)
	if err != nil && g.stateDir != "" {
		reason := err
		if w, err = openRootGuard(root, ""); err == nil {
			w.notShared = fmt.Errorf("other servers do not know the recorded state of the root, because the state directory cannot be written: %w", reason)
		}
	}
	if err == nil {
		w.isHidden, w.settings = g.hideCommands, &g.settings
		g.roots[root] = w
	}
	return w, err
}

// CommandRules says which files of a command its guard checks, and how.
type CommandRules struct {
	Level supervise.Level // L1 or L2
	// Writable reports whether the user allows commands to write a file.
	Writable func(path string) bool
	// InAnyRoot reports whether a path is in a root of the command where new
	// files are found and checked.
	InAnyRoot func(path string) bool
	// Protected are the absolute paths of further files to watch, and of
	// directories to watch with everything below.
	Protected []string
	// MustStay reports whether a protected file is restored even if a command
	// removed a directory above it. nil: never.
	MustStay func(path string) bool
	Git      UserGitSettings
	// Restores means that the changes undo those of a command. A file may then
	// get the state that it had in the baseline before the last one.
	Restores bool
}

// Command is the guard of one command: it reverts forbidden changes in the
// roots added by Begin. The zero value guards no root. Its methods must not be
// called concurrently.
type Command struct {
	CommandRules
	guards     *Guards
	roots      []*RootGuard           // these count the command as running
	isReadOnly func(path string) bool // set by SetReadOnly, else nil
	reverted   []string               // absolute paths
	gaps       []string
}

// NewCommand returns the guard of a command that is about to start.
func (g *Guards) NewCommand(rules CommandRules) *Command {
	return &Command{CommandRules: rules, guards: g}
}

// skips reports whether a file is not checked: the user allows commands to
// write it, or the kernel protects it.
func (c *Command) skips(path string) bool {
	return c.Writable(path) || c.isReadOnly != nil && c.isReadOnly(path)
}

// Begin records the state of a root before the command starts. It returns nil
// if the root cannot be guarded; then Gaps gives the reason. dirState returns the
// state of a directory if it was read just before; else ok is false.
func (c *Command) Begin(root string, dirState func(dir string) (state DirState, ok bool)) *RootGuard {
	w, err := c.guards.guardOf(root)
	if err != nil {
		c.addGap(root, err)
		return nil
	}
	reverted, err := w.beginCommand(c, dirState)
	c.reverted = append(c.reverted, reverted...)
	if err != nil {
		c.addGap(root, err)
	}
	if err == errBusy {
		return nil
	}
	c.roots = append(c.roots, w)
	return w
}

// addGap records, for Gaps, that root is not, or not fully, guarded because of
// err.
func (c *Command) addGap(root string, err error) {
	c.gaps = append(c.gaps, fmt.Sprintf("files that commands leave in %s for other programs to run: %s", pathname.Escape(root), strings.ReplaceAll(err.Error(), "\n", "; ")))
}

// Gaps describes the roots that are not, or not fully, guarded, and why.
func (c *Command) Gaps() []string { return c.gaps }

// SetReadOnly tells the guard which paths are mounted read-only for the
// command, except for the directories writable. It then does not check a file of the baseline that is one of them or
// below one. There are three exceptions: a mount disappears when its file is
// removed or replaced from outside, links have no mounts, and a file with a
// second hard link can be written through that.
func (c *Command) SetReadOnly(paths, writable []string) {
	readOnly := map[string]os.FileInfo{}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 &&
			slices.ContainsFunc(c.roots, func(w *RootGuard) bool { return w.watchesAtOrBelow(path) }) {
			readOnly[path] = info
		}
	}
	linked := map[string]bool{}
	for _, w := range c.roots {
		w.addHardLinked(linked)
	}
	c.isReadOnly = func(path string) bool {
		if linked[path] {
			return false
		}
		for ; ; path = filepath.Dir(path) {
			if slices.Contains(writable, path) {
				return false
			}
			if was := readOnly[path]; was != nil {
				now, err := os.Lstat(path)
				return err == nil && os.SameFile(now, was)
			}
			if path == filepath.Dir(path) {
				return false
			}
		}
	}
}

// End reverts forbidden changes after the command has ended. It returns the
// absolute paths of all files that were reverted since NewCommand, sorted, and
// the directories with their copies. CheckWhileRunning must have returned.
func (c *Command) End() (reverted, copyDirs []string) {
	for _, w := range c.roots {
		reverted, err := w.endCommand(c)
		c.reverted = append(c.reverted, reverted...)
		if err != nil {
			c.addGap(w.root, err)
		}
	}
	for _, w := range c.roots {
		if len(c.reverted) > 0 && w.copies != nil && w.copies.count > 0 {
			copyDirs = append(copyDirs, w.copies.dir)
		}
	}
	c.roots = nil
	slices.Sort(c.reverted)
	return slices.Compact(c.reverted), copyDirs
}

// closeAll closes the files that are not nil, and ignores errors.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
