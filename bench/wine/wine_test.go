//go:build wine

package wine

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// wine64 is the program of Debian's package wine64.
const wine64 = "/usr/lib/wine/wine64"

// prefix makes an empty Windows and returns the environment of its programs.
func prefix(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	env := append(os.Environ(), "WINEPREFIX="+dir, "WINEDEBUG=-all", "DISPLAY=", "XDG_RUNTIME_DIR="+t.TempDir())
	start := exec.Command(wine64, "wineboot", "--init")
	start.Env = env
	out, err := start.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		end := exec.Command(filepath.Join(filepath.Dir(wine64), "wineserver64"), "--kill", "--wait")
		end.Env = env
		end.Run() //nolint:errcheck // it has ended by itself
	})
	system := filepath.Join(dir, "drive_c", "windows", "system32")
	// Programs of Go need a function of Windows 10 that Wine has since version 8.13.
	random := filepath.Join(system, "bcryptprimitives.dll")
	if _, err := os.Stat(random); err != nil {
		require.NoError(t, os.WriteFile(random, forwarder("bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036"), 0o600))
	}
	return env
}

// forwarder returns a library for Windows on amd64 with one function, which is that of
// another library. It has no code: a table of exports is all of it.
func forwarder(library, function, target string) []byte {
	const (
		headers, section = 0x200, 0x1000 // offsets in the file and in memory
		tables           = 40 + 4 + 4 + 4
	)
	names, at := []byte{}, [3]uint32{}
	for i, name := range []string{library, function, target} {
		at[i] = uint32(section + tables + len(names))
		names = append(append(names, name...), 0)
	}
	le := binary.LittleEndian
	u32 := func(b []byte, values ...uint32) []byte {
		for _, value := range values {
			b = le.AppendUint32(b, value)
		}
		return b
	}
	u16 := func(b []byte, values ...uint16) []byte {
		for _, value := range values {
			b = le.AppendUint16(b, value)
		}
		return b
	}
	exports := u32(nil, 0, 0, 0, at[0], 1, 1, 1, section+40, section+44, section+48) // the directory
	exports = u32(exports, at[2], at[1], 0)                                          // addresses, names, ordinals
	exports = append(exports, names...)

	file := append([]byte("MZ"), make([]byte, 58)...)
	file = u32(file, 64)
	file = append(file, "PE\x00\x00"...)
	file = u16(file, 0x8664, 1)
	file = u32(file, 0, 0, 0)
	file = u16(file, 240, 0x2022) // size of the optional header; a library
	file = u16(file, 0x20b, 0)
	file = u32(file, 0, 0x200, 0, 0, section)
	file = le.AppendUint64(file, 0x18f000000)
	file = u32(file, section, headers)
	file = u16(file, 6, 0, 0, 0, 6, 0)
	file = u32(file, 0, 2*section, headers, 0)
	file = u16(file, 3, 0x160)
	for _, size := range []uint64{0x100000, 0x1000, 0x100000, 0x1000} { // stack and heap
		file = le.AppendUint64(file, size)
	}
	file = u32(file, 0, 16, section, uint32(len(exports)))
	file = append(file, make([]byte, 15*8)...)
	file = append(file, ".rdata\x00\x00"...)
	file = u32(file, 0x200, section, 0x200, headers, 0, 0, 0, 0x40000040)
	file = append(file, make([]byte, headers-len(file))...)
	file = append(file, exports...)
	return append(file, make([]byte, headers+0x200-len(file))...)
}

// program returns a program that make wine built.
func program(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "bin", "windows", name+".exe"))
	require.NoError(t, err)
	require.FileExists(t, file, "run make wine")
	return file
}

