package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Modes of --changes.
const (
	keepChanges    = "keep"    // commands write into the roots
	reviewChanges  = "review"  // changes wait until they are applied or discarded
	discardChanges = "discard" // changes are shown and dropped
)

// reviewer keeps the changes of commands apart from the roots, in the modes
// review and discard. It is safe for concurrent use.
type reviewer struct {
	mode  string // keepChanges, reviewChanges or discardChanges
	state *state.Store
	tasks sync.WaitGroup // one for each layer whose command has not ended

	mu      sync.Mutex
	current *changes.Set // for the next command; nil: a new set
}

// store returns the store of pending changes. It returns SANDBOX_UNAVAILABLE
// without a state directory.
func (v *reviewer) store() (*changes.Store, error) {
	dir, err := v.state.PendingChangesDir()
	if err != nil {
		return nil, toolerr.New(toolerr.SandboxUnavailable, "changes cannot be stored without a state directory: %w; give one with --state DIR", err)
	}
	return changes.New(dir), nil
}

// writableRoots returns the paths of the roots that are not read-only.
func writableRoots(fsys *sandbox.FS) (paths []string) {
	for _, root := range fsys.Roots() {
		if !root.ReadOnly {
			paths = append(paths, root.Path)
		}
	}
	return paths
}

// discardUnused discards a set without a decision of the user, unless another
// command still uses it.
func (v *reviewer) discardUnused(set *changes.Set) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if set.Discard() == nil && v.current == set {
		v.current = nil
	}
}

// maxListed bounds the changed files that a summary names.
const maxListed = 8

// summarizeChanges counts and names changes: "2 created, 1 deleted: +a, +b,
// -c". Files in a .git directory are only counted. It returns "" if nothing
// changed.
func summarizeChanges(fsys *sandbox.FS, roots []string, list []changes.Entry) string {
	counts := map[changes.Kind]int{}
	var names []string
	inGit := 0
	for _, e := range changes.ShownEntries(list) {
		switch {
		case isGitData(e.Path):
			if e.IsShown() {
				inGit++
			}
		default:
			counts[e.Kind]++
			if len(names) <= maxListed {
				name := fsys.Display(filepath.Join(roots[e.Root], filepath.FromSlash(e.Path)))
				if e.Kind == changes.Created && e.Dir {
					name += "/"
				}
				names = append(names, kindMarks[e.Kind]+quoteName(name))
			}
		}
	}
	var parts []string
	for _, kind := range []changes.Kind{changes.Created, changes.Modified, changes.Deleted} {
		if counts[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	if inGit > 0 {
		parts = append(parts, textfmt.Count(inGit, "file")+" of git's own")
	}
	text := strings.Join(parts, ", ")
	switch {
	case len(names) > maxListed:
		text += ": " + strings.Join(names[:maxListed], " ") + " …"
	case len(names) > 0:
		text += ": " + strings.Join(names, " ")
	case text == "" && slices.ContainsFunc(list, isRelevant):
		text = "times only"
	}
	return text
}

// kindMarks are the characters before the names of changed files.
var kindMarks = map[changes.Kind]string{changes.Created: "+", changes.Modified: "~", changes.Deleted: "-"}

// isGitData reports whether a path is inside a .git directory and is no setting, which
// a person wants to see: config, config.worktree, and everything in info and hooks.
func isGitData(rel string) bool {
	_, inside, ok := strings.Cut("/"+rel, "/.git/")
	first, _, _ := strings.Cut(inside, "/")
	return ok && !slices.Contains([]string{"config", "config.worktree", "info", "hooks"}, first)
}

// find returns the set of pending changes with an id, among the sets of this server's
// writable roots. It returns NOT_FOUND, with the known ids, if there is none.
func (v *reviewer) find(fsys *sandbox.FS, id string) (*changes.Set, error) {
	store, err := v.store()
	if err != nil {
		return nil, err
	}
	var known []string
	for _, set := range store.List(writableRoots(fsys)) {
		if set.ID() == id {
			return set, nil
		}
		known = append(known, set.ID())
	}
	if len(known) == 0 {
		return nil, toolerr.New(toolerr.NotFound, "no pending changes %q: all changes were applied or discarded; to make them again, run the command again", shorten(escapeUnsafe(id).text, 40))
	}
	return nil, toolerr.New(toolerr.NotFound, "no pending changes %q; the ids of pending changes are %s", shorten(escapeUnsafe(id).text, 40), strings.Join(known, ", "))
}

// hasDir reports whether the next command will see a directory that may exist
// only in pending changes.
func (v *reviewer) hasDir(path string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current != nil && v.current.HasDir(path)
}

// unsetCurrent makes the next command begin a new set, if set is the current
// one.
func (v *reviewer) unsetCurrent(set *changes.Set) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current != nil && v.current.ID() == set.ID() {
		v.current = nil
	}
}
