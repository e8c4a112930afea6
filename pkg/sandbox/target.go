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

// Target is a path for writing, resolved once; the directory that contains it stays
// open. The file need not exist, and neither need its last parent directories. Only
// one goroutine may use a Target. The caller closes it.
type Target struct {
	// Path is absolute, with links resolved. Two paths of one file have the same Path,
	// except for hard links. Locks and undo records use it as their key.
	Path   string
	Root   Root // the innermost root that contains it
	Masked bool // by its name or the requested name; see FS.Masked and File.Masked

	fs      *FS
	name    string // as the caller gave it
	asked   string // the same as an absolute path
	root    *openRoot
	real    []string // components of the open directory in the root home
	dir     *writableDir
	rest    []string // missing parent directories in dir
	base    string
	missing *missingError // why the file did not exist when it was resolved
	// gitUnchecked means that the content was not checked for settings of git.
	gitUnchecked bool
}

// OpenForWrite resolves the path of a regular file for writing. The file may be
// absent; then the path says where it would be created, with links followed and always
// in the roots. OpenForWrite changes nothing and creates no parent directories.
//
// It refuses files that may not be written: OUTSIDE_ROOT, READ_ONLY for roots and file
// systems, DENIED_PATH for secrets and for Protected paths, SPECIAL_FILE,
// IS_A_DIRECTORY, and PERMISSION_DENIED for a file that this user may not write, even
// if the file could be replaced.
func (f *FS) OpenForWrite(name string) (*Target, error) {
	defer runtime.KeepAlive(f)
	if err := checkName(name); err != nil {
		return nil, err
	}
	t, err := f.openTarget(name)
	if plain, ok := unescapePath(name); ok && err == nil && t.missing != nil && checkName(plain) == nil {
		t2, err2 := f.openTarget(plain)
		switch {
		case err2 == nil && t2.missing == nil:
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

// openTarget resolves a literal name. It tries again if files are moved meanwhile.
func (f *FS) openTarget(name string) (t *Target, err error) {
	for range maxOpenTries {
		t, err = f.openTargetOnce(name)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	return t, err
}

// openTargetOnce is openTarget without another try: it returns errChanged if files are
// moved meanwhile.
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
		return nil, errNotRegular(name, mode)
	}
	if o.secret {
		return nil, errDenied
	}
	t := &Target{fs: f, name: name, asked: asked, root: w.root, real: slices.Clone(w.real), Path: o.path, base: pathname.Base(o.path), Masked: o.masked}
	t.dir, err = w.here.writableDir()
	return t, err
}

// openAbsentTarget returns the target for a path whose last part does not exist. err is
// the error of the resolution. It returns IS_A_DIRECTORY for a path that ends in a
// slash, and err unless only the end of the path is missing.
func (f *FS) openAbsentTarget(name, asked string, w *walker, err error) (*Target, error) {
	var lack *missingError
	if !errors.As(err, &lack) || !errors.Is(err, fs.ErrNotExist) || slices.Contains(lack.rest, "..") {
		return nil, f.hideSecret(err, forContent)
	}
	if n := len(lack.rest); n > 0 && lack.rest[n-1] == "." {
		return nil, toolerr.New(toolerr.IsADirectory, "%s ends in a slash, so it names a directory: give the name of a file", pathname.Escape(name))
	}
	t := &Target{fs: f, name: name, asked: asked, root: w.root, real: slices.Clone(w.real), missing: lack}
	parts := slices.DeleteFunc(append([]string{lack.name}, lack.rest...), func(part string) bool { return part == "." })
	t.rest, t.base = parts[:len(parts)-1], parts[len(parts)-1]
	t.Path = joinPath(joinPath(w.root.Path, w.real), parts)
	t.dir, err = w.here.writableDir()
	return t, err
}

// checkWrite returns an error if the resolved path may not be written:
// READ_ONLY, DENIED_PATH, SPECIAL_FILE, IS_A_DIRECTORY or PERMISSION_DENIED.
func (t *Target) checkWrite() error {
	t.Root = t.fs.innermostRoot(t.Path, t.root).Root
	t.Masked = t.Masked || t.fs.Masked(t.asked) || t.fs.Masked(t.Path)
	if err := t.fs.checkWritePath(t.Path); err != nil {
		return err
	}
	if t.Root.ReadOnly {
		return toolerr.New(toolerr.ReadOnly, "%s is in %s, a read-only root: the user can allow writing by starting the server without :ro or --read-only",
			pathname.Escape(t.name), pathname.Escape(t.Root.Path))
	}
	if err := t.checkRepositoryWrite(); err != nil {
		return err
	}
	if t.missing != nil {
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
		return nil // a file that cannot be read may still be written
	}
	return file.Close()
}

// checkWritePath returns DENIED_PATH for secrets and protected files, by
// absolute path.
func (f *FS) checkWritePath(abs string) error {
	if f.Denied(abs) {
		return errDenied
	}
	if why := f.Protected(abs); why != "" {
		return toolerr.New(toolerr.DeniedPath, "%s is not written: it %s; ask the user, who can allow it with --allow-write", f.Display(abs), why)
	}
	return nil
}

// errNotRegular returns IS_A_DIRECTORY for a directory, and SPECIAL_FILE for
// anything else that is not a regular file.
func errNotRegular(name string, mode fs.FileMode) error {
	if mode.IsDir() {
		return toolerr.New(toolerr.IsADirectory, "%s is a directory, not a file: name a file in it", pathname.Escape(name))
	}
	return toolerr.New(toolerr.SpecialFile, "%s is a %s: only regular files are written; name another file", pathname.Escape(name), typeNameOf(mode))
}

// Close closes the directory that the target keeps open.
func (t *Target) Close() error {
	t.dir.close()
	return nil
}

// MissingParents returns the parent directories that Replace would have to create, as
// absolute paths, outermost first.
func (t *Target) MissingParents() []string {
	var missing []string
	path := joinPath(t.root.Path, t.real)
	for _, part := range t.rest {
		path = filepath.Join(path, part)
		missing = append(missing, path)
	}
	return missing
}

// Stat returns the current metadata of the file. The error is NOT_FOUND if there is no
// file, and CONFLICT if something else is at the path.
func (t *Target) Stat() (Stat, error) {
	st, err := t.currentStat()
	return st, t.fs.explainWriteError(t.name, t.explainAbsent(err))
}

// currentStat does the same as Stat, with the errors of the system.
func (t *Target) currentStat() (Stat, error) {
	if len(t.rest) > 0 {
		return Stat{}, fs.ErrNotExist
	}
	st, err := t.dir.lstat(t.base)
	switch {
	case err != nil:
		return Stat{}, err
	case st.Mode&fs.ModeSymlink != 0:
		return Stat{}, errChanged // it was not a link when the path was resolved
	case !st.Mode.IsRegular():
		return Stat{}, errNotRegular(t.name, st.Mode)
	}
	return st, nil
}

// explainAbsent adds the names of similar files to an error for a missing file.
func (t *Target) explainAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) && t.missing != nil {
		return t.fs.notFound(t.name, t.missing)
	}
	return err
}

// Open opens the file for reading, as FS.Open does, in the directory that the target
// keeps open. So Replace replaces the file that was read. The error is NOT_FOUND if it
// does not exist.
func (t *Target) Open() (*File, error) {
	file, err := t.open()
	return file, t.fs.explainWriteError(t.name, t.explainAbsent(err))
}

// open is Open with the errors of the system.
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
