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

// pieceSize is the number of entries held in memory at a time, except by
// Entries. A larger directory is read in pieces.
const pieceSize = 8192

// Node is an open directory of a walk, with its ignore rules. It must not be
// used concurrently; nodes returned by Enter are independent of it.
type Node struct {
	tree   *tree
	parent *Node // nil for the start
	dir    *sandbox.Dir
	path   string // relative to the start, with slashes; "" for the start
	prefix string // of the paths of its entries
	depth  int

	maybeSecret bool // as dir.MaybeSecret

	outerScope *scope      // the rules of the directories above
	ownScope   *scope      // with the rules of this directory; nil until its ignore files have been read
	matcher    *dirMatcher // ownScope, prepared for the names in this directory

	reader    *sandbox.DirReader
	entries   []sandbox.DirEntry // buffer
	begun     bool               // some of the entries have been read
	memo      *Memo              // of the piece that nextPiece returned
	fromCache bool               // the cache had the entries: an earlier walk opened the sub-directories
}

// Start opens the directory at path, resolved by box, and reads the ignore
// files of the directories above it. The caller must close the node. It returns
// the errors of FS.OpenDir.
func Start(box *sandbox.FS, path string, opts Options) (*Node, error) {
	dir, err := box.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return startDir(dir, opts, outermostRoot(box.Roots(), dir.Path())), nil
}

// startDir returns a node for an open directory, as Start does for a path. top is
// the outermost root that contains it. Closing the node closes dir.
func startDir(dir *sandbox.Dir, opts Options, top string) *Node {
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	if opts.MaxDepth <= 0 || opts.MaxDepth > MaxDepth {
		opts.MaxDepth = MaxDepth
	}
	t := &tree{opts: opts, topRoot: top}
	if opts.Cache != nil {
		t.cacheUsed = opts.Cache.walks.Add(1) > 1
	}
	n := &Node{tree: t, dir: dir, maybeSecret: dir.MaybeSecret()}
	if !n.applyNoIgnore() {
		n.outerScope = t.scopeAbove(dir.Path())
	}
	return n
}

