package proc

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Rules define which parts of the file system a command may use. Paths are
// absolute. *sandbox.FS implements it.
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
	// Program, instead of Script, is the absolute path of a program and its
	// arguments. It uses Stdio, and none of Prologue, Stdin and KeepStdin.
	Program []string
	// Stdio are the standard input, output and error of Program. Start does not
	// close them. Process.Output stays empty.
	Stdio [3]*os.File
	// Prologue returns shell code that the same bash runs before Script; nil
	// means none. The content of the file report at the end, written by this
	// code or by the command, becomes Result.Report.
	Prologue func(report string) string
	// Dir is the absolute working directory.
	Dir string
	// Env are variables of this command as NAME=value, which override those of
	// Config.Environ. The same filter applies to them.
	Env []string
	// Stdin is the content of standard input. With KeepStdin, standard input
	// then stays open for Process.WriteStdin until Process.CloseStdin.
	Stdin     []byte
	KeepStdin bool
	// SpillDir replaces Config.SpillDir, unless it is "". If it is in one of
	// Config.Hidden, it is the only directory there that the command can read.
	SpillDir string
	// Files are open files that the command inherits, from descriptor 3 on.
	// Start does not close them.
	Files []*os.File
	// Timeout bounds the run time; 0 means no timeout.
	Timeout time.Duration
	// Rules apply to the command at L1 and L2, which need them.
	Rules Rules
	// Layers keep the command's changes to these roots separate from the
	// roots. They need L2: at another level Start returns SANDBOX_UNAVAILABLE.
	Layers []Layer
}

// Layer is the copy-on-write layer over a root, see package changes.
type Layer = supervise.Layer

// maxArgBytes is the largest length of an argument or variable of a program in
// bytes, without its final NUL (MAX_ARG_STRLEN of execve(2)).
const maxArgBytes = 128<<10 - 1

// maxExtraFiles bounds Command.Files. Five descriptors are reserved: standard
// input, output and error, the prologue, and the socket for the proxy's
// listener.
const maxExtraFiles = supervise.MaxFiles - 5

// validate returns an INVALID_PARAMS or MISSING_PARAMETER error for a command
// that no system could run, else nil. It does not look at the file system.
func (c *Command) validate() error {
	if len(c.Program) > 0 && !filepath.IsAbs(c.Program[0]) {
		return toolerr.New(toolerr.InvalidParams, "program %q is relative: give an absolute path", c.Program[0])
	}
	switch {
	case c.Script == "" && len(c.Program) == 0:
		return toolerr.New(toolerr.MissingParameter, "the command is empty")
	case len(c.Files) > maxExtraFiles:
		return toolerr.New(toolerr.InvalidParams, "%d further files are more than the %d that can be passed", len(c.Files), maxExtraFiles)
	case c.SpillDir != "" && !filepath.IsAbs(c.SpillDir):
		return toolerr.New(toolerr.InvalidParams, "directory %q is relative: give an absolute path", c.SpillDir)
	case !filepath.IsAbs(c.Dir):
		return toolerr.New(toolerr.InvalidParams, "working directory %q is relative: give an absolute path", c.Dir)
	}
	if len(c.Script) > maxArgBytes {
		return toolerr.New(toolerr.InvalidParams, "the command has %d bytes and bash takes at most %d: put it into a file and run that", len(c.Script), maxArgBytes)
	}
	for _, pair := range c.Env {
		if name, _, _ := strings.Cut(pair, "="); len(pair) > maxArgBytes {
			return toolerr.New(toolerr.InvalidParams, "the variable %.100s has %d bytes and a program takes at most %d: put the data into a file", name, len(pair), maxArgBytes)
		}
	}
	for i := range len(c.Script) {
		if c.Script[i] == 0 {
			return toolerr.New(toolerr.InvalidParams, "the command has a NUL byte at %d: bash cannot be given one", i)
		}
	}
	return nil
}
