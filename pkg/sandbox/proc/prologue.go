package proc

import (
	"fmt"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// reportName is the name of the file for Result.Report in the private temporary
// directory.
const reportName = ".toolroom-report"

// maxReport bounds the size of Result.Report in bytes.
const maxReport = 1 << 20

// addPrologue makes bash run the prologue before the script: bash -c first
// reads the file that BASH_ENV names. The file is a sealed memfd, which bash
// inherits after c.Files. Other commands could change a file in a directory,
// since their roots may contain any directory. The prologue closes the
// descriptor first. inside is the path of the private temporary directory as
// the command sees it. It returns the variable BASH_ENV as NAME=value, nil
// without a prologue, and EXECUTION_ERROR if the file cannot be made.
func (s *spec) addPrologue(c Command, inside string) ([]string, error) {
	if c.Prologue == nil {
		return nil, nil
	}
	fd := 3 + len(c.Files)
	text := fmt.Sprintf("exec %d<&-\nunset BASH_ENV\n%s", fd, c.Prologue(filepath.Join(inside, reportName)))
	f, err := sealedFile(text)
	if err != nil {
		return nil, toolerr.New(toolerr.ExecutionError, "the code that runs before the command cannot be passed to bash: %w", err)
	}
	s.prologue = f
	return []string{"BASH_ENV=" + prologuePath(fd)}, nil
}
