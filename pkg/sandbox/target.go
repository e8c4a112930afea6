package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Target is a name that may be written, found once and held by the directory
// it is in. The file need not exist, nor the last of its parent directories.
// A Target serves one goroutine, and is closed.
type Target struct {
	// Path is absolute, with links resolved: two names of one file have one
	// Path, unless they are hard links. Locks and undo records use it as key.
	Path   string
	Root   Root // the innermost root it is in
	Masked bool // by its name or the one it was asked by: see FS.Masked

	fs    *FS
	name  string // as the caller named it
	asked string // the same, absolute
	home  *openRoot
	real  []string // components of the directory held, beneath home
	dir   *parentDir
	rest  []string // parent directories that are missing beneath dir
	base  string
	lack  *missing // why there was no file when it was looked for
	// unjudged: the content was not looked at for settings of git.
	unjudged bool
}

// OpenForWrite finds the name of a regular file for writing. The file may be
// absent; then it would be made where the name leads, links followed, always
// inside the roots. Nothing is changed yet, not even for missing parents.
//
// It refuses files that may not be written: OUTSIDE_ROOT, READ_ONLY for roots and
// file systems, DENIED_PATH for secrets and for Protected paths,
// SPECIAL_FILE, IS_A_DIRECTORY, and PERMISSION_DENIED for a file that this
// user may not write, even where replacing it would be possible.
func (f *FS) OpenForWrite(name string) (*Target, error) {
	defer runtime.KeepAlive(f)
	if err := checkName(name); err != nil {
		return nil, err
	}
	t, err := f.openTarget(name)
	if plain, ok := unescapePath(name); ok && err == nil && t.lack != nil && checkName(plain) == nil {
		t2, err2 := f.openTarget(plain)
		switch {
		case err2 == nil && t2.lack == nil:
			t.Close()
			t = t2
		case err2 == nil:
			t2.Close()
		}
	}
	if err != nil {
		return nil, f.explainWriteError(name, err)
	}
	if err := t.checkWrite(); err != nil {
		t.Close()
		return nil, f.explainWriteError(name, err)
	}
	return t, nil
}

