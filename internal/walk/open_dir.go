package walk

import (
	"errors"
	"strings"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// openChild opens a sub-directory of parent. If no file descriptor is free, it
// closes directories and tries again.
func (w *walker) openChild(parent *Node, path string) (*Node, error) {
	name := path[len(parent.prefix):]
	dir, err := w.openBelow(parent, name)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		w.closeUnused()
		dir, err = w.openBelow(parent, name)
	}
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.open++
	w.mu.Unlock()
	return parent.child(dir, path), nil
}

// openBelow opens the sub-directory name of parent. If parent's own directory
// is closed, it opens it again from the nearest open directory above.
func (w *walker) openBelow(parent *Node, name string) (*sandbox.Dir, error) {
	var chain []*Node // closed nodes, innermost first
	w.mu.Lock()
	top := parent
	for top.dir == nil {
		chain = append(chain, top)
		top = top.parent
	}
	at := top.dir
	if top != parent {
		// Another worker may close the ancestor: open it again while holding
		// the lock.
		var err error
		last := chain[len(chain)-1]
		at, err = at.OpenDir(last.name())
		if err != nil {
			w.mu.Unlock()
			return nil, err
		}
		chain = chain[:len(chain)-1]
	}
	w.mu.Unlock()
	if top == parent {
		if parent.fromCache {
			return at.OpenDirCached(name)
		}
		return at.OpenDir(name)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		next, err := at.OpenDir(chain[i].name())
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	defer at.Close()
	return at.OpenDir(name)
}

// name returns the last element of the node's path.
func (n *Node) name() string { return n.path[strings.LastIndexByte(n.path, '/')+1:] }
