package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// roots creates n directories with a different file in each.
func roots(t *testing.T, n int) []string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	var dirs []string
	for i := range n {
		dir := filepath.Join(base, fmt.Sprintf("r%d", i))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", fmt.Sprintf("only%d.go", i)), []byte("text\n"), 0o600))
		dirs = append(dirs, dir)
	}
	return dirs
}

// instructions returns a server's instructions, as answered to the given first
// request.
func instructions(t *testing.T, c *mcpkittest.Client, method string) string {
	t.Helper()
	answer := c.Request(method, map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "x", "version": "1"},
	})
	require.Nil(t, answer.Error)
	var result struct{ Instructions string }
	require.NoError(t, json.Unmarshal(answer.Result, &result))
	return result.Instructions
}

// TestSeveralRoots: each server names its roots in its instructions and in
// errors for missing paths; results of calls without a path name the root that
// they used.
func TestSeveralRoots(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	missing := map[string]string{
		"ls": `{"path":"only1.go"}`, "glob": `{"pattern":"*","path":"only1.go"}`, "grep": `{"pattern":"x","path":"only1.go"}`,
		"view": `{"file_path":"only1.go"}`, "edit": `{"file_path":"only1.go","old_string":"a","new_string":"b"}`,
	}
	noPath := map[string]string{"ls": `{}`, "glob": `{"pattern":"*.go"}`, "grep": `{"pattern":"nothing at all"}`}
	for _, n := range []int{2, 5, 40} {
		dirs := roots(t, n)
		for _, tool := range []string{"ls", "glob", "grep", "view", "edit", "replace", "bash", "dispatch_agent"} {
			bin := mcpkittest.Build(t, "./tools/"+tool)
			modern := mcpkittest.StartWith(t, bin, mcpkittest.Options{Args: append([]string{"--no-state"}, dirs...), Era: mcpkittest.Modern})
			c := mcpkittest.StartWith(t, bin, mcpkittest.Options{Args: append([]string{"--no-state"}, dirs...)})
			said := instructions(t, modern, "server/discover")
			require.LessOrEqual(t, len(said), 1<<10, tool)
			require.Contains(t, said, dirs[0]+", "+dirs[1], tool)
			if n < 10 {
				require.Contains(t, said, dirs[n-1]+".", tool)
			} else {
				require.Regexp(t, ` and \d+ more\.$`, said, tool)
			}
			if args := missing[tool]; args != "" {
				got := c.Call(tool, args)
				require.True(t, got.IsError, tool)
				require.Contains(t, got.Text, "the roots are "+dirs[0]+", "+dirs[1], tool)
				require.Contains(t, got.Text, "did you mean "+dirs[1]+"/sub/only1.go?", tool)
			}
			if args := noPath[tool]; args != "" {
				got := c.Call(tool, args)
				require.Contains(t, strings.SplitN(got.Text, "\n", 2)[0], "root "+dirs[0]+" (other roots: "+dirs[1], tool)
				with := c.Call(tool, strings.Replace(strings.Replace(args, "{", `{"path":".",`, 1), ",}", "}", 1))
				require.NotContains(t, with.Text, "other roots", tool)
			}
		}
	}
}

// Roots given only by the client are named in results; a single root is named
// only in the instructions.
func TestRootsOfTheClient(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	dirs := roots(t, 2)
	bin := mcpkittest.Build(t, "./tools/ls")
	c := mcpkittest.StartWith(t, bin, mcpkittest.Options{Args: []string{"--no-state"}, Roots: dirs})
	require.Contains(t, c.Call("ls", nil).Text, "root "+dirs[0]+" (other roots: "+dirs[1]+")")
	require.Contains(t, c.Call("ls", `{"path":"nothing"}`).Text, "the roots are "+dirs[0]+", "+dirs[1])
	one := mcpkittest.StartWith(t, bin, mcpkittest.Options{Args: []string{"--no-state", dirs[0]}, Era: mcpkittest.Modern})
	require.Contains(t, instructions(t, one, "server/discover"), "The root directory is "+dirs[0]+".")
	require.NotContains(t, one.Call("ls", nil).Text, "root")
}

