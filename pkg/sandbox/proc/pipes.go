package proc

import (
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// commandPipes holds both ends of a command's standard input and output.
type commandPipes struct {
	childEnds   [3]*os.File // standard input, output and error of the command
	callerOwned bool        // theirs belong to the caller, see Command.Stdio
	stdin       *os.File    // to write the command's input; nil without input
	output      *os.File    // to read the command's output; nil if shared
}

// openPipes opens the pipes of a script, whose output and errors go to the same
// pipe. Its input is the null device, unless c has Stdin or KeepStdin. The
// caller closes both ends. For a program, openPipes opens nothing and returns
// c.Stdio, which must not be closed here. It returns EXECUTION_ERROR if a pipe cannot be
// made.
func openPipes(c Command) (p commandPipes, err error) {
	if len(c.Program) > 0 {
		return commandPipes{childEnds: c.Stdio, callerOwned: true}, nil
	}
	if len(c.Stdin) == 0 && !c.KeepStdin {
		p.childEnds[0], err = os.Open(os.DevNull)
	} else {
		p.childEnds[0], p.stdin, err = os.Pipe()
	}
	if err != nil {
		return p, toolerr.New(toolerr.ExecutionError, "the pipe for standard input cannot be created: %w", err)
	}
	if p.output, p.childEnds[1], err = outputPipe(); err != nil {
		closeAll(p.childEnds[0], p.stdin)
		return p, toolerr.New(toolerr.ExecutionError, "the pipe for the output cannot be created: %w", err)
	}
	p.childEnds[2] = p.childEnds[1]
	return p, nil
}

// closeChildEnds closes the ends that the command uses; the command has descriptors of
// its own for them. It closes nothing if the caller owns them.
func (p commandPipes) closeChildEnds() {
	if !p.callerOwned {
		closeAll(p.childEnds[:2]...)
	}
}
