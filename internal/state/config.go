// Package state stores data that tools share between calls and between
// processes: which version and which lines of a file the model has seen, which
// process is changing a file, and how to undo a change.
//
// State only improves tools. If the directory cannot be opened, or a record is
// damaged or has another format, tools behave as if there were no state.
// Several processes can use one directory at the same time. Records are
// replaced atomically (written to a temporary file, then renamed), so a reader
// finds the old or the new record.
//
// # Seen records
//
// A seen record belongs to the client that saw the file: the process that
// started this one, and the client's session if that process is a host for
// several clients (Store.ForSession). The servers started by one client share
// its records; a client never sees another client's records.
//
// # Changing a file
//
// A tool that writes takes the lock before it reads, and records the change
// before it makes it:
//
//	target, err := fs.OpenForWrite(name) // pkg/sandbox: fails for paths that must not be written
//	defer target.Close()
//	unlock, err := store.Lock(ctx, target) // LOCKED
//	defer unlock()
//	file, err := target.Open() // NOT_FOUND: a new file, without an expected state
//	before, err := io.ReadAll(file)
//	after := …
//	change := state.NewChange("edit", target.Path, before, after)
//	change.Mode = file.Stat.Mode.Perm()
//	pending, noUndo := store.RecordChange(change) // report an error, but continue
//	done, err := target.Replace(ctx, sandbox.Bytes(after), sandbox.ReplaceOptions{Expect: &file.Stat})
//	if err != nil {
//		pending.Discard() // accepts nil
//		return err
//	}
//	noUndo = cmp.Or(noUndo, pending.Commit())
//
// To undo, it reads the file in the same way, then:
//
//	change, err := store.LastChange(target.Path, state.VersionOf(current)) // NOT_FOUND, STALE
//	before, err := change.Restore(current)
//	// change.Created ? target.Remove(ctx, &file.Stat) : target.Replace(…)
//	err = change.Forget()
//
// The locks are kernel locks: they end with their process, however it ends, and
// they work between processes with different state directories or without one;
// see Store.Lock. The journal is bounded in bytes, age and changes per file. It
// is not synced, so that a power failure can lose an undo, but no edit.
package state

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config configures where state is stored, and how much. The zero value uses
// the defaults.
type Config struct {
	// Dir is the directory; "" means $MCP_STATE_DIR, else
	// $XDG_STATE_HOME/toolroom, else ~/.local/state/toolroom.
	Dir string
	// Disabled stores nothing.
	Disabled bool
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string

	// Client identifies the program for which this process works; "" means the
	// parent process. Each client has separate seen records.
	Client string

	// MaxBytes and MaxAge bound the seen records; 0 means 32 MiB and 30 days.
	MaxBytes int64
	MaxAge   time.Duration

	// UndoBytes and UndoAge bound the undo journal; 0 means 64 MiB and 7 days.
	// UndoContent bounds the bytes that one change may remove; 0 means 32 MiB.
	UndoBytes   int64
	UndoAge     time.Duration
	UndoContent int64

	// OutputBytes and OutputAge bound the complete outputs of commands; 0 means
	// 1 GiB and 3 days.
	OutputBytes int64
	OutputAge   time.Duration

	// LockWait is the longest time that Lock waits; 0 means 30 s.
	LockWait time.Duration
}

// AddFlags registers the flags --state and --no-state, which set c.
func (c *Config) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.Dir, "state", c.Dir, "keep state in `DIR` (default: $MCP_STATE_DIR, else $XDG_STATE_HOME/toolroom, else ~/.local/state/toolroom)")
	flags.BoolVar(&c.Disabled, "no-state", c.Disabled, "keep no state: no undo, changes by others are noticed only with etag, and repeated calls are slower")
}

// Validate returns INVALID_PARAMS for contradictory settings. It does not check
// whether the directory is usable: an unusable directory must not stop a tool
// that only reads.
func (c *Config) Validate() error {
	switch {
	case c.Dir != "" && c.Disabled:
		return toolerr.New(toolerr.InvalidParams, "--state and --no-state cannot be combined")
	case strings.ContainsRune(c.Dir, 0):
		return toolerr.New(toolerr.InvalidParams, "--state: the directory's name contains a NUL")
	case c.MaxBytes < 0 || c.MaxAge < 0 || c.LockWait < 0 || c.UndoBytes < 0 || c.UndoAge < 0 || c.UndoContent < 0 || c.OutputBytes < 0 || c.OutputAge < 0:
		return toolerr.New(toolerr.InvalidParams, "state: limits must not be negative")
	}
	return nil
}

// Directory returns the absolute path of the state directory, whether or not it
// exists. It returns "" if the environment does not determine one, as for a
// user without a home directory. A tool that writes files passes it to
// sandbox.Config.Protect.
func (c *Config) Directory() string {
	if all := c.Directories(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Directories returns the state directory first, then all other state
// directories that the environment names for the user's tools and hosts. The
// paths are absolute; the directories need not exist.
func (c *Config) Directories() (all []string) {
	getenv := c.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	home := getenv("HOME")
	if home == "" {
		// Windows, or an account without the variable; a missing home is not an
		// error.
		home, _ = os.UserHomeDir()
	}
	for _, dir := range []string{c.Dir, getenv("MCP_STATE_DIR")} {
		if dir == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(dir, "~/"); ok && home != "" {
			dir = filepath.Join(home, rest)
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			return all
		}
		all = append(all, abs)
	}
	// The XDG specification says to ignore a relative path.
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		all = append(all, filepath.Join(dir, "toolroom"))
	}
	if filepath.IsAbs(home) {
		all = append(all, filepath.Join(home, ".local", "state", "toolroom"))
	}
	return all
}
