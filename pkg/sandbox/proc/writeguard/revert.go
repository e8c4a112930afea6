package writeguard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// revert stores a copy of a file for the user. Then it restores the state was of the
// baseline or, if inBaseline is false, removes the file. It records the result in rc.
func (rc *rootCheck) revert(name, path string, inBaseline bool, was *fileState) {
	if info, err := os.Lstat(path); err == nil {
		it := readState(path, watchedFile{}, info)
		rc.copies.store(path, it.Content)
	}
	if inBaseline {
		rc.restore(name, path, was)
		return
	}
	rc.recordRevert(path, rc.withAccess(name, func() error { return rc.removeItem(name) }))
}

// recordRevert adds path to rc.reverted if err, the result of reverting its
// file, is nil. Otherwise it sets rc.failed.
func (rc *rootCheck) recordRevert(path string, err error) {
	if err != nil {
		rc.failed = true
		return
	}
	rc.reverted = append(rc.reverted, path)
}

// withAccess calls do. If permissions prevent it, withAccess makes the
// directories above the file accessible and calls do again: a command may have
// removed their permissions to prevent the revert. The root counts as reverted then.
func (rc *rootCheck) withAccess(name string, do func() error) error {
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
		if info, err := rc.handle.Lstat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
			err := rc.handle.Chmod(dir, info.Mode().Perm()|0o700) // if it fails, so does the second call
			if dir == "." && err == nil && !slices.Contains(rc.reverted, rc.root) {
				rc.reverted = append(rc.reverted, rc.root)
			}
		}
	}
	return do()
}

// removeItem removes a file or directory, and then the directories of project
// settings that became empty.
func (rc *rootCheck) removeItem(name string) error {
	if err := rc.removeLinksAbove(name); err != nil {
		return err
	}
	if err := rc.handle.RemoveAll(name); err != nil {
		return err
	}
	for dir := filepath.Dir(name); rc.found.files[name].kind == projectSettingsKind && dir != rc.found.files[name].repo; dir = filepath.Dir(dir) {
		if rc.handle.Remove(dir) != nil { // it has other entries
			break
		}
	}
	return nil
}

// removeLinksAbove removes links and files that a command made in place of
// directories above a file. It stores copies of the files.
func (rc *rootCheck) removeLinksAbove(name string) error {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if info, err := rc.handle.Lstat(dir); err == nil && !info.IsDir() {
			if path := filepath.Join(rc.root, dir); info.Mode().IsRegular() {
				it := readState(path, watchedFile{}, info)
				rc.copies.store(path, it.Content)
			}
			if err := rc.handle.Remove(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore writes a file's state of the baseline, and records the result. A file
// larger than maxStoredBytes, whose content is not stored, is set aside.
func (rc *rootCheck) restore(name, path string, was *fileState) {
	if was.Size > maxStoredBytes {
		rc.disableByRenaming(name)
		return
	}
	rc.recordRevert(path, rc.withAccess(name, func() error { return rc.writeState(name, was) }))
}

// disableByRenaming renames the changed file name to one under which no program runs or
// reads it, and takes its permission to be executed. The file leaves the
// baseline, so that this is done and reported once.
func (rc *rootCheck) disableByRenaming(name string) {
	shown, limit := pathname.Escape(name), maxStoredBytes>>20
	info, err := rc.handle.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		delete(rc.baseline.Items, name)
		rc.lost = append(rc.lost, fmt.Sprintf("%s was removed, and cannot be restored because it had more than %d MiB", shown, limit))
		return
	}
	aside := name + ".toolroom-" + rand.Text()[:8]
	err = rc.withAccess(name, func() error {
		if err := rc.removeLinksAbove(name); err != nil {
			return err
		}
		return rc.handle.Rename(name, aside)
	})
	if err == nil && info.Mode().IsRegular() {
		err = rc.handle.Chmod(aside, info.Mode().Perm()&^0o111)
	}
	if err != nil {
		rc.failed = true
		return
	}
	delete(rc.baseline.Items, name)
	rc.lost = append(rc.lost, fmt.Sprintf("%s was changed, and cannot be restored because it had more than %d MiB: it is now %s, which no program runs", shown, limit, pathname.Escape(aside)))
}

// writeState replaces the file name by a file or link with the recorded content
// and mode.
func (rc *rootCheck) writeState(name string, was *fileState) error {
	if was.Mode&fs.ModeSymlink == 0 {
		return rc.replaceFile(name, was.Content, was.Mode.Perm())
	}
	if err := rc.clearPath(name); err != nil {
		return err
	}
	return rc.handle.Symlink(string(was.Content), name)
}

// clearPath removes the file or directory called name, and makes missing
// directories above it, so that a file can be created there.
func (rc *rootCheck) clearPath(name string) error {
	if err := rc.removeLinksAbove(name); err != nil {
		return err
	}
	if err := rc.handle.RemoveAll(name); err != nil {
		return err
	}
	return rc.handle.MkdirAll(filepath.Dir(name), 0o755)
}

// replaceFile replaces a file atomically: the user's programs see the old or
// the new content. It makes missing directories.
func (rc *rootCheck) replaceFile(name string, content []byte, mode fs.FileMode) error {
	if err := rc.removeLinksAbove(name); err != nil {
		return err
	}
	if err := rc.handle.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(name), ".toolroom-"+rand.Text())
	f, err := rc.handle.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		if info, err := rc.handle.Lstat(name); err == nil && info.IsDir() {
			rc.handle.RemoveAll(name) //nolint:errcheck // otherwise the renaming fails
		}
		err = rc.handle.Rename(next, name)
	}
	if err != nil {
		rc.handle.Remove(next) //nolint:errcheck // err is the reason to report
	}
	return err
}
