// Package state keeps what tools remember between calls and between
// processes: today, which version of a file was seen and which of its lines.
//
// Everything here only makes tools better: a directory that cannot be opened,
// a damaged record, a record of another version are all the same as none.
// Several processes use one directory at a time; records are replaced whole
// (written aside, then renamed), so a reader finds the old or the new one.
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

	// MaxBytes and MaxAge bound the seen records; 0 stands for 32 MiB and
	// 30 days.
	MaxBytes int64
	MaxAge   time.Duration
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Dir, "state", c.Dir, "keep state in `DIR` (else $MCP_STATE_DIR, $XDG_STATE_HOME/toolroom, ~/.local/state/toolroom)")
	fs.BoolVar(&c.Disabled, "no-state", c.Disabled, "keep no state; everything works, some things slower")
}

// Validate reports settings that cannot work. Whether the directory can be
// used is not its matter: that must never fail a tool that only reads.
func (c *Config) Validate() error {
	switch {
	case c.Dir != "" && c.Disabled:
		return toolerr.New(toolerr.InvalidParams, "--state and --no-state exclude each other")
	case strings.ContainsRune(c.Dir, 0):
		return toolerr.New(toolerr.InvalidParams, "--state: the directory's name holds a NUL")
	case c.MaxBytes < 0 || c.MaxAge < 0:
		return toolerr.New(toolerr.InvalidParams, "state: MaxBytes and MaxAge must not be negative")
	}
	return nil
}

// directory returns the absolute path of the state directory; "" when the
// environment names none, as for a user without a home.
func (c *Config) directory() string {
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
			return ""
		}
		return abs
	}
	// The XDG specification wants a relative path ignored.
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolroom")
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, ".local", "state", "toolroom")
}
