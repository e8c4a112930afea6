package walk

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// chunk is how many entries are held at once, except by Entries.
const chunk = 8192

// Node is one open directory with the ignore rules in force in it. It serves
// one goroutine at a time; nodes got from it by Enter are independent of it.
type Node struct {
	tree   *tree
	parent *Node // nil for the start
	dir    *sandbox.Dir
	path   string // relative to the start, slashes; "" for the start
	prefix string // what the paths of its entries begin with
	depth  int

	maybeSecret bool // as of dir

	outer *scope // the rules of the directories above
	own   *scope // with this directory's; nil until its ignore files were looked for
	view  *view  // own, prepared for the names in this directory

	reader  *sandbox.DirReader
	entries []sandbox.DirEntry // buffer
	begun   bool               // some of the entries were read
	memo    *Memo              // of the piece that next returned
	known   bool               // an earlier walk was here: what is in it is at hand
}

// Start opens the directory at path (as fs resolves it) and reads the ignore
// files of the directories above it. The errors are those of fs.OpenDir.
func Start(box *sandbox.FS, path string, opts Options) (*Node, error) {
	dir, err := box.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return startDir(dir, opts, outermost(box.Roots(), dir.Path())), nil
}

// startDir is Start with a directory that is already open. The node takes it
// over. top is the outermost root around it.
func startDir(dir *sandbox.Dir, opts Options, top string) *Node {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	if opts.MaxDepth <= 0 || opts.MaxDepth > MaxDepth {
		opts.MaxDepth = MaxDepth
	}
	t := &tree{opts: opts, top: top}
	if opts.Cache != nil {
		t.remember = opts.Cache.walks.Add(1) > 1
	}
	n := &Node{tree: t, dir: dir, maybeSecret: dir.MaybeSecret()}
	if !n.unruled() {
		n.outer = t.above(dir.Path())
	}
	return n
}

// unruled reports whether no ignore file counts, and settles it for the node.
func (n *Node) unruled() bool {
	if n.tree.opts.NoIgnore {
		n.own, n.view = emptyScope, emptyView
	}
	return n.tree.opts.NoIgnore
}

// Path returns the directory's path relative to the start, "." for the start.
func (n *Node) Path() string {
	if n.path == "" {
		return "."
	}
	return n.path
}

// Depth returns how many levels below the start the directory is.
func (n *Node) Depth() int { return n.depth }

// Dir returns the open directory, which remains the node's.
func (n *Node) Dir() *sandbox.Dir { return n.dir }

// Faults returns the ignore files that could not be read so far, in the
// whole tree.
func (n *Node) Faults() []Fault { return n.tree.listFaults() }

// Close closes the directory.
func (n *Node) Close() error {
	if n.dir == nil {
		return nil
	}
	return n.dir.Close()
}

// Enter opens the sub-directory name (one component, no link). Whether it is
// ignored does not matter. The new node is the caller's to close.
func (n *Node) Enter(name string) (*Node, error) {
	if err := n.load(nil, false); err != nil {
		return nil, err
	}
	dir, err := n.dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return n.child(dir, n.prefix+name), nil
}

// child makes the node of a sub-directory that was opened; path is relative
// to the start. The node's own rules must have been loaded.
func (n *Node) child(dir *sandbox.Dir, path string) *Node {
	child := &Node{
		tree: n.tree, parent: n, dir: dir, path: path, prefix: path + "/", depth: n.depth + 1,
		maybeSecret: dir.MaybeSecret(), outer: n.own,
	}
	child.unruled()
	return child
}

