package changes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// foldInto moves what a newer upper directory has into an older one, so that
// the older one alone shows what both did. After each step both still show the
// same, so that an interrupted fold is completed by the next.
//
// below are the directories of the same path beneath older: those of the layers
// before it and the root's. overlayfs lists a whiteout of which nothing is
// beneath as a file, so such a whiteout is removed.
func foldInto(older, newer string, below []string) error {
	info, err := os.Lstat(newer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // folded before an interruption
	}
	if err != nil {
		return err
	}
	entries, err := readDir(newer)
	if err != nil {
		return err
	}
	if isOpaque(older) {
		below = nil
	}
	for _, e := range entries {
		to, from := filepath.Join(older, e.Name()), filepath.Join(newer, e.Name())
		was, err := os.Lstat(to)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case isWhiteout(e) && !anyHas(below, e.Name()):
			removeTree(to)
			if err := inWritable(newer, func() error { return os.Remove(from) }); err != nil {
				return err
			}
			continue
		case err == nil && was.IsDir() && e.IsDir() && !isOpaque(from):
			if err := foldInto(to, from, inside(below, e.Name())); err != nil {
				return err
			}
			continue
		case err == nil && e.IsDir() && !isOpaque(from):
			// overlayfs makes a directory in place of another file opaque; an
			// interrupted fold may have left one without the mark.
			if err := makeOpaque(from); err != nil {
				return err
			}
		}
		if err := inWritable(older, func() error { return move(from, to) }); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod(older, info.Mode()), copyTimes(older, info)); err != nil {
		return err
	}
	return removeDir(newer)
}

// inside returns the directories of a name in others.
func inside(dirs []string, name string) (found []string) {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err == nil && info.IsDir() {
			found = append(found, path)
		}
		if err == nil && !info.IsDir() || isOpaque(path) {
			break
		}
	}
	return found
}

// anyHas reports whether a name is seen in directories that are shown as one,
// the newest first.
func anyHas(dirs []string, name string) bool {
	for _, dir := range dirs {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return !isWhiteout(info)
		}
	}
	return false
}

// move renames an entry over another one of whatever type.
func move(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if was, err := os.Lstat(to); err == nil && (was.IsDir() || info.IsDir()) {
		removeTree(to)
	}
	if !info.IsDir() || info.Mode()&0o200 != 0 {
		return inWritable(filepath.Dir(from), func() error { return os.Rename(from, to) })
	}
	// The name .. of a directory changes, too.
	if err := os.Chmod(from, info.Mode()|0o700); err != nil {
		return err
	}
	if err := inWritable(filepath.Dir(from), func() error { return os.Rename(from, to) }); err != nil {
		return err
	}
	return os.Chmod(to, info.Mode())
}

// inWritable runs f while the owner may write in dir.
func inWritable(dir string, f func() error) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if info.Mode()&0o300 == 0o300 {
		return f()
	}
	if err := os.Chmod(dir, info.Mode()|0o700); err != nil {
		return err
	}
	return errors.Join(f(), os.Chmod(dir, info.Mode()))
}

// removeDir removes an empty directory, also from one that its owner may not
// write.
func removeDir(dir string) error {
	return inWritable(filepath.Dir(dir), func() error {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
