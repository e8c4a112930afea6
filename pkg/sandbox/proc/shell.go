package proc

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Shell is a program that runs scripts.
type Shell struct {
	Name string // bash; on Windows without bash: pwsh, powershell or cmd
	Path string
}

// maxCommandLine is the largest length of a command line on Windows in characters.
const maxCommandLine = 32_000

// argv returns the arguments that run a script. It returns INVALID_PARAMS for a script that
// the shell cannot be given.
func (s Shell) argv(script string) ([]string, error) {
	if s.Name != "bash" && len(script) > maxCommandLine {
		return nil, toolerr.New(toolerr.InvalidParams, "the command has %d bytes and %s takes at most %d: put it into a file and run that", len(script), s.Name, maxCommandLine)
	}
	switch s.Name {
	case "pwsh", "powershell":
		// -Command makes 1 of every exit code of a program. The first line is
		// unchanged in number, so that errors name the lines of the script.
		return []string{s.Path, "-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command",
			"[Console]::OutputEncoding = [Text.Encoding]::UTF8; $ProgressPreference = 'SilentlyContinue'; " + script +
				"\nif (-not $?) { if ($LASTEXITCODE) { exit $LASTEXITCODE } else { exit 1 } }"}, nil
	case "cmd":
		if strings.ContainsAny(strings.TrimRight(script, "\r\n"), "\r\n") {
			return nil, toolerr.New(toolerr.InvalidParams, "cmd.exe runs one line: join the commands with &&, or put them into a .cmd file and run that")
		}
		return []string{s.Path, "/d", "/s", "/c", strings.TrimRight(script, "\r\n")}, nil
	}
	return []string{s.Path, "--noprofile", "--norc", "-c", script}, nil
}

// shellSearch finds the shell of Windows.
type shellSearch struct {
	getenv func(name string) string
	exists func(path string) bool
	join   func(parts ...string) string
}

// find returns bash of the search path or of Git, else PowerShell, else cmd.exe. The bash
// in the directory of Windows starts a Linux system, with other paths and outside the job
// of the command, so it does not count. It returns false if there is no shell.
func (f shellSearch) find(path []string) (Shell, bool) {
	system := f.getenv("SystemRoot")
	inSystem := func(dir string) bool {
		lower := strings.ToLower(strings.ReplaceAll(dir, "/", `\`))
		return system != "" && strings.HasPrefix(lower, strings.ToLower(system)) || strings.Contains(lower, `\windowsapps`)
	}
	for _, dir := range path {
		if at := f.join(dir, "bash.exe"); !inSystem(dir) && f.exists(at) {
			return Shell{"bash", at}, true
		}
	}
	for _, name := range []string{"ProgramFiles", "LocalAppData"} {
		parts := []string{f.getenv(name), "Git", "bin", "bash.exe"}
		if name == "LocalAppData" {
			parts = []string{f.getenv(name), "Programs", "Git", "bin", "bash.exe"}
		}
		if at := f.join(parts...); parts[0] != "" && f.exists(at) {
			return Shell{"bash", at}, true
		}
	}
	for _, name := range []string{"pwsh", "powershell"} {
		for _, dir := range path {
			if at := f.join(dir, name+".exe"); f.exists(at) {
				return Shell{name, at}, true
			}
		}
	}
	for _, shell := range []Shell{{"powershell", f.join(system, "System32", "WindowsPowerShell", "v1.0", "powershell.exe")}, {"cmd", f.join(system, "System32", "cmd.exe")}} {
		if system != "" && f.exists(shell.Path) {
			return shell, true
		}
	}
	return Shell{}, false
}
