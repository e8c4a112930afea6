package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
)

// sortedKeys returns the keys of m in ascending order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// BackupEnding is appended to the name of a configuration for the copy of its
// content before the first installation.
const BackupEnding = ".before-toolroom"

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
	return changeRecords(ctx, state, func(all *records) error {
		c.removeTemporary(state)
		if err := c.checkUnchanged(); err != nil {
			return err
		}
		kept, known := all.Files[c.File]
		if !known || !kept.isOf(sha256Hex(c.Before)) { // somebody changed it since
			kept = fileRecord{HashBefore: sha256Hex(c.Before)}
		}
		if c.Before != nil && kept.HashBefore == sha256Hex(c.Before) {
			info, err := os.Stat(c.File)
			if err != nil {
				return err
			}
			if err := config.WriteFile(c.File+BackupEnding, c.Before, info.Mode().Perm(), info); err != nil {
				return err
			}
		}
		// Recorded before, so that a removal after a crash finds the copy.
		previous := all.Files[c.File]
		kept.HashAfter, kept.HashNext = sha256Hex(c.Before), sha256Hex(c.After)
		all.Files[c.File] = kept
		if err := all.save(state); err != nil {
			return err
		}
		dirs, err := c.write(ctx)
		if err != nil {
			removeEmpty(dirs)
			if known {
				all.Files[c.File] = previous
			} else {
				delete(all.Files, c.File)
				if c.checkUnchanged() == nil { // nothing to go back to
					os.Remove(c.File + BackupEnding) //nolint:errcheck // err is the reason to report
				}
			}
			return errors.Join(err, all.save(state))
		}
		if c.Before == nil {
			kept.Dirs = dirs
		}
		kept.HashAfter, kept.HashNext = sha256Hex(c.After), "" // commands can have written something else
		all.Files[c.File] = kept
		return nil
	})
}

// Undo carries out a change that PlanRemoval returned, and removes the backup and the
// record. It fails without a change if the file is not as it was for PlanRemoval.
func (c *Change) Undo(ctx context.Context, state string) error {
	return changeRecords(ctx, state, func(all *records) error {
		c.removeTemporary(state)
		if err := c.checkUnchanged(); err != nil {
			return err
		}
		kept := all.Files[c.File]
		if c.After == nil {
			if err := os.Remove(c.File); err != nil {
				return err
			}
			all.removeDirs(c.File, kept.Dirs)
		} else if _, err := c.write(ctx); err != nil {
			return err
		}
		if kept.HashBefore != "" { // so the copy is ours
			if err := os.Remove(c.File + BackupEnding); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		delete(all.Files, c.File)
		return nil
	})
}

// removeTemporary removes what processes left that were killed while they wrote. None writes
// now, because this process holds the lock of the records.
func (c *Change) removeTemporary(state string) {
	for _, name := range []string{c.File, c.File + BackupEnding, recordFile(state)} {
		config.RemoveTemporary(name)
	}
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
	if c.Before == nil {
		if made, err = makeDirs(filepath.Dir(c.File), 0o755); err != nil {
			return made, err
		}
		return made, config.WriteFile(c.File, c.After, 0o600, nil)
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return nil, err
	}
	return nil, config.WriteFile(c.File, c.After, info.Mode().Perm(), info)
}

// runCommands runs the client's commands and sets After to the file's content then. It
// fails if a command fails, or if they did not add or remove the entries as planned.
// After an error it puts back the entries that the commands removed.
func (c *Change) runCommands(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, c.putBack())
		}
	}()
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

// putBack adds the entries of Before that the file no longer has, without the client's
// commands.
func (c *Change) putBack() error {
	had, err := c.Client.format.entries(c.Before, c.Client.member)
	if err != nil {
		return err
	}
	_, now, err := readConfiguration(c.File)
	if err != nil {
		return err
	}
	present, err := c.Client.format.entries(now, c.Client.member)
	if err != nil {
		return fileError(c.File, err)
	}
	missing := false
	for _, name := range c.Names {
		if had[name] == nil || present[name] != nil {
			continue
		}
		missing = true
		if now, err = c.Client.format.setChecked(now, c.Client.member, name, withMissingFields(nil, had[name])); err != nil {
			return fileError(c.File, err)
		}
	}
	if !missing {
		return nil
	}
	return config.EditFile(c.File, now)
}

// planRestore sets After of a removal to the exact content before the installation,
// nil if there was no file. It returns false, and sets nothing, if somebody has changed
// the file or the backup since, if the backup has entries of toolroom's, or if there is no
// record. It writes no file.
func (c *Change) planRestore(state string) bool {
	kept, ok := loadRecords(state).Files[c.File]
	if !ok || !kept.isOf(sha256Hex(c.Before)) {
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
	// A copy from between two installations has entries of the first.
	entries, err := c.Client.format.entries(text, c.Client.member)
	if err != nil || slices.ContainsFunc(sortedKeys(entries), func(name string) bool { return isOurs(entries[name]) }) {
		return false
	}
	c.After = text
	return true
}