// Entries returns all entries of the directory, classified and sorted by
// name, hidden and ignored ones among them; .git is left out. Their Dir is
// open as long as the node is.
func (n *Node) Entries() ([]Entry, error) {
	var list []Entry
	err := n.Each(func(e *Entry) error {
		list = append(list, *e)
		return nil
	})
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// buffers are what reading a directory takes; one after the other shares
// them.
type buffers struct {
	reader  sandbox.DirReader
	entries []sandbox.DirEntry
}

// Each calls f with the entries that Entries returns, sorted within pieces of
// 8192 only, so that a directory of any size takes bounded memory. The entry
// serves during the call, its strings beyond. An error of f ends it and is
// returned, but for fs.SkipAll, which just ends it.
func (n *Node) Each(f func(*Entry) error) error {
	with, ok := n.tree.spare.Get().(*buffers)
	if !ok {
		with = new(buffers)
	}
	n.reader, n.entries = &with.reader, with.entries
	defer func() {
		with.entries = n.entries
		n.reader, n.entries = nil, nil
		n.tree.spare.Put(with)
	}()
	if err := n.rewind(); err != nil {
		return err
	}
	e := new(Entry)
	for {
		list, done, err := n.next()
		if err != nil {
			return err
		}
		for i := range list {
			n.entry(e, list, i)
			if isGit(e.Name) {
				continue
			}
			if err := f(e); err != nil {
				if errors.Is(err, fs.SkipAll) {
					return nil
				}
				return err
			}
		}
		if done {
			return nil
		}
	}
}

// rewind makes next begin again.
func (n *Node) rewind() error {
	n.begun = false
	return n.dir.Rewind()
}

// next returns the next piece of the directory, sorted by name. The names in
// it are paths relative to the start. It is valid until the next call, and
// not to be changed.
func (n *Node) next() (list []sandbox.DirEntry, done bool, err error) {
	whole := !n.begun
	n.begun, n.memo = true, nil
	if n.tree.remember && whole {
		list, done, err = n.recall()
	} else {
		list, done, err = n.read()
	}
	if err != nil {
		return nil, true, err
	}
	return list, done, n.load(list, done)
}

// recall returns the entries as the cache has them, or reads the first piece
// and has the cache remember it if it is all.
func (n *Node) recall() (list []sandbox.DirEntry, done bool, err error) {
	now := time.Now()
	st, err := n.dir.Stat()
	if err != nil {
		return n.read()
	}
	known := n.tree.opts.Cache.get(&st, n.prefix)
	n.known = known != nil
	if known == nil {
		if list, done, err = n.read(); !done || err != nil {
			return list, done, err
		}
		known = n.tree.opts.Cache.put(n.dir, &st, now, n.prefix, list)
	}
	if known != nil {
		list, n.memo = known.entries, &known.memo
	}
	return list, true, nil
}

// read reads the next piece of the directory and sorts it.
func (n *Node) read() (list []sandbox.DirEntry, done bool, err error) {
	prefix := n.prefix
	list, done, err = n.reader.Read(n.dir, prefix, n.entries[:0], chunk)
	if err != nil {
		return nil, true, err
	}
	n.entries = list
	slices.SortFunc(list, func(a, b sandbox.DirEntry) int {
		return strings.Compare(a.Name[len(prefix):], b.Name[len(prefix):])
	})
	return list, done, nil
}

// entry classifies the i-th of next's.
func (n *Node) entry(e *Entry, list []sandbox.DirEntry, i int) {
	raw := &list[i]
	name := raw.Name
	if n.path != "" {
		name = name[len(n.path)+1:]
	}
	*e = Entry{Path: raw.Name, Name: name, Type: raw.Type, Depth: n.depth + 1, MaybeSecret: raw.MaybeSecret || n.maybeSecret, Dir: n.dir, Memo: n.memo, Place: i}
	if e.Type == sandbox.TypeUnknown {
		if st, err := n.dir.Lstat(name); err == nil {
			e.Type = st.Mode.Type()
		}
	}
	verdict := noRule
	if len(n.view.sets) > 0 {
		verdict = n.view.match(name, e.Type.IsDir())
	}
	e.Ignored = verdict == ignored
	e.Hidden = name[0] == '.' && verdict != kept
}

// load reads the directory's own ignore files, once. With list, all its
// entries sorted if complete, it need not look for those that are not there.
func (n *Node) load(list []sandbox.DirEntry, complete bool) error {
	if n.own != nil {
		return nil
	}
	n.own = n.outer
	if has := n.finder(list, complete); has != nil {
		n.own = n.tree.enter(n.outer, n.dir, n.path, has)
	}
	n.view = n.own.view(n.path)
	return nil
}

// finder returns a function that says which names may be there, nil if none
// of those that matter is.
func (n *Node) finder(list []sandbox.DirEntry, complete bool) func(string) bool {
	if !complete {
		return func(string) bool { return true }
	}
	at := func(i int) string { return list[i].Name[len(n.prefix):] }
	first := sort.Search(len(list), func(i int) bool { return at(i) >= "." })
	var found []string
	for i := first; i < len(list) && at(i)[0] == '.'; i++ {
		if slices.Contains(telling, at(i)) {
			found = append(found, at(i))
		}
	}
	if found == nil {
		return nil
	}
	return func(name string) bool { return slices.Contains(found, name) }
}

// telling are the names that change the rules in force.
var telling = []string{".git", ".gitignore", ".ignore", ".jj", ".rgignore"}