// applyNoIgnore sets empty rules if Options.NoIgnore is set, and reports
// whether it is.
func (n *Node) applyNoIgnore() bool {
	if n.tree.opts.NoIgnore {
		n.ownScope, n.matcher = emptyScope, emptyMatcher
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

// Depth returns the number of levels between the start and the directory.
func (n *Node) Depth() int { return n.depth }

// Dir returns the open directory, which the node still owns.
func (n *Node) Dir() *sandbox.Dir { return n.dir }

// Faults returns the ignore files of the whole tree that could not be read so
// far.
func (n *Node) Faults() []Fault { return n.tree.listFaults() }

// Close closes the directory. Nodes of sub-directories stay open.
func (n *Node) Close() error {
	if n.dir == nil {
		return nil
	}
	return n.dir.Close()
}

// Enter opens the sub-directory name, even if it is ignored. name is one component and
// must not be a link. It returns the errors of sandbox.Dir.OpenDir, and that of reading
// the ignore files. The caller must close the new node.
func (n *Node) Enter(name string) (*Node, error) {
	if err := n.loadRules(nil, false); err != nil {
		return nil, err
	}
	dir, err := n.dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return n.child(dir, n.prefix+name), nil
}

// child returns the node of an open sub-directory. path is relative to the
// start. The rules of n must have been loaded.
func (n *Node) child(dir *sandbox.Dir, path string) *Node {
	child := &Node{
		tree: n.tree, parent: n, dir: dir, path: path, prefix: path + "/", depth: n.depth + 1,
		maybeSecret: dir.MaybeSecret(), outerScope: n.ownScope,
	}
	child.applyNoIgnore()
	return child
}

// Entries returns all entries of the directory, classified and sorted by name, including
// hidden and ignored ones but not .git. Their Dir is open as long as the node is. With an
// error, the list has the entries before it.
func (n *Node) Entries() ([]Entry, error) {
	var list []Entry
	err := n.Each(func(e *Entry) error {
		list = append(list, *e)
		return nil
	})
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// buffers holds the memory for reading a directory, for use by another Each.
type buffers struct {
	reader  sandbox.DirReader
	entries []sandbox.DirEntry
}

// Each calls f with the entries that Entries returns, sorted only within pieces
// of 8192, so that a directory of any size takes bounded memory. The entry is
// valid during the call, its strings also later. If f returns an error, Each
// ends and returns it; for fs.SkipAll it returns nil.
func (n *Node) Each(f func(*Entry) error) error {
	with, ok := n.tree.bufferPool.Get().(*buffers)
	if !ok {
		with = new(buffers)
	}
	n.reader, n.entries = &with.reader, with.entries
	defer func() {
		with.entries = n.entries
		n.reader, n.entries = nil, nil
		n.tree.bufferPool.Put(with)
	}()
	if err := n.rewind(); err != nil {
		return err
	}
	e := new(Entry)
	for {
		list, done, err := n.nextPiece()
		if err != nil {
			return err
		}
		for i := range list {
			n.fillEntry(e, list, i)
			if isGitEntry(e.Name) {
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

// rewind makes nextPiece start with the first piece again.
func (n *Node) rewind() error {
	n.begun = false
	return n.dir.Rewind()
}

// nextPiece returns the next piece of the directory, sorted by name, and loads
// the directory's rules first. done means that no piece follows. The names in
// the list are paths relative to the start. The list is valid until the next
// call and must not be changed.
func (n *Node) nextPiece() (list []sandbox.DirEntry, done bool, err error) {
	whole := !n.begun
	n.begun, n.memo = true, nil
	if n.tree.cacheUsed && whole {
		list, done, err = n.readCached()
	} else {
		list, done, err = n.readPiece()
	}
	if err != nil {
		return nil, true, err
	}
	return list, done, n.loadRules(list, done)
}

// readCached returns all entries from the cache. If the cache does not have them, it
// reads the first piece, and caches that if it is the whole directory. done and err are
// as for nextPiece.
func (n *Node) readCached() (list []sandbox.DirEntry, done bool, err error) {
	now := time.Now()
	st, err := n.dir.Stat()
	if err != nil {
		return n.readPiece()
	}
	known := n.tree.opts.Cache.get(&st, n.prefix)
	n.fromCache = known != nil
	if known == nil {
		if list, done, err = n.readPiece(); !done || err != nil {
			return list, done, err
		}
		known = n.tree.opts.Cache.put(n.dir, &st, now, n.prefix, list)
	}
	if known != nil {
		list, n.memo = known.entries, &known.memo
	}
	return list, true, nil
}

// readPiece reads and sorts the next piece of the directory into n.entries. done is true
// if no piece follows, and with an error.
func (n *Node) readPiece() (list []sandbox.DirEntry, done bool, err error) {
	prefix := n.prefix
	list, done, err = n.reader.Read(n.dir, prefix, n.entries[:0], pieceSize)
	if err != nil {
		return nil, true, err
	}
	n.entries = list
	slices.SortFunc(list, func(a, b sandbox.DirEntry) int {
		return strings.Compare(a.Name[len(prefix):], b.Name[len(prefix):])
	})
	return list, done, nil
}

// fillEntry sets e to list[i], with Ignored and Hidden as the rules say.
func (n *Node) fillEntry(e *Entry, list []sandbox.DirEntry, i int) {
	raw := &list[i]
	name := raw.Name
	if n.path != "" {
		name = name[len(n.path)+1:]
	}
	*e = Entry{Path: raw.Name, Name: name, Type: raw.Type, Depth: n.depth + 1, MaybeSecret: raw.MaybeSecret || n.maybeSecret, Dir: n.dir, Memo: n.memo, MemoIndex: i}
	if e.Type == sandbox.TypeUnknown {
		if st, err := n.dir.Lstat(name); err == nil {
			e.Type = st.Mode.Type()
		}
	}
	verdict := noRule
	if len(n.matcher.sets) > 0 {
		verdict = n.matcher.verdictOn(name, e.Type.IsDir())
	}
	e.Ignored = verdict == ignored
	e.Hidden = name[0] == '.' && verdict != reincluded
}

// loadRules reads the directory's own ignore files, at the first call. list are
// the directory's entries, sorted. If complete is set they are all, and
// loadRules does not look for files that are not among them.
func (n *Node) loadRules(list []sandbox.DirEntry, complete bool) error {
	if n.ownScope != nil {
		return nil
	}
	n.ownScope = n.outerScope
	if has := n.ruleFileLookup(list, complete); has != nil {
		n.ownScope = n.tree.dirScope(n.outerScope, n.dir, n.path, has)
	}
	n.matcher = n.ownScope.matcherFor(n.path)
	return nil
}

// ruleFileLookup returns a function that reports whether a file with a name
// from ruleFileNames may exist. It returns nil if list is complete and has
// none.
func (n *Node) ruleFileLookup(list []sandbox.DirEntry, complete bool) func(string) bool {
	if !complete {
		return func(string) bool { return true }
	}
	at := func(i int) string { return list[i].Name[len(n.prefix):] }
	first := sort.Search(len(list), func(i int) bool { return at(i) >= "." })
	var found []string
	for i := first; i < len(list) && at(i)[0] == '.'; i++ {
		if slices.Contains(ruleFileNames, at(i)) {
			found = append(found, at(i))
		}
	}
	if found == nil {
		return nil
	}
	return func(name string) bool { return slices.Contains(found, name) }
}

// ruleFileNames are the names of files that change the ignore rules.
var ruleFileNames = []string{".git", ".gitignore", ".ignore", ".jj", ".rgignore"}
