// Package proc runs commands for the tool bash: it starts them, collects their
// output, ends them with all their descendants, and confines them by the
// kernel.
//
// The package starts the program that uses it a second time: as the supervisor
// of a command, which takes over before main (see package supervise), and as
// the confined command of the self-test. For the latter, call Init first in
// main, and in TestMain of a test program:
//
//	func main() {
//		proc.Init()
//		…
//	}
//
//	runner, err := proc.New(proc.Config{Level: proc.Highest})
//	p, err := runner.Start(ctx, proc.Command{Script: "make test", Dir: dir, Rules: fs})
//	result := p.Wait()
//
// # One command
//
// The supervisor runs between the caller and bash. Orphans of bash are
// reparented to it (PR_SET_CHILD_SUBREAPER); at a level with a pid namespace
// it is that namespace's first process. It exits when no descendant is left,
// which the kernel reports by ECHILD. It kills all descendants when the caller
// asks for that or is gone. It detects the latter by the end of the socket
// between them, even after a kill -9.
//
// A command ends when bash exits, not when its output is closed. Processes
// that bash left running get Config.Linger to finish writing, and are then
// ended too. To end a process means TERM, and KILL after Config.Grace.
//
// # Levels
//
// See Level and Report. The self-test finds out by trying what this machine
// enforces.
package proc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Level says how far a command is confined.
type Level = supervise.Level

// The levels.
const (
	// Highest means the highest level whose self-test passes, at least L1.
	Highest Level = ""
	L2            = supervise.L2
	L1            = supervise.L1
	Off           = supervise.Off
)

// Config holds the settings for all commands of a server. The zero value is
// usable.
type Config struct {
	// Level is the level to use. If this machine does not enforce it, commands
	// are refused; no lower level replaces it.
	Level Level
	// Network lets commands use the network like the server itself.
	Network bool
	// Egress restricts commands to these hosts at L2, through the proxy that
	// their environment names. nil allows none. It cannot be combined with
	// Network.
	Egress *egress.Allow
	// Connections bounds the concurrent connections of all commands through
	// Egress, besides one for each command. 0 means the bound of a single
	// command.
	Connections int

	// SpillDir is the directory for the output of commands beyond 128 KiB; ""
	// keeps only its beginning and end. SpillBytes bounds the size of each
	// file; 0 means 256 MiB.
	SpillDir   string
	SpillBytes int64
	// TempDir is the directory in which each command's private temporary
	// directory is made; "" means os.TempDir(). Directories left behind by
	// killed servers are removed from it.
	TempDir string
	// Writable are directories outside the roots that commands may write into.
	Writable []string
	// CacheDir holds the caches of build tools between commands: their
	// environment variables point into a directory in it, which commands with
	// the same writable roots share.
	// "" leaves the variables unchanged.
	CacheDir string

	// Sockets are unix sockets outside the roots that commands may connect to
	// at L2, which refuses all others. L1 refuses all. A socket that does not
	// exist when a command starts is not available to that command.
	Sockets []string

	// WatchDir holds the state that roots are compared with after each
	// command, and copies of reverted files. All servers of a user should use
	// the same directory. "" compares the commands of this runner alone, and
	// stores nothing.
	WatchDir string

	// Hidden are directories of the server whose content commands cannot see,
	// including later files. CacheDir, Writable and SpillDir stay readable.
	Hidden []string

	// RecordDir is the directory for records of the files that the runner hid
	// in a root. Later servers read them, since such a file may be moved to a
	// directory that the search does not reach. The records hold names, not
	// contents; "" keeps none.
	RecordDir string

	// UndoDir is the directory for records of the commands' changes in the
	// roots, at L2 and L1, for package undo. Each command has a directory in
	// it; "" keeps no records.
	UndoDir string

	// Grace is the time between TERM and KILL; 0 means 1.75 s, so that
	// everything has ended within 2 s.
	Grace time.Duration
	// Linger is the time that processes get to finish after bash has exited; 0
	// means 200 ms.
	Linger time.Duration
	// Limits bound the resources of each command.
	Limits Limits

	// Environ is the base of the commands' environment; nil means
	// os.Environ(). PassSecrets are names of variables to pass although they
	// look like secrets.
	Environ     []string
	PassSecrets []string
}

// Limits are the resource limits of a command.
type Limits = supervise.Limits

// Rules define which parts of the file system a command may use. *sandbox.FS
// implements it.
type Rules interface {
	Roots() []sandbox.Root
	Denied(abs string) bool            // must not be read
	ExplicitlyAllowed(abs string) bool // may be read, whatever its content
	Masked(abs string) bool            // must not be read while the command has network access
	Protected(abs string) string       // the reason why it must not be written, or ""
}

// Command describes a command to run.
type Command struct {
	// Script is run by bash -c.
	Script string
	// Prologue returns shell code that the same bash runs before Script.
	// Content written to the file report, by the prologue or anything else,
	// becomes Result.Report.
	Prologue func(report string) string
	// Dir is the absolute working directory.
	Dir string
	// Env are further variables of this command as NAME=value, besides those
	// of the Config. The same filter applies to them.
	Env []string
	// Stdin is the content of standard input. With KeepStdin, standard input
	// then stays open for Process.WriteStdin until Process.CloseStdin.
	Stdin     []byte
	KeepStdin bool
	// SpillDir replaces Config.SpillDir, unless it is "". The command can read
	// the files in it, even if it is in Config.Hidden, and those of no other
	// command's directory.
	SpillDir string
	// Files are open files that the command inherits, from descriptor 3 on.
	Files []*os.File
	// Timeout bounds the run time; 0 means no timeout.
	Timeout time.Duration
	// Rules apply to the command at the levels L1 and L2.
	Rules Rules
	// Layers keep the command's changes to these roots separate from the
	// roots. They need L2: at another level Start returns SANDBOX_UNAVAILABLE.
	Layers []Layer
}

