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

// applyChange makes one change in the root. If it was made already, by an
// interrupted call, it does nothing. why is the reason why a directory was not removed, as
// of laterConflict; part of its content may be removed then.
func (p *plan) applyChange(c Change) (why string, err error) {
	if c.Kind == Deleted {
		if why, err := p.removeEntry(c); why != "" || err != nil {
			return why, err
		}
		whiteout := filepath.Join(p.upper, filepath.FromSlash(c.Path))
		if info, err := os.Lstat(whiteout); err == nil && isWhiteout(info) {
			return "", withWritableDir(filepath.Dir(whiteout), func() error { return os.Remove(whiteout) })
		}
		return "", nil
	}
	now, err := p.tree.Lstat(c.Path)
	if err != nil && !nofollow.IsMissing(err) {
		return "", err
	}
	switch {
	case c.Old != nil && c.Dir && err == nil && now.IsDir():
		return "", nil // finishDir sets its mode
	case c.Old != nil && c.Dir:
		return "", errors.New("is no longer a directory")
	case err == nil && now.IsDir() != c.New.IsDir():
		if why, err := p.removeEntry(c); why != "" || err != nil {
			return why, err
		}
	}
	if c.New.IsDir() {
		err := p.withWritableParent(c.Path, func() error { return p.tree.Mkdir(c.Path, 0o700) })
		if errors.Is(err, fs.ErrExist) {
			return "", nil
		}
		return "", err
	}
	return "", p.withWritableParent(c.Path, func() error { return p.applyFile(c) })
}

// withWritableParent calls f. If the owner may not write in the directory of
// rel, it adds that permission during the call. It returns f's error.
func (p *plan) withWritableParent(rel string, f func() error) error {
	dir := path.Dir(rel)
	info, err := p.tree.Lstat(dir)
	if err != nil || info.Mode()&0o300 == 0o300 {
		return f()
	}
	if err := p.tree.Chmod(dir, info.Mode()|0o700); err != nil {
		return err
	}
	return errors.Join(f(), p.tree.Chmod(dir, info.Mode()))
}

// removeEntry removes the file of a change, or its directory with the content that
// findConflicts has found, from the root. why is the reason why another entry keeps the
// directory, "" if it was removed.
func (p *plan) removeEntry(c Change) (why string, err error) {
	err = p.withWritableParent(c.Path, func() error {
		if _, isChecked := p.checked[c.Path]; !isChecked || !removesDir(c) {
			return p.tree.RemoveAll(c.Path)
		}
		unknown, err := p.tree.RemoveKnown(c.Path, func(rel string, info fs.FileInfo) bool {
			was, existed := p.checked[rel]
			return existed && (info.IsDir() && was.mode.IsDir() || p.isAsChecked(was, info))
		})
		if unknown != "" {
			why = "holds " + path.Base(unknown) + ", which was created in the meantime"
		}
		return err
	})
	return why, err
}

// hasSameContent reports whether the root's file already has the content of the
// change. Then applyFile changes only mode, time and attributes, and the file keeps
// its other hard links.
func (p *plan) hasSameContent(c Change) bool {
	if c.Old == nil || c.New == nil || !c.Old.Mode().IsRegular() || !c.New.Mode().IsRegular() || c.Old.Size() != c.New.Size() {
		return false
	}
	same, err := hasSameContent(p.tree, c.Path, c.source)
	return err == nil && same
}

