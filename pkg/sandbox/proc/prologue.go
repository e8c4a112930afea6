package proc

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// What a prologue is called in the private temporary directory, and where it
// reports.
const (
	prologueName = ".toolroom-prologue"
	reportName   = ".toolroom-report"
)

// maxReport bounds Result.Report.
const maxReport = 1 << 20

// writePrologue has bash run c's prologue before its script: bash reads what
// BASH_ENV names when it is given one by -c. The file is in temp, which the
// command sees as inside. It returns the variable.
func writePrologue(c Command, temp privateTemp, inside string) ([]string, error) {
	if c.Prologue == nil {
		return nil, nil
	}
	if text := prologueText(c.Prologue, inside); text != temp.prologue {
		if err := temp.write(prologueName, text); err != nil {
			return nil, toolerr.New(toolerr.ExecutionError, "what is to run before the command cannot be written: %w", err)
		}
	}
	return []string{"BASH_ENV=" + filepath.Join(inside, prologueName)}, nil
}

func prologueText(prologue func(report string) string, inside string) string {
	return "unset BASH_ENV\n" + prologue(filepath.Join(inside, reportName))
}
