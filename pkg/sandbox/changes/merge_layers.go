package changes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// mergeInto moves the entries of the upper directory newer into older, so that
// older alone shows the changes of both, and removes newer. After each step the
// two together show the same tree, so another call can complete an interrupted
// one.
//
// below holds the directories of the same path in the layers below older and in
// the root, the newest first. A whiteout that hides nothing is removed, because
// overlayfs would list it as a file.
func mergeInto(older, newer string, below []string) error {
	info, err := os.Lstat(newer)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // already folded before an interruption
	}
	if err != nil {
		return err
	}
	entries, err := readLayerDir(newer)
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
		case isWhiteout(e) && !isVisibleIn(below, e.Name()):
			removeTree(to)
			if err := withWritableDir(newer, func() error { return os.Remove(from) }); err != nil {
				return err
			}
			continue
		case err == nil && os.SameFile(was, e): // linked by shareLinkedFiles; a rename would do nothing
			if err := withWritableDir(newer, func() error { return os.Remove(from) }); err != nil {
				return err
			}
			continue
		case err == nil && was.IsDir() && e.IsDir() && !isOpaque(from):
			if err := mergeInto(to, from, mergedDirs(below, e.Name())); err != nil {
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
		if err := withWritableDir(older, func() error { return moveEntry(from, to) }); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod(older, info.Mode()), copyModTime(older, info)); err != nil {
		return err
	}
	return removeDir(newer)
}

// mergedDirs returns the directories called name in dirs that overlayfs merges.
// The first opaque one is the last; another file ends the list.
func mergedDirs(dirs []string, name string) (found []string) {
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

// isVisibleIn reports whether a name is visible in merged directories, of which
// the newest is first.
func isVisibleIn(dirs []string, name string) bool {
	for _, dir := range dirs {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return !isWhiteout(info)
		}
	}
	return false
}

// moveEntry renames the entry of a layer at path from to the path to. It
// replaces an existing entry of any type.
func moveEntry(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if was, err := os.Lstat(to); err == nil && (was.IsDir() || info.IsDir()) {
		removeTree(to)
	}
	if !info.IsDir() || info.Mode()&0o200 != 0 {
		return withWritableDir(filepath.Dir(from), func() error { return os.Rename(from, to) })
	}
	// To move a directory also changes its "..", which needs write permission
	// on it.
	if err := os.Chmod(from, info.Mode()|0o700); err != nil {
		return err
	}
	if err := withWritableDir(filepath.Dir(from), func() error { return os.Rename(from, to) }); err != nil {
		return err
	}
	return os.Chmod(to, info.Mode())
}

// withWritableDir calls f. If the owner may not write in dir, it adds that
// permission during the call. It returns f's error.
func withWritableDir(dir string, f func() error) error {
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

// removeDir removes an empty directory, even if its owner may not write in its
// parent. A missing directory is no error.
func removeDir(dir string) error {
	return withWritableDir(filepath.Dir(dir), func() error {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
