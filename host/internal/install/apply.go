package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// BackupEnding is appended to the name of a configuration for the copy of its
// content before the first installation.
const BackupEnding = ".before-toolroom"

// fileRecord says what an installation changed, so that its removal can restore it.
type fileRecord struct {
	HashBefore string   `json:"before"`         // SHA-256 of the content before; "": there was no file
	HashAfter  string   `json:"after"`          // of the content that the last installation wrote
	Dirs       []string `json:"dirs,omitempty"` // directories that it made, the deepest first
}

// records are the installations of this user.
type records struct {
	Files map[string]fileRecord `json:"files"`
	Dirs  []string              `json:"dirs,omitempty"` // those above this file that it made, the deepest first
}

func recordFile(state string) string { return filepath.Join(state, "installed.json") }

// loadRecords reads the records. Without them, removals edit the file.
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

// save writes the records, or removes them with their directories if there are
// none.
func (r *records) save(state string) error {
	if len(r.Files) == 0 {
		if err := os.Remove(recordFile(state)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removeEmpty(r.Dirs)
		return nil
	}
	dirs, err := makeDirs(state, 0o700)
	if err != nil {
		return err
	}
	r.Dirs = append(r.Dirs, dirs...)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(recordFile(state), append(text, '\n'), 0o600)
}

// removeEmpty removes directories, the deepest first, as far as they are empty.
func removeEmpty(dirs []string) {
	for _, dir := range dirs {
		if os.Remove(dir) != nil {
			return
		}
	}
}

func sha256Hex(text []byte) string {
	if text == nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Apply makes a change of Plan. It keeps the content before the first installation
// next to the file, and writes the record into the directory state.
func (c *Change) Apply(ctx context.Context, state string) error {
	if err := c.checkUnchanged(); err != nil {
		return err
	}
	all := loadRecords(state)
	kept, known := all.Files[c.File]
	if !known || kept.HashAfter != sha256Hex(c.Before) { // somebody changed it since
		kept = fileRecord{HashBefore: sha256Hex(c.Before)}
	}
	if c.Before != nil && kept.HashBefore == sha256Hex(c.Before) {
		mode, err := permOf(c.File)
		if err != nil {
			return err
		}
		if err := writeFile(c.File+BackupEnding, c.Before, mode); err != nil {
			return err
		}
	}
	dirs, err := c.write(ctx)
	if c.Before == nil {
		kept.Dirs = dirs
	}
	if err != nil {
		return err
	}
	kept.HashAfter = sha256Hex(c.After)
	all.Files[c.File] = kept
	return all.save(state)
}

// Undo makes a change of PlanRemoval, and removes the copy and the record.
func (c *Change) Undo(ctx context.Context, state string) error {
	if err := c.checkUnchanged(); err != nil {
		return err
	}
	all := loadRecords(state)
	kept := all.Files[c.File]
	if c.After == nil {
		if err := os.Remove(c.File); err != nil {
			return err
		}
		removeEmpty(kept.Dirs)
	} else if _, err := c.write(ctx); err != nil {
		return err
	}
	if kept.HashBefore != "" { // so the copy is ours
		if err := os.Remove(c.File + BackupEnding); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	delete(all.Files, c.File)
	return all.save(state)
}

// checkUnchanged fails if the file is no longer as it was when the change was planned.
func (c *Change) checkUnchanged() error {
	_, now, err := readConfiguration(c.File)
	if err == nil && (!bytes.Equal(now, c.Before) || (now == nil) != (c.Before == nil)) {
		err = fmt.Errorf("another program changed %s at the same time; nothing was written: try again", c.File)
	}
	return err
}

// write writes After, or runs the commands and reads what they wrote. It returns
// the directories that it made.
func (c *Change) write(ctx context.Context) (made []string, err error) {
	if len(c.Commands) > 0 {
		return nil, c.runCommands(ctx)
	}
	mode := fs.FileMode(0o600)
	if c.Before != nil {
		mode, err = permOf(c.File)
	} else {
		made, err = makeDirs(filepath.Dir(c.File), 0o755)
	}
	if err != nil {
		return made, err
	}
	return made, writeFile(c.File, c.After, mode)
}

func (c *Change) runCommands(ctx context.Context) error {
	for _, args := range c.Commands {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = c.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(args[:min(len(args), 3)], " "), err, strings.TrimSpace(string(out)))
		}
	}
	wanted, err := c.Client.format.entries(c.After, c.Client.member)
	if err != nil {
		return err
	}
	_, c.After, err = readConfiguration(c.File)
	if err != nil {
		return err
	}
	present, err := c.Client.format.entries(c.After, c.Client.member)
	if err != nil {
		return fileError(c.File, err)
	}
	for _, name := range c.Names {
		if (present[name] != nil) != (wanted[name] != nil) {
			return fmt.Errorf("%s succeeded, but did not change %q in %s", strings.Join(c.Commands[0][:3], " "), name, c.File)
		}
	}
	return nil
}

// planRestore makes the change of a removal the exact return to the content before the
// installation. It returns false if somebody has changed the file since.
func (c *Change) planRestore(state string) bool {
	kept, ok := loadRecords(state).Files[c.File]
	if !ok || kept.HashAfter != sha256Hex(c.Before) {
		return false
	}
	if kept.HashBefore == "" {
		c.After = nil
		return true
	}
	text, err := os.ReadFile(c.File + BackupEnding)
	if err != nil || sha256Hex(text) != kept.HashBefore {
		return false
	}
	c.After = text
	return true
}

func permOf(file string) (fs.FileMode, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return info.Mode().Perm(), nil
}

// makeDirs makes a directory and those above it, and returns those that did not
// exist, the deepest first.
func makeDirs(dir string, mode fs.FileMode) (made []string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		made = append(made, at)
	}
	return made, os.MkdirAll(dir, mode)
}

// writeFile replaces a file atomically.
func writeFile(name string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // err is the reason to report
	}
	return err
}
