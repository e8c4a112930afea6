package proc

import (
	"io"
	"os"
	"path/filepath"
	"syscall"

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
		if err := os.WriteFile(filepath.Join(temp.path, prologueName), []byte(text), 0o600); err != nil {
			return nil, toolerr.New(toolerr.ExecutionError, "what is to run before the command cannot be written: %w", err)
		}
	}
	return []string{"BASH_ENV=" + filepath.Join(inside, prologueName)}, nil
}

func prologueText(prologue func(report string) string, inside string) string {
	return "unset BASH_ENV\n" + prologue(filepath.Join(inside, reportName))
}

// readReport reads what the prologue, or the command in its place, has left:
// a regular file, by no link out of the directory. Everything else is no
// report.
func readReport(temp string) []byte {
	dir, err := os.OpenRoot(temp)
	if err != nil {
		return nil
	}
	defer dir.Close()
	f, err := dir.OpenFile(reportName, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	report, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil || len(report) == 0 || len(report) > maxReport {
		return nil
	}
	return report
}
