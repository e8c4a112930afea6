package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
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
	mode  string
	state *state.Store
	tasks sync.WaitGroup // one for each layer whose command has not ended

	mu      sync.Mutex
	current *changes.Set // for the next command; nil: a new set
}

// pendingLayer is the layer with the changes of one command; nil for a command
// that writes directly into the roots.
type pendingLayer struct {
	reviewer *reviewer
	set      *changes.Set
	roots    []string // of the set
	layer    *changes.Layer
	ended    chan struct{}   // closed once list and err are known
	entries  []changes.Entry // the changes
	err      error
}

// store returns the store of pending changes. It returns SANDBOX_UNAVAILABLE
// without a state directory.
func (v *reviewer) store() (*changes.Store, error) {
	dir, err := v.state.PendingChanges()
	if err != nil {
		return nil, toolerr.New(toolerr.SandboxUnavailable, "changes cannot be kept apart without a state directory: %w; give one with --state DIR", err)
	}
	return changes.New(dir), nil
}

// beginLayer returns the layer for a command, or nil in mode keep.
func (v *reviewer) beginLayer(fsys *sandbox.FS, command string) (*pendingLayer, error) {
	if v.mode == keepChanges {
		return nil, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	set := v.current
	if set != nil && !hasRootsOf(set, fsys) {
		set = nil
	}
	var layer *changes.Layer
	for {
		if set == nil {
			store, err := v.store()
			if err == nil {
				set, err = store.Create(writableRoots(fsys))
			}
			if err != nil {
				return nil, err
			}
		}
		var err error
		if layer, err = set.Begin(shorten(command, 200)); err == nil {
			break
		}
		if set != v.current || toolerr.CodeOf(err) != toolerr.NotFound {
			return nil, err
		}
		set = nil // applied or discarded by another process
	}
	if v.mode == reviewChanges {
		v.current = set
	}
	return &pendingLayer{reviewer: v, set: set, roots: writableRoots(fsys), layer: layer, ended: make(chan struct{})}, nil
}

// hasRootsOf reports whether a set has the same writable roots as fsys.
func hasRootsOf(set *changes.Set, fsys *sandbox.FS) bool {
	roots, err := set.Roots()
	return err == nil && slices.Equal(roots, writableRoots(fsys))
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

// layers returns the layers to start the command with; nil for a nil
// pendingLayer.
func (a *pendingLayer) layers() (layers []proc.Layer) {
	if a == nil {
		return nil
	}
	for _, m := range a.layer.Mounts() {
		layers = append(layers, proc.Layer(m))
	}
	return layers
}

// endAfter ends the layer in the background when the process has ended; at once
// if process is nil. It discards the set if it has no changes, and in mode
// discard.
func (a *pendingLayer) endAfter(process *proc.Process) {
	if a == nil {
		return
	}
	a.reviewer.tasks.Go(func() {
		defer close(a.ended)
		if process != nil {
			<-process.Done()
		}
		a.entries, a.err = a.layer.End()
		if a.reviewer.mode == discardChanges || a.err == nil && !slices.ContainsFunc(a.entries, isRelevant) {
			a.reviewer.discardUnused(a.set)
		}
	})
}

// isRelevant reports whether a change matters: it is false for directories of
// which only the time differs.
func isRelevant(e changes.Entry) bool { return e.Kind != changes.Touched || !e.Dir }

// discardUnused discards a set without a decision of the user, unless another
// command still uses it.
func (v *reviewer) discardUnused(set *changes.Set) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if set.Discard() == nil && v.current == set {
		v.current = nil
	}
}

// describe waits for the end of the layer and describes its changes, for the
// last line of an answer; "" in mode keep.
func (a *pendingLayer) describe(fsys *sandbox.FS) string {
	if a == nil {
		return ""
	}
	<-a.ended
	if a.err != nil {
		return "the changes are kept apart, but cannot be listed: " + a.err.Error()
	}
	text := summarizeChanges(fsys, a.roots, a.entries)
	switch {
	case text == "":
		return "no changes"
	case a.reviewer.mode == discardChanges:
		return "discarded: " + text
	}
	return fmt.Sprintf("changes %s, not in the tree yet: %s; bash_job {\"action\":\"apply\",\"job_id\":%q} puts them there, diff shows and discard drops them", a.set.ID(), text, a.set.ID())
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
	for _, e := range list {
		switch {
		case !e.Shown():
		case isInGitDir(e.Path):
			inGit++
		default:
			counts[e.Kind]++
			if len(names) <= maxListed {
				names = append(names, kindMarks[e.Kind]+fsys.Display(filepath.Join(roots[e.Root], filepath.FromSlash(e.Path))))
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

var kindMarks = map[changes.Kind]string{changes.Created: "+", changes.Modified: "~", changes.Deleted: "-"}

// isInGitDir reports whether a path is inside a .git directory.
func isInGitDir(rel string) bool {
	return strings.HasPrefix(rel, ".git/") || strings.Contains(rel, "/.git/")
}

// find returns the pending changes with an id, among those of this server's
// roots. It returns NOT_FOUND, with the known ids, if there are none.
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
		return nil, toolerr.New(toolerr.NotFound, "there are no pending changes %q, and no others: they were applied or discarded", shorten(escapeUnsafe(id).text, 40))
	}
	return nil, toolerr.New(toolerr.NotFound, "there are no pending changes %q; there are %s", shorten(escapeUnsafe(id).text, 40), strings.Join(known, ", "))
}

// callChanges handles the actions diff, apply and discard of bash_job.
func (s *shell) callChanges(ctx context.Context, args jobArguments) (*mcpkit.Result, error) {
	fsys, err := s.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	if args.JobID == "" {
		return nil, toolerr.New(toolerr.MissingParameter, "job_id is missing: name the changes, as the answer of bash or {\"action\":\"list\"} shows them")
	}
	set, err := s.review.find(fsys, args.JobID)
	if err != nil {
		return nil, err
	}
	switch args.Action {
	case "diff":
		return diffResult(ctx, fsys, set, args.Files)
	case "discard":
		if len(args.Files) > 0 {
			return nil, toolerr.New(toolerr.InvalidParams, "discard drops all changes of %s: apply the files to keep, then discard the rest", set.ID())
		}
		if err := set.Discard(); err != nil {
			return nil, err
		}
		s.review.startNewSet(set)
		return &mcpkit.Result{Text: "discarded the changes " + set.ID() + "\n", Meta: meta{}}, nil
	}
	return s.applyChanges(fsys, set, args.Files)
}

// hasDir reports whether the next command will see a directory that may exist
// only in pending changes.
func (v *reviewer) hasDir(path string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current != nil && v.current.HasDir(path)
}

// startNewSet makes the next command begin a new set, if set is the current
// one.
func (v *reviewer) startNewSet(set *changes.Set) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current != nil && v.current.ID() == set.ID() {
		v.current = nil
	}
}

// applyChanges applies changes to the roots, except those of protected files.
// files selects some; nil: all.
func (s *shell) applyChanges(fsys *sandbox.FS, set *changes.Set, files []string) (*mcpkit.Result, error) {
	runner, err := s.runner()
	if err != nil {
		return nil, err
	}
	var report changes.Report
	taken, aside, gaps := runner.WithWriteGuard(fsys, func() { report, err = set.Apply(files, proc.WhyProtected(fsys)) })
	var b strings.Builder
	if len(taken) > 0 {
		fmt.Fprintf(&b, "%s%s\n", takenBackText(displayPaths(fsys, taken)), keptCopiesText(aside))
	}
	for _, gap := range gaps {
		fmt.Fprintf(&b, "not looked at: %s\n", gap)
	}
	for _, refused := range report.Refused {
		fmt.Fprintf(&b, "not applied: %s %s\n", fsys.Display(refused.Path), refused.Why)
	}
	if err != nil {
		return &mcpkit.Result{Text: b.String(), Meta: meta{}}, err
	}
	applied := appliedText(report.Applied)
	fmt.Fprintf(&b, "applied %s of changes %s", cmp.Or(applied, "nothing"), set.ID())
	if report.Left > 0 {
		fmt.Fprintf(&b, "; %s of them left", textfmt.Count(report.Left, "change"))
	} else {
		s.review.startNewSet(set)
	}
	return &mcpkit.Result{Text: b.String() + "\n", Meta: meta{}}, nil
}

// appliedText counts applied changes: "2 created, 1 deleted"; "" for none.
func appliedText(list []changes.Change) string {
	counts := map[changes.Kind]int{}
	for _, c := range list {
		if c.Shown() {
			counts[c.Kind]++
		}
	}
	var parts []string
	for _, kind := range []changes.Kind{changes.Created, changes.Modified, changes.Deleted} {
		if counts[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	return strings.Join(parts, ", ")
}

// listChanges describes the pending changes of the roots, one set a line; "" in
// mode keep.
func (s *shell) listChanges(ctx context.Context) string {
	if s.review.mode == keepChanges {
		return ""
	}
	fsys, err := s.box.FS(ctx)
	if err != nil {
		return ""
	}
	store, err := s.review.store()
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, set := range store.List(writableRoots(fsys)) {
		roots, err := set.Roots()
		if err != nil {
			continue // applied or discarded meanwhile
		}
		list, err := set.Changes()
		text := summarizeChanges(fsys, roots, changes.Entries(list))
		if err != nil {
			text = err.Error()
		}
		fmt.Fprintf(&b, "changes %s  %s\n", set.ID(), cmp.Or(text, "none yet"))
	}
	return b.String()
}