// Each program serves its tool, and mcp-host serves them all.
func TestProgramsServe(t *testing.T) {
	env := prefix(t)
	calls := map[string]struct {
		arguments map[string]any
		want      string
	}{
		"ls":   {map[string]any{"path": "."}, "hello.txt"},
		"glob": {map[string]any{"pattern": "**/*.go"}, "sub/main.go"},
		"grep": {map[string]any{"pattern": "wor"}, "hello.txt\n"},
		"view": {map[string]any{"file_path": "hello.txt"}, "utf-8 crlf"},
		"edit": {map[string]any{"file_path": "hello.txt", "old_string": "world", "new_string": "world!"}, "+world!"},
		// Wine 8 cannot delete a file in the way that a new file needs.
		"replace": {map[string]any{"file_path": "sub/main.go", "content": "package sub\n"}, "sub/main.go"},
	}
	for _, name := range []string{"ls", "glob", "grep", "view", "edit", "replace", "host"} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(root, "hello.txt"), []byte("hello\r\nworld\r\n"), 0o600))
			require.NoError(t, os.Mkdir(filepath.Join(root, "sub"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(root, "sub", "main.go"), []byte("package main\n"), 0o600))
			args := []string{program(t, "mcp-"+name)}
			if name == "host" {
				args = append(args, "stdio")
			}
			server := mcpkittest.StartWith(t, wine64, mcpkittest.Options{Args: append(args, "--root", `Z:`+strings.ReplaceAll(root, "/", `\`)), Dir: root, Env: env})
			for tool, call := range calls {
				if tool == name || name == "host" {
					require.Contains(t, server.Call(tool, call.arguments).Text, call.want, tool)
				}
			}
			require.Zero(t, server.Close())
			if name == "edit" {
				text, err := os.ReadFile(filepath.Join(root, "hello.txt"))
				require.NoError(t, err)
				require.Equal(t, "hello\r\nworld!\r\n", string(text))
			}
		})
	}
}

// Without a flag, bash refuses to run commands. At the level restricted it has no
// privileges, and its processes end with it.
func TestBashReportsItsLevel(t *testing.T) {
	env := prefix(t)
	doctor := func(args ...string) (string, error) {
		cmd := exec.Command(wine64, append([]string{program(t, "mcp-bash"), "--doctor"}, args...)...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := doctor()
	require.Error(t, err)
	require.Contains(t, out, "bash refuses to run")
	require.Contains(t, out, "confines neither files nor the network")
	out, err = doctor("--sandbox", "restricted")
	require.NoError(t, err, out)
	for _, want := range []string{"blocked     use privileges", "blocked     leave the job", "blocked     leave a process running", "bash runs commands at restricted", "  the network"} {
		require.Contains(t, out, want)
	}
}

// removeStub removes Wine's powershell.exe, which runs nothing.
func removeStub(t *testing.T, env []string) {
	t.Helper()
	for _, pair := range env {
		if dir, ok := strings.CutPrefix(pair, "WINEPREFIX="); ok {
			require.NoError(t, os.Remove(filepath.Join(dir, "drive_c", "windows", "system32", "WindowsPowerShell", "v1.0", "powershell.exe")))
		}
	}
}

// bash runs commands in cmd.exe, since Wine has neither bash nor PowerShell, and says so.
func TestBashRuns(t *testing.T) {
	env := prefix(t)
	removeStub(t, env)
	for _, level := range []string{"off", "restricted"} {
		t.Run(level, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(root, "sub"), 0o700))
			server := mcpkittest.StartWith(t, wine64, mcpkittest.Options{
				Args: []string{program(t, "mcp-bash"), "--sandbox", level, "--root", `Z:` + strings.ReplaceAll(root, "/", `\`)}, Dir: root, Env: env,
			})
			run := func(arguments map[string]any) string { return server.Call("bash", arguments).Text }
			text := run(map[string]any{"command": `echo "a b" %X%`, "env": map[string]string{"X": "y"}})
			require.Contains(t, text, `"a b" y`)
			require.Contains(t, text, "exit 0")
			require.Contains(t, text, "sandbox: "+level)
			require.Contains(t, run(map[string]any{"command": "exit 3"}), "exit 3")
			require.Contains(t, run(map[string]any{"command": "cd", "workdir": "sub"}), `\sub`)
			run(map[string]any{"command": "echo made>made.txt"})
			made, err := os.ReadFile(filepath.Join(root, "made.txt"))
			require.NoError(t, err)
			require.Equal(t, "made", strings.TrimSpace(string(made)))
			require.Contains(t, run(map[string]any{"command": "ping -n 60 127.0.0.1", "timeout": 500}), "timeout")
			require.Contains(t, run(map[string]any{"command": "start /b ping -n 60 127.0.0.1"}), "left running, ended")
			require.Zero(t, server.Close())
		})
	}
}

// The tools are added to a client's configuration in the directories of Windows, and
// removed again.
func TestInstall(t *testing.T) {
	env, root := prefix(t), t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(wine64, append([]string{program(t, "mcp-host")}, args...)...)
		cmd.Env, cmd.Dir = env, root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Regexp(t, `Claude Desktop: added toolroom to C:\\users\\.*\\Claude\\claude_desktop_config.json`, run("install", "claude-desktop", "--root", "."))
	require.Contains(t, run("status"), "claude-desktop")
}

// passing are the packages whose tests pass under Wine 8. Tests of the others make
// links or delete open files, which Wine 8 cannot, or expect the paths of Unix.
var passing = []string{
	"./internal/contentcheck", "./internal/editdistance", "./internal/httpguard", "./internal/netguard", "./internal/projectfile",
	"./internal/redact", "./internal/schemacheck", "./internal/textdiff", "./internal/textfile", "./internal/textfmt",
	"./internal/topk", "./internal/visible",
}

func TestPackages(t *testing.T) {
	cmd := exec.Command("go", slices.Concat([]string{"test", "-vet=off", "-count=1", "-exec", wine64, "-timeout", "15m"}, passing)...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(prefix(t), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, len(passing), strings.Count(string(out), "ok  \t"), "%s", out)
}
