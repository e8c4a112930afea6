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
	// file and to the caches.
	workMemory = 18 << 20
	// dirCache bounds the cache of directories, in bytes: some 400 000
	// entries.
	dirCache = 32 << 20
	// memoryStep is the growth of the caches between two settings of the
	// memory limit.
	memoryStep = 8 << 20
	// maxIndexed is the size of the largest file that is indexed.
	maxIndexed = 8 << 20
	// queueChunk is the number of files queued at a time.
	queueChunk = 256
	// maxUnknown bounds the unknown files that one worker records.
	maxUnknown = 100_000
)

// searchCache makes later searches of the same files faster: it holds the index
// and the directory cache, and the goroutine that fills the index while no call
// is in flight. Nothing runs before the first answer. A nil searchCache caches
// nothing.
type searchCache struct {
	index *index.Index
	dirs  *walk.Cache
	fs    atomic.Pointer[sandbox.FS] // of the latest call
	buf   []byte                     // used by read, in the builder's goroutine

	mu      sync.Mutex
	builder *index.Builder // nil before the first answer
	closed  atomic.Bool
	queuing sync.WaitGroup

	room atomic.Int64 // size of the caches when the memory limit was last set
}

func newSearchCache(size int64) *searchCache {
	return &searchCache{index: index.New(size), dirs: walk.NewCache(dirCache)}
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

// begin pauses the builder until end is called.
func (w *searchCache) begin(fsys *sandbox.FS) (end func()) {
	if w == nil {
		return func() {}
	}
	w.fs.Store(fsys)
	w.makeRoom()
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

// known reports whether the index has any files.
func (w *searchCache) known() bool {
	if w == nil {
		return false
	}
	files, _ := w.index.Stats()
	return files > 0
}

// learn queues files that were read, below dir, for the index. They are indexed
// once no call is in flight.
func (w *searchCache) learn(dir string, lists [][]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed.Load() {
		return
	}
	if w.builder == nil {
		w.builder = index.StartBuilder(context.Background(), w.index, w.read)
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

// errNotIndexable is returned for a file that is not indexed.
var errNotIndexable = errors.New("not added to the index")

// read reads a file for the index, decoded as for a search. Masked files are
// not indexed: under another name such a file may be searched unmasked.
func (w *searchCache) read(_ context.Context, path string) (index.Content, error) {
	w.makeRoom()
	var c index.Content
	fsys := w.fs.Load()
	if fsys.Denied(path) || fsys.Masked(path) {
		return c, errNotIndexable
	}
	dir, err := fsys.Quiet().OpenDir(filepath.Dir(path))
	if err != nil {
		return c, err
	}
	defer dir.Close()
	if !dir.Local() { // its times may predate a change
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

// readWhole reads a whole file.
func (w *searchCache) readWhole(dir *sandbox.Dir, name string, c *index.Content) error {
	raw, st, err := dir.ReadFile(name, w.buf, maxIndexed)
	if err != nil {
		return err
	}
	if w.buf = raw; cap(raw) > ownSize {
		w.buf = nil
	}
	if index.KeyOf(st) != c.Key {
		return errNotIndexable
	}
	w.judge(raw, c)
	return nil
}

// readHead reads enough of a file to tell whether it is binary.
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
	w.judge(head[:n], c)
	c.Text, c.Opaque = nil, !c.Binary
	return nil
}

// judge sets the kind of a file by its beginning. Private keys are checked in
// every search, since a key may be allowed under one of its names, and so are
// files in an encoding that must be guessed.
func (w *searchCache) judge(raw []byte, c *index.Content) {
	if c.Opaque = looksLikeKey(raw); c.Opaque {
		return
	}
	if c.Binary = textfile.HasBinarySignature(raw); c.Binary {
		return
	}
	text := searchableText(raw, false)
	c.Binary = bytes.IndexByte(text, 0) >= 0
	if wideEncoding(raw) == "" {
		c.Opaque = c.Binary && textfile.GuessWide(raw) != "" || !c.Binary && notUTF8(text)
	}
	if c.Binary = c.Binary && !c.Opaque; !c.Binary && !c.Opaque {
		c.Text = text
	}
}

// makeRoom sets the memory limit by the size of the caches, so that the
// collector neither lets garbage grow to a multiple of it nor runs constantly
// to reach an impossible limit.
func (w *searchCache) makeRoom() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	size := w.index.Size() + int64(w.dirs.Size())
	if told := w.room.Load(); size > told+memoryStep || size < told-memoryStep {
		w.room.Store(size)
		debug.SetMemoryLimit(workMemory + size + memoryStep)
	}
}

// skipByIndex reports whether the index makes reading a file unnecessary, and
// then counts the file as if it had been read.
func (w *searcher) skipByIndex(e *walk.Entry) bool {
	w.kept = nil
	st, err := e.Lstat()
	if err != nil || !st.Mode.IsRegular() || st.Size > w.MaxFileSize {
		return false
	}
	if e.Memo != w.memo {
		w.switchDir(e.Memo)
	}
	switch w.dirLookup.Look(e.Place, index.KeyOf(st)) {
	case index.Missing:
		w.record(e.Path, st, 0, "")
		return true
	case index.Binary:
		w.outcomes[binary]++
		return true
	case index.Maybe:
		w.kept, w.keptStat = w.dirLookup.Text(), st
		return false
	}
	w.remember(e.Path)
	return false
}

// switchDir switches to another directory, identified by its memo in the walk
// cache.
func (w *searcher) switchDir(memo *walk.Memo) {
	w.memo = memo
	if memo == nil {
		w.dirLookup.SwitchDir(nil)
		return
	}
	page, _ := memo.Kept().(index.Page)
	if page == nil {
		page = memo.Keep(index.NewPage(memo.Len())).(index.Page)
	}
	w.dirLookup.SwitchDir(page)
}

// remember records a file that the index does not know.
func (w *searcher) remember(path string) {
	if w.learning && len(w.unknown) < maxUnknown {
		w.unknown = append(w.unknown, path)
	}
}

// wait waits until all queued files have been indexed.
func (w *searchCache) wait(ctx context.Context) error {
	w.queuing.Wait()
	w.mu.Lock()
	builder := w.builder
	w.mu.Unlock()
	if builder == nil {
		return nil
	}
	return builder.WaitIdle(ctx)
}
