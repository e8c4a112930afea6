package proc

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// hasPrologue reports whether Command.Prologue is run: PowerShell and cmd.exe cannot run it,
// and bash could not open it.
const hasPrologue = false

// FindShell returns the shell of commands, found by the variables of an environment of
// NAME=value: bash, else PowerShell, else cmd.exe. It returns EXECUTION_ERROR if there is
// none.
func FindShell(env []string) (Shell, error) {
	search := shellSearch{
		getenv: func(name string) string {
			for _, pair := range env {
				if key, value, _ := strings.Cut(pair, "="); strings.EqualFold(key, name) {
					return value
				}
			}
			return ""
		},
		exists: func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && !info.IsDir()
		},
		join: filepath.Join,
	}
	if shell, ok := search.find(filepath.SplitList(search.getenv("PATH"))); ok {
		return shell, nil
	}
	return Shell{}, toolerr.New(toolerr.ExecutionError, "neither bash nor PowerShell nor cmd.exe is found: start the server with the variables PATH and SystemRoot")
}

// temporaryVars returns the variables that name the private temporary directory.
func temporaryVars(dir string) []string {
	return []string{"TMPDIR=" + dir, "TEMP=" + dir, "TMP=" + dir}
}

// systemVarName returns the name of a variable as commands get it: names differ only in
// case here, and the search path is looked up as PATH.
func systemVarName(name string) string {
	for _, known := range []string{"PATH", "TEMP", "TMP"} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return name
}

// defaultPath returns the search path of commands, used if the PATH of the server has no
// safe entry. values has the variables of the environment.
func defaultPath(values map[string]string) string {
	for name, value := range values {
		if strings.EqualFold(name, "SystemRoot") {
			return filepath.Join(value, "System32") + string(filepath.ListSeparator) + value
		}
	}
	return `C:\Windows\System32`
}
