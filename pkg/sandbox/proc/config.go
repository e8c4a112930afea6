package proc

import (
	"os"
	"path/filepath"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config holds the settings for all commands of a server. The zero value is
// usable.
type Config struct {
	// Level is the level to use. If this machine does not enforce it, commands
	// are refused; no lower level replaces it.
	Level Level
	// Tested is the report of another runner's self-test of this level; nil means
	// that the runner tests the level before its first command.
	Tested *Report
	// Network lets commands use the network like the server itself.
	Network bool
	// Egress restricts commands to these hosts at L2, through the proxy that
	// their environment names. nil allows none. It cannot be combined with
	// Network.
	Egress *egress.Allow
	// Connections bounds the concurrent connections of all commands through
	// Egress together, not counting one connection of each command. 0 means
	// that only the bound for a single command applies.
	Connections int

	// Proxy configures the proxy for Egress. Its fields Allow and Shared are not
	// used.
	Proxy egress.Config

	// Watch reports the files that commands name, and the addresses that they connect
	// to, as Result.Accesses. Commands take longer.
	Watch bool

	// SpillDir is the directory for the output of commands beyond 128 KiB; ""
	// keeps only its beginning and end. SpillBytes bounds the size of each
	// file; 0 means DefaultSpillBytes.
	SpillDir   string
	SpillBytes int64
	// TempDir is the directory in which each command's private temporary
	// directory is made; "" means os.TempDir(). Directories of servers that
	// were killed are removed from it.
	TempDir string
	// Writable are directories outside the roots that commands may write into.
	Writable []string
	// CacheDir holds the caches of build tools between commands: their
	// environment variables point into a directory in it, which commands with
	// the same writable roots share. "" leaves the variables unchanged.
	CacheDir string

	// Sockets are unix sockets outside the roots that commands may connect to
	// at L2, which refuses all others. L1 refuses all. A socket that does not
	// exist when a command starts is not available to that command.
	Sockets []string

	// StateDirs are those of Hidden that hold the state of servers. At L1, no
	// command runs if one of them, or WatchDir, is in a writable root.
	StateDirs []string

	// WatchDir is the state directory of package writeguard: it holds the
	// baselines that roots are compared with after each command, and copies of
	// reverted files. All servers of a user should use the same directory. ""
	// keeps the baselines in memory and stores no copies.
	WatchDir string

	// Hidden are directories of the server whose content commands cannot see,
	// including later files. CacheDir, Writable and SpillDir stay readable.
	Hidden []string

	// Readable are directories and files in Hidden that stay readable.
	Readable []string

	// HomeListings, if not nil, keeps the entries of directories in homes for other
	// Runners with the same value.
	HomeListings *HomeListings

	// RecordDir is the directory for records of the files that the runner hid
	// in a root. Later servers read them, since such a file may be moved to a
	// directory that the search does not reach. The records hold names, not
	// contents; "" keeps none.
	RecordDir string

	// UndoDir is the directory for records of the commands' changes in the
	// roots, at L2 and L1, for package undo. Each command has a directory in
	// it; "" keeps no records.
	UndoDir string

	// Grace is the time between TERM and KILL; 0 means DefaultGrace.
	Grace time.Duration
	// Linger is the time that processes get to finish after bash has exited,
	// before they are ended; 0 means 200 ms.
	Linger time.Duration
	// Limits bound the resources of each command.
	Limits Limits

	// Environ is the base of the commands' environment; nil means
	// os.Environ(). PassSecrets are names of variables to pass although they
	// look like secrets.
	Environ     []string
	PassSecrets []string
}

// DefaultGrace is the default of Config.Grace. With it, everything has ended within two
// seconds, even on a busy machine.
const DefaultGrace = 1750 * time.Millisecond

// Limits are the resource limits of a command. Zero means the default, see
// supervise.Limits.
type Limits = supervise.Limits

// setDefaults replaces zero values by their defaults.
func (c *Config) setDefaults() {
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	if c.Linger <= 0 {
		c.Linger = 200 * time.Millisecond
	}
	if c.TempDir == "" {
		c.TempDir = os.TempDir()
	}
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
}

// Validate returns an INVALID_PARAMS error for the first setting that can
// never work, else nil.
func (c *Config) Validate() error {
	switch c.Level {
	case Highest, L2, L1, Seatbelt, Restricted, Off:
	default:
		return toolerr.New(toolerr.InvalidParams, "sandbox level %q is unknown: use L2, L1, seatbelt, restricted or off", c.Level)
	}
	for _, dir := range append([]string{c.SpillDir, c.TempDir, c.CacheDir, c.RecordDir, c.WatchDir, c.UndoDir}, c.Writable...) {
		if dir != "" && !filepath.IsAbs(dir) {
			return toolerr.New(toolerr.InvalidParams, "directory %q is relative: give an absolute path", dir)
		}
	}
	for _, path := range c.Sockets {
		if !filepath.IsAbs(path) {
			return toolerr.New(toolerr.InvalidParams, "socket %q is relative: give an absolute path", path)
		}
	}
	if len(c.Sockets) > 0 && (c.Level == L1 || c.Level == Seatbelt) {
		return toolerr.New(toolerr.InvalidParams, "--allow-socket needs level L2, and --sandbox says %s: there are no unix sockets at that level", c.Level)
	}
	return c.validateEgress()
}
