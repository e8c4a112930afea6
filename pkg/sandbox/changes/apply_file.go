package changes

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// change makes one change.
func (p *plan) change(c Change) error {
	if c.Kind == Deleted {
		if err := p.remove(c.Path); err != nil {
			return err
		}
		whiteout := filepath.Join(p.upper, filepath.FromSlash(c.Path))
		if info, err := os.Lstat(whiteout); err == nil && isWhiteout(info) {
			return inWritable(filepath.Dir(whiteout), func() error { return os.Remove(whiteout) })
		}
		return nil
	}
	now, err := p.real.Lstat(c.Path)
	if err != nil && !nofollow.Missing(err) {
		return err
	}
	switch {
	case c.Old != nil && c.Dir && err == nil && now.IsDir():
		return nil // finishDir sets its mode
	case c.Old != nil && c.Dir:
		return errors.New("is no directory any more")
	case err == nil && now.IsDir() != c.New.IsDir():
		if err := p.remove(c.Path); err != nil {
			return err
		}
	}
	if c.New.IsDir() {
		err := p.inParent(c.Path, func() error { return p.real.Mkdir(c.Path, 0o700) })
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return p.inParent(c.Path, func() error { return p.put(c) })
}

// inParent runs f. If the owner may not write in the directory of rel, it adds
// that permission for the time of the call.
func (p *plan) inParent(rel string, f func() error) error {
	dir := path.Dir(rel)
	info, err := p.real.Lstat(dir)
	if err != nil || info.Mode()&0o300 == 0o300 {
		return f()
	}
	if err := p.real.Chmod(dir, info.Mode()|0o700); err != nil {
		return err
	}
	return errors.Join(f(), p.real.Chmod(dir, info.Mode()))
}

func (p *plan) remove(rel string) error {
	return p.inParent(rel, func() error { return p.real.RemoveAll(rel) })
}

// keeps reports whether the root's file already has the content of the change.
// Then put changes only mode and time, and the file keeps its other hard
// links.
func (p *plan) keeps(c Change) bool {
	if c.Old == nil || c.New == nil || !c.Old.Mode().IsRegular() || !c.New.Mode().IsRegular() || c.Old.Size() != c.New.Size() {
		return false
	}
	same, err := sameContent(p.real, c.Path, c.source)
	return err == nil && same
}

// put gives a file of the root its new version. If the content is the same it
// sets mode and time, else it replaces the file by a rename, so that no other
// program sees part of it.
func (p *plan) put(c Change) error {
	if p.keeps(c) {
		if err := errors.Join(p.real.Chmod(c.Path, c.New.Mode()), p.real.Chtimes(c.Path, c.New.ModTime())); err != nil {
			return err
		}
		return p.taken(c)
	}
	ino, _ := identity(c.New)
	if same, ok := p.kept[ino]; ok && c.New.Mode().IsRegular() && same != c.Path {
		err := p.replace(c, func(temp string) error { return p.real.Link(same, temp) })
		if err == nil {
			return p.taken(c)
		}
	}
	if err := removeMarks(c.source); err != nil {
		return err
	}
	err := inWritable(filepath.Dir(c.source), func() error { return p.real.MoveIn(c.source, c.Path) })
	if !crossesDevice(err) {
		return err
	}
	err = p.replace(c, func(temp string) error {
		if first, ok := p.copied[ino]; ok && c.New.Mode().IsRegular() {
			return p.real.Link(first, temp)
		}
		return p.copy(c, temp)
	})
	if err != nil {
		return err
	}
	p.copied[ino] = c.Path
	return p.taken(c)
}

// taken removes an applied file from the layer.
func (p *plan) taken(c Change) error {
	return inWritable(filepath.Dir(c.source), func() error { return os.Remove(c.source) })
}

// replace calls make with a temporary name and renames that file to the path
// of the change.
func (p *plan) replace(c Change, make func(temp string) error) error {
	temp := path.Join(path.Dir(c.Path), ".toolroom-"+rand.Text()[:12])
	err := make(temp)
	if err == nil {
		err = p.real.Rename(temp, c.Path)
	}
	p.real.Remove(temp) //nolint:errcheck // a rename to another name of the same file does nothing
	return err
}

// copy copies a file of the layer to a new name in the root.
func (p *plan) copy(c Change, name string) error {
	switch {
	case c.New.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(c.source)
		if err != nil {
			return err
		}
		if err = p.real.Symlink(target, name); err != nil {
			return err
		}
		return p.real.Chtimes(name, c.New.ModTime())
	case c.New.Mode()&fs.ModeNamedPipe != 0:
		return errors.Join(p.real.Mkfifo(name, c.New.Mode()), p.real.Chmod(name, c.New.Mode()), p.real.Chtimes(name, c.New.ModTime()))
	case !c.New.Mode().IsRegular():
		return errors.New("a device cannot be applied")
	}
	from, err := openLayerFile(c.source)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read
	to, err := p.real.Create(name, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(copyData(to, from, c.New.Size()), copyAttributes(to, from))
	if err = errors.Join(err, to.Chmod(c.New.Mode()), to.Close()); err != nil {
		return err
	}
	return p.real.Chtimes(name, c.New.ModTime())
}

// copyData copies the content of a file, and keeps its holes.
func copyData(to, from *os.File, size int64) error {
	for at := int64(0); at < size; {
		begin, end := nextData(from, at, size)
		_, err := from.Seek(begin, io.SeekStart)
		if err == nil {
			_, err = to.Seek(begin, io.SeekStart)
		}
		if err == nil {
			_, err = io.CopyN(to, from, end-begin)
		}
		if err != nil {
			return err
		}
		at = end
	}
	return to.Truncate(size)
}

// finishDir sets mode and time of a directory, and removes it from the layer
// if it is empty there.
func (p *plan) finishDir(rel string, want meta) error {
	if info, err := p.real.Lstat(rel); err == nil && info.IsDir() {
		if err := p.real.Chmod(rel, want.Mode); err != nil {
			return err
		}
		if err := p.real.Chtimes(rel, want.Modified); err != nil {
			return err
		}
	}
	upper := filepath.Join(p.upper, filepath.FromSlash(rel))
	if rel == "." {
		return nil
	}
	entries, err := readDir(upper)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) == 0 {
		return removeDir(upper)
	}
	return errors.Join(err, os.Chtimes(upper, want.Modified, want.Modified))
}