// openTarget resolves a literal name, again if things moved meanwhile.
func (f *FS) openTarget(name string) (t *Target, err error) {
	for range maxOpenTries {
		t, err = f.openTargetOnce(name)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	return t, err
}

func (f *FS) openTargetOnce(name string) (*Target, error) {
	root, rest, ok := f.findRoot(name)
	if !ok {
		return nil, errOutside
	}
	asked := joinPath(root.Path, rest)
	if f.isInRoot(asked) {
		if err := f.checkWritePath(asked); err != nil {
			return nil, err
		}
	}
	w := &walker{fs: f, root: root, here: root.object, pending: rest}
	o, err := w.walk()
	if err != nil {
		defer w.closeObjects()
		return f.openAbsentTarget(name, asked, w, err)
	}
	defer o.close()
	if mode := o.stat().Mode; !mode.IsRegular() {
		return nil, errNotWritten(name, mode)
	}
	if o.secret {
		return nil, errDenied
	}
	t := &Target{fs: f, name: name, asked: asked, home: w.root, real: slices.Clone(w.real), Path: o.path, base: pathname.Base(o.path), Masked: o.masked}
	t.dir, err = w.here.parentDir()
	return t, err
}

// openAbsentTarget is the target where the walk met a name that does not exist.
func (f *FS) openAbsentTarget(name, asked string, w *walker, err error) (*Target, error) {
	var lack *missing
	if !errors.As(err, &lack) || !errors.Is(err, fs.ErrNotExist) || slices.Contains(lack.rest, "..") {
		return nil, f.hideSecret(err, toRead)
	}
	if n := len(lack.rest); n > 0 && lack.rest[n-1] == "." {
		return nil, toolerr.New(toolerr.IsADirectory, "%s ends in a slash, so it names a directory: give the name of a file", pathname.Escape(name))
	}
	t := &Target{fs: f, name: name, asked: asked, home: w.root, real: slices.Clone(w.real), lack: lack}
	parts := slices.DeleteFunc(append([]string{lack.name}, lack.rest...), func(part string) bool { return part == "." })
	t.rest, t.base = parts[:len(parts)-1], parts[len(parts)-1]
	t.Path = joinPath(joinPath(w.root.Path, w.real), parts)
	t.dir, err = w.here.parentDir()
	return t, err
}

// checkWrite refuses what may not be written where the name really leads.
func (t *Target) checkWrite() error {
	t.Root = t.fs.innermostRoot(t.Path, t.home).Root
	t.Masked = t.Masked || t.fs.Masked(t.asked) || t.fs.Masked(t.Path)
	if err := t.fs.checkWritePath(t.Path); err != nil {
		return err
	}
	if t.Root.ReadOnly {
		return toolerr.New(toolerr.ReadOnly, "%s is in %s, a read-only root: the user can allow writing by starting the server without :ro or --read-only",
			pathname.Escape(t.name), pathname.Escape(t.Root.Path))
	}
	if err := t.checkGit(); err != nil {
		return err
	}
	if t.lack != nil {
		return nil
	}
	if err := t.dir.checkWritable(t.base); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := t.Open()
	if err != nil {
		if toolerr.Is(err, toolerr.DeniedPath) {
			return err
		}
		return nil // a file may be written that cannot be read
	}
	return file.Close()
}

// checkWritePath refuses secrets and what is protected, by an absolute path.
func (f *FS) checkWritePath(abs string) error {
	if f.Denied(abs) {
		return errDenied
	}
	if why := f.Protected(abs); why != "" {
		return toolerr.New(toolerr.DeniedPath, "%s is not written: it %s; ask the user, who can allow it with --allow-write", f.Display(abs), why)
	}
	return nil
}

// errNotWritten refuses to write an object that is not a regular file.
func errNotWritten(name string, mode fs.FileMode) error {
	if mode.IsDir() {
		return toolerr.New(toolerr.IsADirectory, "%s is a directory, not a file: name a file in it", pathname.Escape(name))
	}
	return toolerr.New(toolerr.SpecialFile, "%s is a %s: only regular files are written", pathname.Escape(name), kindOf(mode))
}

// Close frees the descriptors.
func (t *Target) Close() error {
	t.dir.close()
	return nil
}

// MissingParents are the directories, absolute and the outermost first, that
// do not exist yet and would be made.
func (t *Target) MissingParents() []string {
	var missing []string
	path := joinPath(t.home.Path, t.real)
	for _, part := range t.rest {
		path = filepath.Join(path, part)
		missing = append(missing, path)
	}
	return missing
}

// Stat tells what is at the name now: NOT_FOUND for nothing, CONFLICT where
// something that is no file took its place.
func (t *Target) Stat() (Stat, error) {
	st, err := t.currentStat()
	return st, t.fs.explainWriteError(t.name, t.explainAbsent(err))
}

// currentStat is Stat with the system's errors.
func (t *Target) currentStat() (Stat, error) {
	if len(t.rest) > 0 {
		return Stat{}, fs.ErrNotExist
	}
	st, err := t.dir.lstat(t.base)
	switch {
	case err != nil:
		return Stat{}, err
	case st.Mode&fs.ModeSymlink != 0:
		return Stat{}, errChanged // it was none when the name was resolved
	case !st.Mode.IsRegular():
		return Stat{}, errNotWritten(t.name, st.Mode)
	}
	return st, nil
}

// explainAbsent makes an error for a file that is not there say so, with the names
// that come near.
func (t *Target) explainAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) && t.lack != nil {
		return t.fs.notFound(t.name, t.lack)
	}
	return err
}

// Open opens the file for reading, as FS.Open does, in the directory that the
// target holds, so that Replace replaces the file that was read. NOT_FOUND if it
// does not exist.
func (t *Target) Open() (*File, error) {
	file, err := t.open()
	return file, t.fs.explainWriteError(t.name, t.explainAbsent(err))
}

func (t *Target) open() (*File, error) {
	if _, err := t.currentStat(); err != nil {
		return nil, err
	}
	opened, st, err := t.dir.open(t.base, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	if !st.Mode.IsRegular() {
		opened.Close()
		return nil, errChanged
	}
	file := &File{File: opened, Stat: st, Path: t.Path, Root: t.Root, asked: t.asked, Masked: t.Masked}
	file.Masked = file.Masked || t.fs.MaskedFile(t.Path, st)
	if t.fs.containsPrivateKey(file) || t.fs.isDeniedFile(file) {
		opened.Close()
		return nil, errDenied
	}
	return file, nil
}
