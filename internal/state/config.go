// Package state keeps what tools remember between calls and between
// processes: which version of a file was seen and which of its lines, who is
// changing a file now, and what a change has taken away.
//
// Everything here only makes tools better: a directory that cannot be opened,
// a damaged record, a record of another version are all the same as none.
// Several processes use one directory at a time; records are replaced whole
// (written aside, then renamed), so a reader finds the old or the new one.
//
// # Seen records
//
// A seen record belongs to the client that saw the file: the process that
// started this one, and the session behind it where that process is a host
// for several (Store.ForSession). The servers that one client starts share
// its records; another client's records are not found.
//
// # Changing a file
//
// A tool that writes takes the lock before it reads, and records the change
// before it makes it:
//
//	target, err := fs.OpenForWrite(name) // pkg/sandbox: refuses what must not be written
//	defer target.Close()
//	unlock, err := store.Lock(ctx, target) // LOCKED
//	defer unlock()
//	file, err := target.Open() // NOT_FOUND: then there is nothing to expect
//	before, err := io.ReadAll(file)
//	after := …
//	change := state.NewChange("edit", target.Path, before, after)
//	change.Mode = file.Stat.Mode.Perm()
//	pending, noUndo := store.Record(change) // an error is said, and no obstacle
//	done, err := target.Replace(ctx, sandbox.Bytes(after), sandbox.ReplaceOptions{Expect: &file.Stat})
//	if err != nil {
//		pending.Discard() // nil is fine
//		return err
//	}
//	noUndo = cmp.Or(noUndo, pending.Commit())
//
// and undoes by reading the same way, then:
//
//	change, err := store.LastChange(target.Path, state.VersionOf(current)) // NOT_FOUND, STALE
//	before, err := change.Restore(current)
//	// change.Created ? target.Remove(ctx, &file.Stat) : target.Replace(…)
//	err = change.Forget()
//
// The locks are the kernel's, so they end with their process, however it
// ends, and they hold between processes with different state directories or
// none: see Store.Lock. The journal is bounded in bytes, age and changes a
// file; it is not synced, so that a power cut can cost an undo, but no edit.
package state

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config says where state is kept, and how much. The zero value is usable.
type Config struct {
	// Dir is the directory; "" stands for $MCP_STATE_DIR, else
	// $XDG_STATE_HOME/toolroom, else ~/.local/state/toolroom.
	Dir string
	// Disabled keeps nothing.
	Disabled bool
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string

	// Client identifies the program that this process works for; "" means the
	// parent process. Seen records are kept for each client by itself.
	Client string

	// MaxBytes and MaxAge bound the seen records; 0 stands for 32 MiB and
	// 30 days.
	MaxBytes int64
	MaxAge   time.Duration

	// UndoBytes and UndoAge bound the undo journal; 0 stands for 64 MiB and
	// 7 days. UndoContent bounds what one change may have taken away; 0
	// stands for 32 MiB.
	UndoBytes   int64
	UndoAge     time.Duration
	UndoContent int64

	// SpillBytes and SpillAge bound the whole outputs of commands; 0 stands
	// for 1 GiB and 3 days.
	SpillBytes int64
	SpillAge   time.Duration

	// LockWait is how long Lock waits at most; 0 stands for 30 s.
	LockWait time.Duration
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Dir, "state", c.Dir, "keep state in `DIR` (else $MCP_STATE_DIR, $XDG_STATE_HOME/toolroom, ~/.local/state/toolroom)")
	fs.BoolVar(&c.Disabled, "no-state", c.Disabled, "keep no state: no undo, and repeated calls are slower")
}

// Validate reports settings that cannot work. Whether the directory can be
// used is not its matter: that must never fail a tool that only reads.
func (c *Config) Validate() error {
	switch {
	case c.Dir != "" && c.Disabled:
		return toolerr.New(toolerr.InvalidParams, "--state and --no-state exclude each other")
	case strings.ContainsRune(c.Dir, 0):
		return toolerr.New(toolerr.InvalidParams, "--state: the directory's name contains a NUL")
	case c.MaxBytes < 0 || c.MaxAge < 0 || c.LockWait < 0 || c.UndoBytes < 0 || c.UndoAge < 0 || c.UndoContent < 0 || c.SpillBytes < 0 || c.SpillAge < 0:
		return toolerr.New(toolerr.InvalidParams, "state: limits must not be negative")
	}
	return nil
}

// Directory returns the absolute path of the state directory; "" when the
// environment names none, as for a user without a home. A tool that writes
// files puts it into sandbox.Config.Protect.
func (c *Config) Directory() string {
	if all := c.Directories(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Directories returns the state directory and after it those that others of the
// user's tools and hosts keep their state in, as far as the environment tells.
func (c *Config) Directories() (all []string) {
	getenv := c.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	home := getenv("HOME")
	if home == "" {
		// Windows, and accounts without the variable; no home is no error here.
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
	// The XDG specification wants a relative path ignored.
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		all = append(all, filepath.Join(dir, "toolroom"))
	}
	if filepath.IsAbs(home) {
		all = append(all, filepath.Join(home, ".local", "state", "toolroom"))
	}
	return all
}
