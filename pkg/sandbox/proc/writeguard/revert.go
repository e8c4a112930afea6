package writeguard

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// undo stores a copy of a file aside, then restores its recorded state, or
// removes it if had is false.
func (j *judge) undo(name, path string, had bool, was *item) {
	if info, err := os.Lstat(path); err == nil {
		it := readItem(path, spot{}, info)
		j.aside.keep(path, it.Content)
	}
	if had {
		j.restore(name, path, was)
		return
	}
	j.done(path, j.retry(name, func() error { return j.remove(name) }))
}

// done records the result of a revert: the path, or the failure if err is not
// nil.
func (j *judge) done(path string, err error) {
	if err != nil {
		j.failed = true
		return
	}
	j.taken = append(j.taken, path)
}

// retry calls do. If permissions prevent it, retry makes the directories above
// the file accessible and calls do again: a command may have removed their
// permissions to prevent the revert.
func (j *judge) retry(name string, do func() error) error {
	err := do()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	dirs := []string{"."}
	for at := range name {
		if at > 0 && os.IsPathSeparator(name[at]) {
			dirs = append(dirs, name[:at])
		}
	}
	for _, dir := range dirs {
		if info, err := j.handle.Lstat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
			j.handle.Chmod(dir, info.Mode().Perm()|0o700) //nolint:errcheck // if it fails, so does the second call
		}
	}
	return do()
}

// remove removes a file, and then the directories of settings that became
// empty.
func (j *judge) remove(name string) error {
	if err := j.unlink(name); err != nil {
		return err
	}
	if err := j.handle.RemoveAll(name); err != nil {
		return err
	}
	for dir := filepath.Dir(name); j.found.spots[name].kind == projectKind && dir != j.found.spots[name].repo; dir = filepath.Dir(dir) {
		if j.handle.Remove(dir) != nil { // it has other entries
			break
		}
	}
	return nil
}

// unlink removes links that a command made in place of the directories above a
// file.
func (j *judge) unlink(name string) error {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if info, err := j.handle.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if err := j.handle.Remove(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore restores a file's recorded state. It fails for files larger than
// keptBytes.
func (j *judge) restore(name, path string, was *item) {
	if was.Size > keptBytes {
		j.failed = true
		return
	}
	j.done(path, j.retry(name, func() error { return j.putBack(name, was) }))
}

func (j *judge) putBack(name string, was *item) error {
	if was.Mode&fs.ModeSymlink == 0 {
		return j.write(name, was.Content, was.Mode.Perm())
	}
	if err := j.clear(name); err != nil {
		return err
	}
	return j.handle.Symlink(string(was.Content), name)
}

// clear removes the file or directory at a name, and makes the directory above
// it.
func (j *judge) clear(name string) error {
	if err := j.unlink(name); err != nil {
		return err
	}
	if err := j.handle.RemoveAll(name); err != nil {
		return err
	}
	return j.handle.MkdirAll(filepath.Dir(name), 0o755)
}

// write replaces a file atomically: the user's programs see the old or the new
// content.
func (j *judge) write(name string, content []byte, mode fs.FileMode) error {
	if err := j.unlink(name); err != nil {
		return err
	}
	if err := j.handle.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(name), ".toolroom-"+rand.Text())
	f, err := j.handle.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		if info, err := j.handle.Lstat(name); err == nil && info.IsDir() {
			j.handle.RemoveAll(name) //nolint:errcheck // otherwise the renaming fails
		}
		err = j.handle.Rename(next, name)
	}
	if err != nil {
		j.handle.Remove(next) //nolint:errcheck // err is the reason to report
	}
	return err
}