// Layer is the copy-on-write layer over a root, see package changes.
type Layer = supervise.Layer

// Ending is the reason why a command ended.
type Ending string

// The endings.
const (
	Exited     Ending = "exited" // by itself; also by its own signal or one of Process.Signal
	TimedOut   Ending = "timeout"
	Cancelled  Ending = "cancelled" // its context was cancelled
	Killed     Ending = "killed"    // by Process.Kill or Runner.Close
	OverMemory Ending = "memory"
	Lost       Ending = "lost" // the supervisor was killed
)

// Result describes how a command ended.
type Result struct {
	Ending Ending
	// ExitCode is bash's exit code, or 128 + Signal; -1 means that it is not
	// known.
	ExitCode int
	Signal   syscall.Signal
	Duration time.Duration
	// LeftBehind counts the processes that were still running when bash exited
	// and had to be killed.
	LeftBehind int
	// Refused are the names of the variables of Command.Env that were not
	// passed.
	Refused []string
	// TakenBack are files that the command must not write, and whose changes
	// were reverted. A new file was removed, an old one restored; git's
	// settings may only have lost the settings that run programs.
	TakenBack []string
	// Protected are the files and directories in the roots that were mounted
	// read-only for the command (L2): it could not write, move or delete them, nor
	// move or delete a directory above them.
	Protected []string
	// Aside are the directories with copies of the reverted files.
	Aside []string
	// Gaps are the gaps of this command's confinement beyond those of
	// Report.Gaps.
	Gaps []string
	// Report is the final content of Command.Prologue's file, if that is at
	// most 1 MiB, else nil. The command can write to that file too, so do not
	// trust it.
	Report []byte
	// RefusedHosts are hosts that the command asked for and Config.Egress does
	// not allow. MoreRefused counts the refusals not in that list.
	RefusedHosts []egress.Refusal
	MoreRefused  int
	// Undo is the name of the record in Config.UndoDir, "" for a command
	// without a record.
	Undo  string
	Level Level
}

func (c *Config) complete() {
	if c.Grace <= 0 {
		c.Grace = 1750 * time.Millisecond
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
	case Highest, L2, L1, Off:
	default:
		return toolerr.New(toolerr.InvalidParams, "sandbox level %q is unknown: use L2, L1 or off", c.Level)
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
	if len(c.Sockets) > 0 && c.Level == L1 {
		return toolerr.New(toolerr.InvalidParams, "--allow-socket needs level L2, and --sandbox says L1: at L1 there are no unix sockets")
	}
	return c.validateEgress()
}

// maxScript is the largest length of an argument or variable of a program,
// without its final NUL (MAX_ARG_STRLEN of execve(2)).
const maxScript = 128<<10 - 1

// mostFiles bounds Command.Files. Four descriptors are reserved: standard
// input, output, the prologue, and the socket for the proxy's listener.
const mostFiles = supervise.MaxFiles - 4

func (c *Command) validate() error {
	switch {
	case c.Script == "":
		return toolerr.New(toolerr.MissingParameter, "the command is empty")
	case len(c.Files) > mostFiles:
		return toolerr.New(toolerr.InvalidParams, "%d further files are more than the %d that can be passed", len(c.Files), mostFiles)
	case c.SpillDir != "" && !filepath.IsAbs(c.SpillDir):
		return toolerr.New(toolerr.InvalidParams, "directory %q is relative: give an absolute path", c.SpillDir)
	case !filepath.IsAbs(c.Dir):
		return toolerr.New(toolerr.InvalidParams, "working directory %q is relative: give an absolute path", c.Dir)
	}
	if len(c.Script) > maxScript {
		return toolerr.New(toolerr.InvalidParams, "the command has %d bytes and bash takes at most %d: put it into a file and run that", len(c.Script), maxScript)
	}
	for _, pair := range c.Env {
		if name, _, _ := strings.Cut(pair, "="); len(pair) > maxScript {
			return toolerr.New(toolerr.InvalidParams, "the variable %.100s has %d bytes and a program takes at most %d: put the data into a file", name, len(pair), maxScript)
		}
	}
	for i := range len(c.Script) {
		if c.Script[i] == 0 {
			return toolerr.New(toolerr.InvalidParams, "the command has a NUL byte at %d: bash cannot be given one", i)
		}
	}
	return nil
}

// Run starts a command and waits until it ends. It returns the errors of
// Start.
func (r *Runner) Run(ctx context.Context, c Command) (Result, *Output, error) {
	p, err := r.Start(ctx, c)
	if err != nil {
		return Result{}, nil, err
	}
	return p.Wait(), p.Output(), nil
}

func unavailable(format string, args ...any) error {
	return toolerr.New(toolerr.SandboxUnavailable, "%s; --sandbox off runs commands without confinement", fmt.Sprintf(format, args...))
}