// TestMissingElsewhere: the error for a missing path lists paths with the same
// name elsewhere, ignored directories last, and never a secret file; it is
// short.
func TestMissingElsewhere(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	root := t.TempDir()
	write := func(name string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("x\n"), 0o600))
	}
	for _, name := range []string{
		"d/b.go", "a/x/conf.go", "a/y/conf.go", "b/y/conf.go", "c/conf.go", "handler.go", "out/conf.go", "out/built.js", ".ssh/deploy.go", "k/id_rsa", "w/Makefile", "z/readme_old.md",
	} {
		write(name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, ".ignore"), []byte("out\n"), 0o600))
	c := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/view"), "--no-state", root)
	for name, want := range map[string]string{
		"b.go":              "b.go does not exist; did you mean d/b.go?",
		"y/conf.go":         "y/conf.go does not exist: there is no y in .; did you mean a/y/conf.go, b/y/conf.go, c/conf.go?",
		"built.js":          "built.js does not exist; did you mean out/built.js?",
		"hanlder.go":        "hanlder.go does not exist; did you mean handler.go?",
		"makefile":          "makefile does not exist; did you mean w/Makefile?",
		"q/b.go":            "q/b.go does not exist: there is no q in .; did you mean d/b.go?",
		"readme_odl.md":     "readme_odl.md does not exist; did you mean z/readme_old.md?",
		"deploy.go":         "deploy.go does not exist; use ls on . to see its entries",
		"d/":                "",
		"entirely-else.txt": "entirely-else.txt does not exist; use ls on . to see its entries",
	} {
		got := c.Call("view", map[string]any{"file_path": name})
		if want == "" {
			require.False(t, got.IsError, got.Text)
			continue
		}
		require.Equal(t, want, got.Text, name)
		require.LessOrEqual(t, len(got.Raw), 200, "%s: %s", name, got.Raw)
	}
	require.NotContains(t, c.Call("view", `{"file_path":"x/id_rsa"}`).Text, "k/id_rsa")
}

// An argument that is not a directory ends each server with an error, even if
// its standard input stays open. Keeps fixed: with a mistyped argument, a
// server waited for a client.
func TestPlainArgumentIsNoDirectory(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "source"), 0o755))
	for _, name := range []string{"a.txt", "b.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("hi\n"), 0o600))
	}
	for _, tool := range []string{"ls", "glob", "grep", "view", "edit", "replace", "bash", "dispatch_agent"} {
		bin := mcpkittest.Build(t, "./tools/"+tool)
		for _, test := range []struct {
			args []string
			want string
		}{
			{[]string{"source", "nosuch"}, "the directory nosuch does not exist: create it, or name another\n"},
			{[]string{"nosuch/more"}, "the directory nosuch/more does not exist: create it, or name another\n"},
			{[]string{"source", "soruce"}, "the directory soruce does not exist; did you mean source?\n"},
			{[]string{"source", "./soruce:ro"}, "the directory ./soruce does not exist; did you mean source?\n"},
			{[]string{"version"}, "the directory version does not exist: create it, or name another; the flag is --version\n"},
			{[]string{"a.txt", "b.txt"}, "a.txt is not a directory: name the directory that holds it\n"},
		} {
			stderr := ends(t, bin, dir, 2, test.args...)
			require.Equal(t, "mcp-"+tool+": "+test.want+"Run 'mcp-"+tool+" --help' for the manual.\n", stderr, test.args)
		}
		if tool != "view" { // view shows that file, or says that it is missing
			require.Contains(t, ends(t, bin, dir, 2, "a.txt"), "a.txt is not a directory", tool)
			require.Contains(t, ends(t, bin, dir, 2, "nosuch"), "nosuch does not exist", tool)
		}
	}
	out, err := exec.Command(mcpkittest.Build(t, "./tools/ls"), filepath.Join(dir, "nosuch"), "--call", "{}").Output()
	require.Error(t, err)
	require.Contains(t, string(out), `"code":"NOT_FOUND"`, "a call reports it as JSON")
	for _, root := range []string{"source", "source:ro"} {
		cmd := exec.Command(mcpkittest.Build(t, "./tools/ls"), root)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader("{}")
		out, err := cmd.Output()
		require.NoError(t, err, root)
		require.Contains(t, string(out), "empty", root)
	}
}

// ends runs a program whose standard input stays open, and returns its standard
// error after it has ended.
func ends(t *testing.T, bin, dir string, code int, args ...string) string {
	t.Helper()
	in, open, err := os.Pipe()
	require.NoError(t, err)
	defer open.Close()
	defer in.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, bin, append(args, "--no-state")...)
	var stderr strings.Builder
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, in, &stderr
	out, err := cmd.Output()
	require.NoError(t, ctx.Err(), "%s waits: %v", bin, args)
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed, args)
	require.Equal(t, code, failed.ExitCode(), args)
	require.Empty(t, string(out), args)
	return stderr.String()
}