// applyFile gives a file of the root its new version, and removes that from the
// layer. If the content is the same it sets mode, time and attributes, unless the
// new version is a hard link of another file. Otherwise it replaces the file by a
// rename, so that no other program sees part of it.
func (p *plan) applyFile(c Change) error {
	ino, _ := inodeAndChangeTime(c.New)
	first, linked := p.sameContentLinks[ino]
	linked = linked && first != c.Path && c.New.Mode().IsRegular() && !p.isSameFile(first, c.Path)
	if !linked && p.hasSameContent(c) {
		modified := c.New.ModTime()
		if info, err := p.tree.Lstat(c.Path); err == nil {
			at, _ := inodeAndChangeTime(info)
			if !p.setInPlace[at] { // by another hard link
				modified = p.known[c.Path].mergedTime(info.ModTime(), modified)
			}
			p.setInPlace[at] = true
		}
		if err := errors.Join(matchAttributes(p.tree, c.Path, c.source, p.known[c.Path]), p.tree.Chmod(c.Path, c.New.Mode()), p.tree.Chtimes(c.Path, modified)); err != nil {
			return err
		}
		return p.removeFromLayer(c)
	}
	if linked {
		err := p.replaceFile(c, func(temp string) error { return p.tree.Link(first, temp) })
		if err == nil {
			return p.removeFromLayer(c)
		}
	}
	if err := removeOverlayAttributes(c.source); err != nil {
		return err
	}
	err := withWritableDir(filepath.Dir(c.source), func() error { return p.tree.MoveIn(c.source, c.Path) })
	if !isCrossDevice(err) {
		return err
	}
	err = p.replaceFile(c, func(temp string) error {
		if first, ok := p.copiedLinks[ino]; ok && c.New.Mode().IsRegular() {
			return p.tree.Link(first, temp)
		}
		return p.copyToRoot(c, temp)
	})
	if err != nil {
		return err
	}
	p.copiedLinks[ino] = c.Path
	return p.removeFromLayer(c)
}

// isSameFile reports whether two paths of the root are hard links of the same file.
func (p *plan) isSameFile(one, other string) bool {
	a, err := p.tree.Lstat(one)
	if err != nil {
		return false
	}
	b, err := p.tree.Lstat(other)
	return err == nil && os.SameFile(a, b)
}

// removeFromLayer removes the new version of an applied change from the layer.
func (p *plan) removeFromLayer(c Change) error {
	return withWritableDir(filepath.Dir(c.source), func() error { return os.Remove(c.source) })
}

// replaceFile calls create with a temporary name in the root, and renames the
// created file to the path of the change.
func (p *plan) replaceFile(c Change, create func(temp string) error) error {
	temp := path.Join(path.Dir(c.Path), ".toolroom-"+rand.Text()[:12])
	err := create(temp)
	if err == nil {
		err = p.tree.Rename(temp, c.Path)
	}
	p.tree.Remove(temp) //nolint:errcheck // a rename to another name of the same file does nothing
	return err
}

// copyToRoot copies a file, link or named pipe of the layer, with mode, time and user
// attributes, to name, which must not exist, in the root. It returns an error for a
// device. After an error an incomplete copy may be left.
func (p *plan) copyToRoot(c Change, name string) error {
	switch {
	case c.New.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(c.source)
		if err != nil {
			return err
		}
		if err = p.tree.Symlink(target, name); err != nil {
			return err
		}
		return p.tree.Chtimes(name, c.New.ModTime())
	case c.New.Mode()&fs.ModeNamedPipe != 0:
		return errors.Join(p.tree.Mkfifo(name, c.New.Mode()), p.tree.Chmod(name, c.New.Mode()), p.tree.Chtimes(name, c.New.ModTime()))
	case !c.New.Mode().IsRegular():
		return errors.New("a device cannot be applied")
	}
	from, err := openLayerFile(c.source)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read
	to, err := p.tree.Create(name, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(copySparse(to, from, c.New.Size()), copyAttributes(to, from))
	if err = errors.Join(err, to.Chmod(c.New.Mode()), to.Close()); err != nil {
		return err
	}
	return p.tree.Chtimes(name, c.New.ModTime())
}

// copySparse copies the first size bytes of from to to, except holes, which
// stay holes in to.
func copySparse(to, from *os.File, size int64) error {
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

// finishDir completes a directory when all changes in it are made. It gives the
// root's directory its mode, time and attributes. It removes the layer's directory if that
// is empty now, and otherwise restores its time.
func (p *plan) finishDir(rel string, want dirMeta) error {
	upper := filepath.Join(p.upper, filepath.FromSlash(rel))
	if info, err := p.tree.Lstat(rel); err == nil && info.IsDir() {
		if rel != "." { // the layer's root has no attributes
			if err := matchAttributes(p.tree, rel, upper, p.known[rel]); err != nil {
				return err
			}
		}
		if err := p.tree.Chmod(rel, want.Mode); err != nil {
			return err
		}
		if err := p.tree.Chtimes(rel, want.Modified); err != nil {
			return err
		}
	}
	if rel == "." {
		return nil
	}
	entries, err := readLayerDir(upper)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) == 0 {
		return removeDir(upper)
	}
	return errors.Join(err, os.Chtimes(upper, want.Modified, want.Modified))
}
