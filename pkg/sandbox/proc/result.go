package proc

import (
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

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
	// Signal is the signal that killed bash, 0 if it exited.
	Signal syscall.Signal
	// Duration is the run time, with the time to prepare the command.
	Duration time.Duration
	// LeftBehind counts the processes that were still running when bash exited
	// and had to be ended after Config.Linger.
	LeftBehind int
	// RefusedVars are the names of the variables of Command.Env that were not
	// passed.
	RefusedVars []string
	// Reverted are the absolute paths, sorted, of files that the command must
	// not write, and whose changes were reverted. A new file was removed, an
	// old one restored; git's settings may only have lost the settings that
	// run programs.
	Reverted []string
	// Protected are the files and directories in the roots that were mounted
	// read-only for the command (L2): it could not write, move or delete them,
	// nor move or delete a directory above them.
	Protected []string
	// CopyDirs are the directories with copies of the reverted files.
	CopyDirs []string
	// Gaps are the gaps of this command's confinement beyond those of
	// Report.Gaps.
	Gaps []string
	// Unguarded are those of Gaps about files that the command may have left for
	// other programs to run.
	Unguarded []string
	// Report is the final content of Command.Prologue's file, if that is at
	// most 1 MiB, else nil. The command can write to that file too, so do not
	// trust it.
	Report []byte
	// RefusedHosts are hosts that the command asked for and Config.Egress does
	// not allow. MoreRefused counts the refusals not in that list.
	RefusedHosts []egress.Refusal
	MoreRefused  int
	// Accesses are the accesses of a watched command, each once, in their order. They
	// may have failed. They end after 50 000.
	Accesses []Access
	// Undo is the name of the record in Config.UndoDir, "" for a command
	// without a record.
	Undo string
	// Level is the level at which the command ran.
	Level Level
}

// Access is an access of a watched command to a file or an address.
type Access struct {
	Kind AccessKind
	Name string // an absolute path as the command sees it, or an address with a port
}

// AccessKind is a kind of access.
type AccessKind = supervise.AccessKind

// The kinds of access.
const (
	AccessRead    = supervise.AccessRead
	AccessWrite   = supervise.AccessWrite
	AccessConnect = supervise.AccessConnect
	AccessSocket  = supervise.AccessSocket
)
