package proc

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// reportName is the file in the private temporary directory where a prologue reports.
const reportName = ".toolroom-report"

// maxReport bounds Result.Report.
const maxReport = 1 << 20

// addPrologue has bash run c's prologue before its script: bash reads what BASH_ENV
// names when it is given one by -c. It is a sealed file in memory, which the bash
// inherits after c's own files: a file in a directory could be changed by other
// commands, whose roots may hold any directory. The prologue closes it first of all.
// inside is the private temporary directory as the command sees it. It returns the
// variable.
func (s *spec) addPrologue(c Command, inside string) ([]string, error) {
	if c.Prologue == nil {
		return nil, nil
	}
	fd := 3 + len(c.Files)
	text := fmt.Sprintf("exec %d<&-\nunset BASH_ENV\n%s", fd, c.Prologue(filepath.Join(inside, reportName)))
	f, err := sealedFile(text)
	if err != nil {
		return nil, toolerr.New(toolerr.ExecutionError, "what is to run before the command cannot be passed to it: %w", err)
	}
	s.prologue = f
	return []string{fmt.Sprintf("BASH_ENV=/proc/self/fd/%d", fd)}, nil
}

// files are those of the command, in their order.
func (s *spec) files(c Command, stdin, output *os.File) []*os.File {
	files := append([]*os.File{stdin, output}, c.Files...)
	if s.prologue != nil {
		files = append(files, s.prologue)
	}
	return append(s.withFollowed(s.link.files(files)), s.undo...)
}
