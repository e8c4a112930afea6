//go:build oracle && linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// oracles returns the directory that make oracles fills.
func oracles(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TOOLROOM_ORACLES")
	if dir == "" {
		dir = filepath.Join("..", "bench", "oracle")
	}
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(dir, "node_modules"), "run make oracles")
	return dir
}

// script runs a script of bench/oracle with a JSON value as its input.
func script(t *testing.T, dir, name string, input, output any) {
	t.Helper()
	text, err := json.Marshal(input)
	require.NoError(t, err)
	node := filepath.Join(oracles(t), "node_modules", "node-linux-"+nodeArch[runtime.GOARCH], "bin", "node")
	cmd := exec.Command(node, filepath.Join(oracles(t), name))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MCP_STATE_DIR="+t.TempDir())
	var out, errors bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &out, &errors
	require.NoError(t, cmd.Run(), "%s", &errors)
	require.NoError(t, json.Unmarshal(out.Bytes(), output), "%s", &out)
}

// A visit is a session of the official TypeScript SDK with a server; see client.mjs.
type visit struct {
	SDK     int      `json:"sdk"`
	Era     string   `json:"era"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Calls   []call   `json:"calls"`
}

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

type visited struct {
	Failed  string
	Server  struct{ Version string }
	Tools   []struct{ Name string }
	Results []struct {
		Thrown  string
		IsError bool
		Content []struct{ Text string }
	}
}

// project makes a directory with one file.
func project(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello\n"), 0o600))
	return dir
}

// harmless has arguments for a call of each tool that needs no model.
var harmless = map[string]map[string]any{
	"ls": {"path": "."}, "glob": {"pattern": "*.txt"}, "grep": {"pattern": "hello"}, "view": {"file_path": "hello.txt"},
	"edit":    {"file_path": "hello.txt", "old_string": "hello", "new_string": "hello again"},
	"replace": {"file_path": "hello.new", "content": "hello\n"},
	"bash":    {"command": "echo hello"},
}

// Every bundle is unpacked, its manifest validated, and its command found by the
// official packer; then the official SDK lists the tools of the server and calls one.
func TestBundlesServe(t *testing.T) {
	programs, err := programs("..")
	require.NoError(t, err)
	version := strings.TrimPrefix(builtVersion(t), "v")
	var visits []visit
	var promised [][]string
	var opened []string
	for _, program := range programs {
		root, dir := project(t), t.TempDir()
		opened = append(opened, dir)
		var config struct {
			Command string
			Args    []string
			Tools   []string
		}
		script(t, root, "bundle.mjs", map[string]any{
			"bundle": built(t, bundleName(program)+"_*_linux_ARCH.mcpb"), "dir": dir, "roots": []string{root, t.TempDir()},
		}, &config)
		v := visit{SDK: 1 + len(visits)%2, Era: "legacy", Command: config.Command, Args: config.Args, Calls: []call{}}
		for name, arguments := range harmless {
			// bash runs nothing where the system cannot confine it.
			if program == "mcp-"+name || program == "mcp-host" && name != "bash" {
				v.Calls = append(v.Calls, call{name, arguments})
			}
		}
		visits, promised = append(visits, v), append(promised, config.Tools)
	}
	var all []visited
	script(t, t.TempDir(), "client.mjs", visits, &all)
	require.Len(t, all, len(programs))
	for i, seen := range all {
		require.Empty(t, seen.Failed, programs[i])
		require.Equal(t, "v"+version, seen.Server.Version)
		var tools []string
		for _, tool := range seen.Tools {
			tools = append(tools, tool.Name)
		}
		require.Subset(t, tools, promised[i], "%s: the manifest names the tools", programs[i])
		require.NotEmpty(t, promised[i])
		require.Len(t, seen.Results, len(visits[i].Calls))
		for j, result := range seen.Results {
			require.Empty(t, result.Thrown)
			if name := visits[i].Calls[j].Name; name != "bash" {
				require.False(t, result.IsError, "%s %s: %v", programs[i], name, result.Content)
				require.Contains(t, result.Content[0].Text, "hello", "%s %s", programs[i], name)
			}
		}
	}
	// The official packer accepts the contents, too.
	packed := filepath.Join(t.TempDir(), "again.mcpb")
	out := succeed(t, exec.Command(filepath.Join(oracles(t), "node_modules", ".bin", "mcpb"), "pack", opened[0], packed))
	require.Contains(t, out, "Manifest schema validation passes!")
	require.FileExists(t, packed)
}

// installNPM installs the packed npm packages without network.
func installNPM(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o600))
	cmd := exec.Command("npm", "install", "--offline", "--no-audit", "--no-fund", "--cache", t.TempDir(),
		built(t, "npm/toolroom-[0-9]*.tgz"), built(t, "npm/toolroom-linux-"+nodeArch[runtime.GOARCH]+"-*.tgz"))
	cmd.Dir = dir
	succeed(t, cmd)
	return dir
}

func TestNPM(t *testing.T) {
	dir, root := installNPM(t), project(t)
	launcher := filepath.Join(dir, "node_modules", ".bin", "toolroom")
	require.Contains(t, succeed(t, exec.Command(launcher, "verify")), "9 programs are equal to ")
	require.Contains(t, succeed(t, exec.Command(launcher, "host", "--version")), "mcp-host "+builtVersion(t))

	var all []visited
	script(t, dir, "client.mjs", []visit{
		{1, "legacy", "npx", []string{"--offline", "toolroom", "ls", "--root", root}, []call{{"ls", harmless["ls"]}}},
		{2, "modern", launcher, []string{"host", "stdio", root}, []call{{"ls", harmless["ls"]}}},
	}, &all)
	for _, seen := range all {
		require.Empty(t, seen.Failed)
		require.Contains(t, seen.Results[0].Content[0].Text, "hello.txt")
	}
}

// The launcher passes on exit status and signals, and refuses a changed program.
func TestNPMLauncher(t *testing.T) {
	dir, root := installNPM(t), project(t)
	launcher := filepath.Join(dir, "node_modules", ".bin", "toolroom")
	for status, args := range map[int][]string{
		0: {"ls", "--text", "--call", `{"path":"."}`, "--root", root},
		1: {"ls", "--text", "--call", `{"path":"missing"}`, "--root", root},
		2: {"ls", "--no-such-flag"},
	} {
		cmd := exec.Command(launcher, args...)
		cmd.Env = append(os.Environ(), "MCP_STATE_DIR="+t.TempDir())
		out, _ := cmd.CombinedOutput()
		require.Equal(t, status, cmd.ProcessState.ExitCode(), "%s", out)
	}
	out, err := exec.Command(launcher, "../../../../bin/sh").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "no program")

	// The program's end closes its output, which the launcher shares.
	cmd := exec.Command(launcher, "host", "serve", "--root", root, "--listen", "127.0.0.1:0", "--state", t.TempDir())
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = write, write
	require.NoError(t, cmd.Start())
	write.Close()
	var said strings.Builder
	for buffer := make([]byte, 4096); !strings.Contains(said.String(), "http://"); {
		n, err := read.Read(buffer)
		said.Write(buffer[:n])
		require.NoError(t, err, said.String())
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	for buffer := make([]byte, 4096); err == nil; {
		_, err = read.Read(buffer)
	}
	require.NoError(t, cmd.Wait(), "the host ends without an error")

	program := filepath.Join(dir, "node_modules", "@toolroom", "linux-"+nodeArch[runtime.GOARCH], "bin", "mcp-ls")
	file, err := os.OpenFile(program, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("more")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	for _, args := range [][]string{{"ls", "--version"}, {"verify"}} {
		out, err := exec.Command(launcher, args...).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "is not the program of toolroom")
	}
}
