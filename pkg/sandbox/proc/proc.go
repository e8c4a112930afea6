// Package proc runs commands for the tool bash: it starts them, keeps what
// they print, ends them with everything they started, and confines them by
// the kernel.
//
// The package starts the program that uses it again: as the supervisor of a
// command, which it becomes before main (see package supervise), and as what
// the self-test confines. The latter begins in Init, which is to be called first
// of all in main (of a test program in TestMain):
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
// The supervisor stands between the caller and bash. It is the adoptive parent
// of all that bash leaves behind (PR_SET_CHILD_SUBREAPER), and where the level
// has a pid namespace it is its first process. It ends when no descendant is
// left, which the kernel says by ECHILD; and it ends them all when the caller
// asks or is gone, which it learns from the end of the socket between them,
// also after a kill -9.
//
// A command is over when bash exits, not when its output is closed. What bash
// started and left behind gets a moment to finish writing (Config.Linger) and
// is then ended too. Ending is TERM, Config.Grace later KILL.
//
// # Levels
//
// See Level and Report: what is enforced on this machine is found by trying.
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

// Level is how far a command is confined.
type Level = supervise.Level

// The levels.
const (
	// Highest is the highest level whose self-test passes, L1 at least.
	Highest Level = ""
	L2            = supervise.L2
	L1            = supervise.L1
	Off           = supervise.Off
)

// Config is what holds for all commands of a server. The zero value is usable.
type Config struct {
	// Level is the level to use; one that this machine does not enforce is
	// refused rather than replaced by a lower one.
	Level Level
	// Network lets commands reach the network as the server itself can.
	Network bool
	// Egress lets commands reach these hosts alone, at L2, by the proxy that
	// their environment names; nil stands for none. Not with Network.
	Egress *egress.Allow
	// Connections is how many of these all commands together may have at once,
	// besides one for each; 0 stands for what each may have by itself.
	Connections int

	// SpillDir is where the output of a command goes past 128 KiB; "" keeps
	// only its beginning and end. SpillBytes bounds a file of it; 0 stands
	// for 256 MiB.
	SpillDir   string
	SpillBytes int64
	// TempDir is where each command's private temporary directory is made;
	// "" stands for os.TempDir(). What servers that were killed have left
	// there is removed.
	TempDir string
	// Writable are directories besides the roots that commands may write
	// into.
	Writable []string
	// CacheDir is where build tools keep what they made from one command to
	// the next: the variables that they are configured by lead into it. What
	// else is in it is theirs, too. "" leaves the variables alone.
	CacheDir string

	// Sockets are unix sockets outside the roots that commands may connect to
	// at L2, where others are refused; at L1 all are. One that does not exist
	// when a command starts is not there for it.
	Sockets []string

	// WatchDir is where the state is kept that roots are compared with after each
	// command, and what was taken back. All servers of a user are to have the
	// same; "" compares the commands of this runner alone, and keeps nothing.
	WatchDir string

	// Hidden are directories of our own of which commands see nothing, whatever
	// comes into them, but CacheDir, Writable and SpillDir, which they read.
	Hidden []string

	// RecordDir is where the runner notes which files it hid in a root, for later
	// servers: one may be moved to where no search looks. It has names, not
	// contents; "" keeps nothing.
	RecordDir string

	// UndoDir is where what commands change in the roots is recorded at L2 and L1,
	// a directory each, for package undo; "" keeps nothing.
	UndoDir string

	// Grace is how long after TERM comes KILL; 0 stands for a little less
	// than 2 s, so that within those all is over.
	Grace time.Duration
	// Linger is how long what bash left running may finish; 0 stands for
	// 200 ms.
	Linger time.Duration
	// Limits bound what each command may use.
	Limits Limits

	// Environ is where the commands' environment starts from; nil stands for
	// os.Environ(). PassSecrets are the names of variables that are passed
	// although they look like secrets.
	Environ     []string
	PassSecrets []string
}

// Limits are resource limits of a command.
type Limits = supervise.Limits

// Rules say what of the file system a command may use. A *sandbox.FS is one.
type Rules interface {
	Roots() []sandbox.Root
	Denied(abs string) bool            // must not be read
	ExplicitlyAllowed(abs string) bool // may be read, whatever is in it
	Masked(abs string) bool            // must not be read while the network can be reached
	Protected(abs string) string       // why it must not be written, or ""
}

// Command is what to run.
type Command struct {
	// Script is run by bash -c.
	Script string
	// Prologue makes shell code that the same bash runs before Script. What
	// it, or anything else, writes to the file report is Result.Report.
	Prologue func(report string) string
	// Dir is the absolute working directory.
	Dir string
	// Env are variables of this command, as NAME=value, besides those of
	// the Config. They pass the same filter.
	Env []string
	// Stdin is what it reads. With KeepStdin it may read on what
	// Process.WriteStdin gives it, up to Process.CloseStdin.
	Stdin     []byte
	KeepStdin bool
	// SpillDir takes the place of Config.SpillDir, "" leaves that: the command reads
	// what is in it, also where it lies in Config.Hidden, and nothing of others.
	SpillDir string
	// Files are further open files of the command, from descriptor 3 on.
	Files []*os.File
	// Timeout ends it; 0 stands for none.
	Timeout time.Duration
	// Rules hold for it at the levels L1 and L2.
	Rules Rules
	// Layers keep the command's changes to these roots apart from them. They
	// need L2: at another level Start returns SANDBOX_UNAVAILABLE.
	Layers []Layer
}

// Layer is the copy-on-write layer over a root, see package changes.
type Layer = supervise.Layer

// Ending is why a command ended.
type Ending string

// The endings.
const (
	Exited     Ending = "exited" // by itself; also by a signal of its own or of Process.Signal
	TimedOut   Ending = "timeout"
	Cancelled  Ending = "cancelled" // its context was
	Killed     Ending = "killed"    // Process.Kill, Runner.Close
	OverMemory Ending = "memory"
	Lost       Ending = "lost" // the supervisor was killed
)

// Result is how a command ended.
type Result struct {
	Ending Ending
	// ExitCode is bash's, or 128 + Signal; -1 when it is not known.
	ExitCode int
	Signal   syscall.Signal
	Duration time.Duration
	// LeftBehind is how many processes bash had left running when it exited
	// and that had to be ended.
	LeftBehind int
	// Refused are the variables of Command.Env that were not passed.
	Refused []string
	// TakenBack are files that the command wrote although it must not, and
	// that are as they were again, or are gone where they were not there before,
	// or are without those of git's settings that run programs.
	TakenBack []string
	// Protected are the files and directories in the roots that were mounted
	// read-only for the command (L2): it could not write, move or delete them, nor
	// move or delete a directory above them.
	Protected []string
	// Aside are the directories that keep what TakenBack had become.
	Aside []string
	// Gaps are what was open to this very command beyond Report.Gaps.
	Gaps []string
	// Report is what Command.Prologue's file held at the end, up to 1 MiB,
	// else nil. The command can write to that file as well: it is a claim.
	Report []byte
	// RefusedHosts are those that Config.Egress does not allow and that were
	// asked for, and MoreRefused how many refusals are not among them.
	RefusedHosts []egress.Refusal
	MoreRefused  int
	// Undo names the record in Config.UndoDir, "" for a command without one.
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

// Validate reports the first setting that can never work.
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

// maxScript is how long one argument or variable of a program may be, which
// ends in a NUL (MAX_ARG_STRLEN of execve(2)).
const maxScript = 128<<10 - 1

// mostFiles bounds Command.Files, next to standard input, the output, the prologue and
// the way out of the proxy.
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

// Run starts a command and waits for its end.
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
