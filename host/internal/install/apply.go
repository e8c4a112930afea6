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

// sortedKeys returns the keys of m in ascending order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// BackupEnding is appended to the name of a configuration for the copy of its
// content before the first installation.
const BackupEnding = ".before-toolroom"

// fileRecord says what the installations changed in one configuration file, so that
// the removal can restore the file.
type fileRecord struct {
	HashBefore string   `json:"before"`         // SHA-256 of the content before; "": there was no file
	HashAfter  string   `json:"after"`          // of the content that the last installation wrote
	Dirs       []string `json:"dirs,omitempty"` // directories that it made, the deepest first
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

// save writes the records. Without records it removes their file, and the directories that
// it had made if they are empty.
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

// removeEmpty removes dirs in their order, the deepest first, and stops at the first
// one that cannot be removed, for example because it has files.
func removeEmpty(dirs []string) {
	for _, dir := range dirs {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// sha256Hex returns the SHA-256 of text in hexadecimal, "" for nil.
func sha256Hex(text []byte) string {
	if text == nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Apply carries out a change that Plan returned. It copies the content before the
// first installation to File+BackupEnding, and records the change below the directory
// state. It fails without a change if the file is not as it was for Plan.
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

// Undo carries out a change that PlanRemoval returned, and removes the backup and the
// record. It fails without a change if the file is not as it was for PlanRemoval.
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

// checkUnchanged returns an error if the file is no longer as it was when the change was planned.
func (c *Change) checkUnchanged() error {
	_, now, err := readConfiguration(c.File)
	if err == nil && (!bytes.Equal(now, c.Before) || (now == nil) != (c.Before == nil)) {
		err = fmt.Errorf("another program changed %s at the same time; nothing was written: try again", c.File)
	}
	return err
}

// write writes After to the file; if there are commands, it runs them instead and sets
// After to the file's content then. It returns the directories that it made, the deepest
// first. It returns them even with an error.
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

// runCommands runs the client's commands and sets After to the file's content then. It
// fails if a command fails, or if they did not add or remove the entries as planned.
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

// planRestore sets After of a removal to the exact content before the installation,
// nil if there was no file. It returns false, and sets nothing, if somebody has changed
// the file or the backup since, or if there is no record. It writes no file.
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

// permOf returns the permission bits of the file.
func permOf(file string) (fs.FileMode, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return info.Mode().Perm(), nil
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

// writeFile replaces the file atomically: it writes a temporary file next to it, syncs and
// renames it. After an error the old content stays.
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
