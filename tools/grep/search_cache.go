package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
)

const (
	// workMemory bounds the memory of searching, in addition to one large
	// file and to the caches, in bytes.
	workMemory = 18 << 20
	// dirCacheBytes bounds the cache of directories: some 400 000 entries.
	dirCacheBytes = 32 << 20
	// memoryStep is the growth of the caches between two settings of the
	// memory limit, in bytes.
	memoryStep = 8 << 20
	// maxIndexed is the size of the largest file that is indexed, in bytes.
	maxIndexed = 8 << 20
	// queueChunk is the number of files queued at a time.
	queueChunk = 256
	// maxUnknown bounds the unknown files that one worker records.
	maxUnknown = 100_000
)

// searchCache makes later searches of the same files faster. It has the index,
// the directory cache, and the goroutine that fills the index while no call is
// in flight. Nothing runs before the first answer. A nil searchCache caches
// nothing. It is safe for concurrent use.
type searchCache struct {
	index *index.Index
	dirs  *walk.Cache
	fs    atomic.Pointer[sandbox.FS] // of the latest call
	buf   []byte                     // for readForIndex, in the builder's goroutine

	mu      sync.Mutex
	builder *index.Builder // nil before the first answer
	closed  atomic.Bool
	queuing sync.WaitGroup // goroutines that queue files

	limitedSize atomic.Int64 // size of the caches when the memory limit was last set
}

// newSearchCache returns a cache with an index of at most size bytes.
func newSearchCache(size int64) *searchCache {
	return &searchCache{index: index.New(size), dirs: walk.NewCache(dirCacheBytes)}
}

// close stops the background work and waits for it.
func (w *searchCache) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.closed.Store(true)
	builder := w.builder
	w.mu.Unlock()
	if builder != nil {
		builder.Close()
	}
	w.queuing.Wait()
}

// pauseIndexing pauses the builder during a call, until end is called. Later
// reads for the index use fsys.
func (w *searchCache) pauseIndexing(fsys *sandbox.FS) (end func()) {
	if w == nil {
		return func() {}
	}
	w.fs.Store(fsys)
	w.setMemoryLimit()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.builder == nil {
		return func() {}
	}
	return w.builder.Pause()
}

// walkCache returns the directory cache for walks, or nil.
func (w *searchCache) walkCache() *walk.Cache {
	if w == nil {
		return nil
	}
	return w.dirs
}

// hasFiles reports whether the index has any files.
func (w *searchCache) hasFiles() bool {
	if w == nil {
		return false
	}
	files, _ := w.index.Stats()
	return files > 0
}

// queueUnknown queues files below dir for the index. They are read once no call
// is in flight. lists have paths relative to dir, with slashes; it changes
// them.
func (w *searchCache) queueUnknown(dir string, lists [][]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed.Load() {
		return
	}
	if w.builder == nil {
		w.builder = index.StartBuilder(context.Background(), w.index, w.readForIndex)
	}
	builder := w.builder
	w.queuing.Go(func() {
		for _, list := range lists {
			for part := range slices.Chunk(list, queueChunk) {
				if w.closed.Load() { // a one-shot process must not wait
					return
				}
				for i, path := range part {
					part[i] = filepath.Join(dir, filepath.FromSlash(path))
				}
				builder.Queue(part)
			}
		}
	})
}

// errNotIndexable is returned for a file that must not be indexed.
var errNotIndexable = errors.New("not added to the index")

// readForIndex reads a file for the index, decoded as for a search. It returns
// errNotIndexable for a secret, on file systems that are not local, if the file changed
// meanwhile, and for masked files: under another name such a file may be searched
// unmasked.
func (w *searchCache) readForIndex(_ context.Context, path string) (index.Content, error) {
	w.setMemoryLimit()
	var c index.Content
	fsys := w.fs.Load()
	if fsys.Denied(path) || fsys.Masked(path) {
		return c, errNotIndexable
	}
	dir, err := fsys.WithNearbySuggestions().OpenDir(filepath.Dir(path))
	if err != nil {
		return c, err
	}
	defer dir.Close()
	if !dir.IsLocal() { // its times may predate a change
		return c, errNotIndexable
	}
	name := filepath.Base(path)
	c.Taken = time.Now()
	before, err := dir.Lstat(name)
	if err != nil {
		return c, err
	}
	if fsys.MaskedFile(path, before) {
		return c, errNotIndexable
	}
	c.Key = index.KeyOf(before)
	if before.Size > maxIndexed {
		err = w.readHead(dir, name, &c)
	} else {
		err = w.readWhole(dir, name, &c)
	}
	if err != nil {
		return c, err
	}
	if after, err := dir.Lstat(name); err != nil || index.KeyOf(after) != c.Key {
		return c, errNotIndexable
	}
	return c, nil
}

