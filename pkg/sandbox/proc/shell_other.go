//go:build !windows

package proc

import (
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// hasPrologue reports whether Command.Prologue is run.
const hasPrologue = true

// FindShell returns bash, found by PATH in an environment of NAME=value. It returns
// EXECUTION_ERROR if there is none.
func FindShell(env []string) (Shell, error) {
	for _, dir := range searchPath(env) {
		if path, err := exec.LookPath(filepath.Join(dir, "bash")); err == nil {
			return Shell{Name: "bash", Path: path}, nil
		}
	}
	return Shell{}, toolerr.New(toolerr.ExecutionError, "bash is not in the search path: install it, or start the server with a PATH that has it")
}

// temporaryVars returns the variables that name the private temporary directory.
func temporaryVars(dir string) []string { return []string{"TMPDIR=" + dir} }

// systemVarName returns the name of a variable as commands get it.
func systemVarName(name string) string { return name }

// defaultPath returns the search path of commands, used if the PATH of the server has no
// safe entry.
func defaultPath(map[string]string) string { return "/usr/local/bin:/usr/bin:/bin" }

// searchPath returns the directories of PATH in an environment.
func searchPath(env []string) (dirs []string) {
	for _, pair := range env {
		if path, ok := strings.CutPrefix(pair, "PATH="); ok {
			dirs = append(dirs, filepath.SplitList(path)...)
		}
	}
	return dirs
}
