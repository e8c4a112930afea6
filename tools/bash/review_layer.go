package main

import (
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// pendingLayer is the layer with the changes of one command; nil for a command
// that writes directly into the roots.
type pendingLayer struct {
	reviewer *reviewer
	set      *changes.Set
	roots    []string // of the set
	layer    *changes.Layer
	ended    chan struct{}   // closed once list and err are known
	entries  []changes.Entry // the changes
	err      error           // of listing the changes
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

// describe waits for the end of the layer and describes its changes, for the
// last line of an answer; "" in mode keep.
func (a *pendingLayer) describe(fsys *sandbox.FS) string {
	if a == nil {
		return ""
	}
	<-a.ended
	if a.err != nil {
		return "the changes are stored outside the roots, but cannot be listed: " + a.err.Error()
	}
	text := summarizeChanges(fsys, a.roots, a.entries)
	switch {
	case text == "":
		return "no changes"
	case a.reviewer.mode == discardChanges:
		return "discarded: " + text
	}
	if linked := linkedNames(fsys, a.roots, a.entries); linked != "" {
		text += "; hard links, of which the command saw the other names unchanged: " + linked
	}
	return fmt.Sprintf("changes %s, not applied yet: %s; bash_job {\"action\":\"apply\",\"job_id\":%q} applies them, diff shows them, discard drops them", a.set.ID(), text, a.set.ID())
}

// beginLayer returns the layer for a command: of the current set of changes if it has
// the roots of fsys, else of a new set. In mode keep it returns nil.
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

// hasRootsOf reports whether a set has the same writable roots as fsys, in the same
// order. It is false for a set that cannot be read.
func hasRootsOf(set *changes.Set, fsys *sandbox.FS) bool {
	roots, err := set.Roots()
	return err == nil && slices.Equal(roots, writableRoots(fsys))
}

// isRelevant reports whether a change matters: it is false for directories of
// which only the time differs.
func isRelevant(e changes.Entry) bool { return e.Kind != changes.Touched || !e.Dir }
