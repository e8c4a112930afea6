package changes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// The bases of a set are lines of JSON in the file "bases". A command appends
// lines only for the paths that it changed, so its cost does not depend on the
// size of the set. If a path has several lines, the first applies. An
// interrupted command may leave an incomplete line.

// baseLine is one line of the file with the states before the changes, as JSON.
type baseLine struct {
	Root int    `json:"root"`
	Path string `json:"path"`
	baseState
}

// basesFile returns the path of the file with the states of the roots' entries
// before the changes, a baseLine a line.
func (s *Set) basesFile() string { return filepath.Join(s.dir, "bases") }

// loadBases reads basesFile and returns the states of each root, by the root's index;
// they are empty if there is no such file. It skips malformed lines.
func (s *Set) loadBases(r *setFile) ([]baseStates, error) {
	all := make([]baseStates, len(r.Roots))
	for i := range all {
		all[i] = baseStates{}
	}
	f, err := os.Open(s.basesFile())
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var line baseLine
		if json.Unmarshal(text, &line) != nil || line.Root < 0 || line.Root >= len(all) {
			continue
		}
		path := decodePath(line.Path)
		if _, known := all[line.Root][path]; !known {
			all[line.Root][path] = line.baseState
		}
	}
}

// saveBases replaces basesFile atomically by one with these states.
func (s *Set) saveBases(all []baseStates) error {
	w, err := newBaseWriter(s.basesFile()+".new", os.O_TRUNC)
	if err != nil {
		return err
	}
	for root, of := range all {
		for path, b := range of {
			w.write(root, path, b)
		}
	}
	if err := w.close(); err != nil {
		return err
	}
	return os.Rename(s.basesFile()+".new", s.basesFile())
}

// baseWriter appends lines to basesFile. close returns the errors of all
// writes.
type baseWriter struct {
	file *os.File
	buf  *bufio.Writer
	err  error
}

// newBaseWriter opens the file called name for writing and creates it if it is missing.
// flags are added to O_WRONLY and O_CREATE. It returns the error of os.OpenFile.
func newBaseWriter(name string, flags int) (*baseWriter, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flags, 0o600)
	if err != nil {
		return nil, err
	}
	return &baseWriter{file: f, buf: bufio.NewWriterSize(f, 64<<10)}, nil
}

// write writes the state of the entry path of a root, by its index. Errors are kept for
// close.
func (w *baseWriter) write(root int, path string, b baseState) {
	text, err := json.Marshal(baseLine{Root: root, Path: encodePath(path), baseState: b})
	if err == nil && bytes.IndexByte(text, '\n') < 0 {
		_, err = w.buf.Write(append(text, '\n'))
	}
	w.err = errors.Join(w.err, err)
}

// close writes what is buffered, closes the file, and returns the errors of all writes.
func (w *baseWriter) close() error {
	return errors.Join(w.err, w.buf.Flush(), w.file.Close())
}

// baseRecorder writes the states, before a layer's changes, of entries of one
// root.
type baseRecorder struct {
	out   *baseWriter
	root  int
	tree  *nofollow.Tree
	older []string // upper directories of other finished layers, whose paths have bases
	began int64    // start time of the command; files changed by others after it get an unknown base
}

// record writes the states that the entries of list have in the root, unless
// they are recorded already.
func (b *baseRecorder) record(list []Change) {
	for _, c := range list {
		if !b.isRecorded(c.Path) {
			b.add(c.Path, true)
		}
		if c.Old != nil && c.Old.IsDir() && (c.New == nil || !c.New.IsDir()) {
			b.addTree(c.Path)
		}
	}
}

// isRecorded reports whether an older layer has changed the path, whose state
// then is recorded already.
func (b *baseRecorder) isRecorded(rel string) bool {
	for _, dir := range b.older {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(rel))); err == nil {
			return true
		}
	}
	return false
}

// add writes the state of the entry at rel. The content and the attributes of a file are
// recorded only if content is set.
func (b *baseRecorder) add(rel string, content bool) {
	info, err := b.tree.Lstat(rel)
	if err != nil {
		b.out.write(b.root, rel, baseState{Absent: true, Unknown: !nofollow.IsMissing(err)})
		return
	}
	state := stateOfEntry(b.tree, rel, info, b.began, content)
	if _, changed := inodeAndChangeTime(info); (content || info.IsDir()) && changed <= b.began {
		state.Attributes, state.Values = attributesAndHashes(b.tree, rel)
		state.HasValues = true
	}
	b.out.write(b.root, rel, state)
}

// addTree writes the states of a directory and of everything in it, without the
// contents of files. An entry that cannot be read gets no state, so it is a
// conflict later.
func (b *baseRecorder) addTree(dir string) {
	b.tree.Walk(dir, func(rel string, _ fs.FileInfo, err error) bool { // an unreadable entry has no base, and is a conflict later
		if err == nil {
			b.add(rel, false)
		}
		return true
	})
}