// readWhole reads a whole file into c.
func (w *searchCache) readWhole(dir *sandbox.Dir, name string, c *index.Content) error {
	raw, st, err := dir.ReadFile(name, w.buf, maxIndexed)
	if err != nil {
		return err
	}
	if w.buf = raw; cap(raw) > ownBufferSize {
		w.buf = nil
	}
	if index.KeyOf(st) != c.Key {
		return errNotIndexable
	}
	w.classify(raw, c)
	return nil
}

// readHead reads enough of a file to tell whether it is binary, and sets c
// without text.
func (w *searchCache) readHead(dir *sandbox.Dir, name string, c *index.Content) error {
	file, st, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if index.KeyOf(st) != c.Key {
		return errNotIndexable
	}
	head := make([]byte, textfile.HeadSize)
	n, err := io.ReadFull(file, head)
	if err != nil {
		return err // it has shrunk
	}
	w.classify(head[:n], c)
	c.Text, c.Opaque = nil, !c.Binary
	return nil
}

// classify sets c's text, or that it is binary or opaque. raw is the file or
// its beginning. Private keys are opaque, since a key may be allowed under one
// of its names, and so are files in an encoding that must be guessed: every
// search checks them.
func (w *searchCache) classify(raw []byte, c *index.Content) {
	if c.Opaque = beginsLikeKey(raw); c.Opaque {
		return
	}
	if c.Binary = textfile.HasBinarySignature(raw); c.Binary {
		return
	}
	text := searchableText(raw, false)
	c.Binary = bytes.IndexByte(text, 0) >= 0
	if bomEncoding(raw) == "" {
		c.Opaque = c.Binary && textfile.GuessUTF16(raw) != "" || !c.Binary && isNotUTF8(text)
	}
	if c.Binary = c.Binary && !c.Opaque; !c.Binary && !c.Opaque {
		c.Text = text
	}
}

// setMemoryLimit sets the memory limit by the size of the caches, so that the
// collector neither lets garbage grow to a multiple of it nor runs constantly
// to reach an impossible limit.
func (w *searchCache) setMemoryLimit() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	size := w.index.Size() + int64(w.dirs.Size())
	if told := w.limitedSize.Load(); size > told+memoryStep || size < told-memoryStep {
		w.limitedSize.Store(size)
		debug.SetMemoryLimit(workMemory + size + memoryStep)
	}
}

// skipByIndex reports whether the index makes reading a file unnecessary, and
// then counts the file as if it had been read. Otherwise it sets w.keptText if
// the index kept the file's text.
func (w *searcher) skipByIndex(e *walk.Entry) bool {
	w.keptText = nil
	st, err := e.Lstat()
	if err != nil || !st.Mode.IsRegular() || st.Size > w.MaxFileSize {
		return false
	}
	if e.Memo != w.memo {
		w.switchDir(e.Memo)
	}
	switch w.dirLookup.Lookup(e.MemoIndex, index.KeyOf(st)) {
	case index.Missing:
		w.recordSearched(e.Path, st, 0, "")
		return true
	case index.Binary:
		w.outcomes[binary]++
		return true
	case index.Maybe:
		w.keptText, w.keptStat = w.dirLookup.Text(), st
		return false
	}
	w.recordUnknown(e.Path)
	return false
}

// switchDir switches w.dirLookup to the directory that the walk visits now,
// identified by its memo in the walk cache; nil if it has none.
func (w *searcher) switchDir(memo *walk.Memo) {
	w.memo = memo
	if memo == nil {
		w.dirLookup.SwitchDir(nil)
		return
	}
	page, _ := memo.Value().(index.Page)
	if page == nil {
		page = memo.StoreIfEmpty(index.NewPage(memo.EntryCount())).(index.Page)
	}
	w.dirLookup.SwitchDir(page)
}

// recordUnknown records a file that the index does not know.
func (w *searcher) recordUnknown(path string) {
	if w.recordsUnknown && len(w.unknown) < maxUnknown {
		w.unknown = append(w.unknown, path)
	}
}

// waitIdle waits until all queued files have been indexed. It returns ctx's
// error if ctx ends first.
func (w *searchCache) waitIdle(ctx context.Context) error {
	w.queuing.Wait()
	w.mu.Lock()
	builder := w.builder
	w.mu.Unlock()
	if builder == nil {
		return nil
	}
	return builder.WaitIdle(ctx)
}
