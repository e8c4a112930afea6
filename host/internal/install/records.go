package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/internal/filelock"
)

// fileRecord says what the installations changed in one configuration file, so that
// the removal can restore the file.
type fileRecord struct {
	HashBefore string   `json:"before"`         // SHA-256 of the content before; "": there was no file
	HashAfter  string   `json:"after"`          // of the content that the last installation wrote
	HashNext   string   `json:"next,omitempty"` // of the content that an installation is about to write
	Dirs       []string `json:"dirs,omitempty"` // directories that it made, the deepest first
}

// isOf reports whether the content with a hash is of the last installation, also of one that
// was killed before it wrote HashAfter.
func (r fileRecord) isOf(hash string) bool {
	return hash == r.HashAfter || hash != "" && hash == r.HashNext
}

// records are the installations of this user, as stored in recordFile.
type records struct {
	Files map[string]fileRecord `json:"files"`          // by the path of the configuration after links
	Dirs  []string              `json:"dirs,omitempty"` // directories that save made for recordFile, the deepest first
}

// recordFile returns the path of the records below the state directory.
func recordFile(state string) string { return filepath.Join(state, "installed.json") }

// loadRecords reads the records below the directory state. It returns empty records
// if there are none or they cannot be read; removals then edit the configuration.
func loadRecords(state string) *records {
	all := &records{}
	if text, err := os.ReadFile(recordFile(state)); err == nil && json.Unmarshal(text, all) != nil {
		all = &records{}
	}
	if all.Files == nil {
		all.Files = map[string]fileRecord{}
	}
	return all
}

// changeRecords calls do with the records below the directory state, and saves them if it
// succeeds. Meanwhile, no other process changes records or files with them. If there are no
// records then, it removes all that it made below state.
func changeRecords(ctx context.Context, state string, do func(*records) error) error {
	var made []string
	for {
		dirs, err := makeDirs(state, 0o700)
		made = append(dirs, made...)
		if err != nil {
			removeEmpty(made)
			return err
		}
		lock, err := lockRecords(ctx, state)
		if err != nil {
			removeEmpty(made)
			return err
		}
		if lock == nil { // another process removed it
			continue
		}
		all := loadRecords(state)
		all.Dirs = append(all.Dirs, made...)
		if err = do(all); err == nil || len(made) > 0 { // else nobody would know who made them
			err = errors.Join(err, all.save(state))
		}
		release(lock, len(all.Files) == 0)
		if len(all.Files) == 0 {
			removeEmpty(all.Dirs)
		}
		return err
	}
}

// save writes the records, or removes their file if there are none.
func (r *records) save(state string) error {
	if len(r.Files) == 0 {
		if err := os.Remove(recordFile(state)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return config.WriteFile(recordFile(state), append(text, '\n'), 0o600, nil)
}

// lockRecords opens and locks the file that excludes other processes, and waits until it is
// free. It returns nil if that file was removed meanwhile.
func lockRecords(ctx context.Context, state string) (*os.File, error) {
	name := recordFile(state) + ".lock"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) { // the directory
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if _, err := filelock.Lock(ctx, f); err != nil { // a file system without locks gives no error
		return nil, errors.Join(err, f.Close())
	}
	held, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(name); err == nil && os.SameFile(held, there) {
			return f, nil
		}
	}
	filelock.Unlock(f)
	f.Close() //nolint:errcheck // nothing was written
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return nil, err
}

// release frees the lock, and with remove removes its file, too.
func release(lock *os.File, remove bool) {
	if remove && filelock.Advisory { // before it is free, so that no other process has taken it
		os.Remove(lock.Name()) //nolint:errcheck // at worst an empty file is left
	}
	filelock.Unlock(lock)
	lock.Close()                      //nolint:errcheck // nothing was written
	if remove && !filelock.Advisory { // Windows removes no file that is open
		os.Remove(lock.Name()) //nolint:errcheck // at worst an empty file is left
	}
}

// removeEmpty removes dirs in their order, the deepest first, and stops at the first
// directory that cannot be removed, for example because it has files.
func removeEmpty(dirs []string) {
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

// removeDirs removes the directories that were made for a file if they are empty. If another
// file that an installation made is in one of them, the record of that file gets the
// directory, so that its removal removes the directory, too. The record of the file is
// deleted.
func (r *records) removeDirs(file string, dirs []string) {
	delete(r.Files, file)
	removeEmpty(dirs)
	for _, dir := range dirs {
		if !exists(dir) {
			continue
		}
		for _, other := range sortedKeys(r.Files) {
			record := r.Files[other]
			if record.HashBefore != "" || !strings.HasPrefix(other, dir+string(filepath.Separator)) {
				continue
			}
			if !slices.Contains(record.Dirs, dir) {
				record.Dirs = append(record.Dirs, dir)
				slices.SortFunc(record.Dirs, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
				r.Files[other] = record
			}
			break
		}
	}
}

// makeDirs makes dir with its parents, and returns the directories that did not exist, the
// deepest first, even with an error.
func makeDirs(dir string, mode fs.FileMode) (made []string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	return made, os.MkdirAll(dir, mode)
}
