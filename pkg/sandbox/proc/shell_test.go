package proc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// searchOf finds the shell of a Windows with these files and variables.
func searchOf(files []string, env map[string]string, path string) (Shell, bool) {
	return shellSearch{
		getenv: func(name string) string { return env[name] },
		exists: func(path string) bool {
			for _, file := range files {
				if strings.EqualFold(file, path) {
					return true
				}
			}
			return false
		},
		join: func(parts ...string) string { return strings.Join(parts, `\`) },
	}.find(strings.Split(path, ";"))
}

func TestShellOfWindows(t *testing.T) {
	const (
		wsl        = `C:\Windows\System32\bash.exe`
		store      = `C:\Users\me\AppData\Local\Microsoft\WindowsApps\bash.exe`
		git        = `C:\Program Files\Git\bin\bash.exe`
		msys       = `D:\msys64\usr\bin\bash.exe`
		pwsh       = `C:\Program Files\PowerShell\7\pwsh.exe`
		powershell = `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
		cmd        = `C:\Windows\System32\cmd.exe`
	)
	env := map[string]string{"SystemRoot": `C:\WINDOWS`, "ProgramFiles": `C:\Program Files`, "LocalAppData": `C:\Users\me\AppData\Local`}
	const path = `C:\Windows\System32;C:\Users\me\AppData\Local\Microsoft\WindowsApps;D:\msys64\usr\bin;C:\Program Files\PowerShell\7`
	for _, c := range []struct {
		files      []string
		name, want string
	}{
		{[]string{wsl, store, git, msys, pwsh, powershell, cmd}, "bash", msys},
		{[]string{wsl, store, git, pwsh, powershell, cmd}, "bash", git},
		{[]string{wsl, store, pwsh, powershell, cmd}, "pwsh", pwsh},
		{[]string{wsl, powershell, cmd}, "powershell", powershell},
		{[]string{wsl, cmd}, "cmd", cmd},
	} {
		shell, ok := searchOf(c.files, env, path)
		require.True(t, ok)
		require.Equal(t, c.name, shell.Name)
		require.True(t, strings.EqualFold(c.want, shell.Path), shell.Path)
	}
	_, ok := searchOf([]string{wsl, store}, env, path)
	require.False(t, ok, "the bash of WSL is not one for this system")
}

func TestShellArguments(t *testing.T) {
	argv, err := Shell{"powershell", "ps"}.argv("Get-Item x\nexit 3")
	require.NoError(t, err)
	last := argv[len(argv)-1]
	require.Equal(t, "-Command", argv[len(argv)-2])
	require.Contains(t, strings.Split(last, "\n")[0], "Get-Item x", "the script's first line is line 1")
	require.Contains(t, last, "exit $LASTEXITCODE")
	argv, err = Shell{"cmd", "cmd.exe"}.argv("dir && echo \"a b\"\r\n")
	require.NoError(t, err)
	require.Equal(t, []string{"cmd.exe", "/d", "/s", "/c", `dir && echo "a b"`}, argv)
	_, err = Shell{"cmd", "cmd.exe"}.argv("a\nb")
	require.ErrorContains(t, err, "cmd.exe runs one line")
	_, err = Shell{"pwsh", "pwsh"}.argv(strings.Repeat("x", maxCommandLine+1))
	require.ErrorContains(t, err, "put it into a file")
	argv, err = Shell{"bash", "/bin/bash"}.argv(strings.Repeat("x", maxCommandLine+1))
	require.NoError(t, err)
	require.Equal(t, "-c", argv[3])
}
