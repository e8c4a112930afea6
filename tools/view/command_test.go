package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// An argument that is a file is shown, and the program ends; --text prints the
// text of a call, and its error on standard error.
func TestPlainFile(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	bin := mcpkittest.Build(t, "./tools/view")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hi\n"), 0o644))
	const shown = "a.txt  line 1 of 1  etag=d50463dd\n1\thi\n"
	for _, test := range []struct {
		in   string
		args []string
	}{
		{dir, []string{"a.txt"}},
		{filepath.Join(dir, "sub"), []string{"../a.txt"}},
		{"/", []string{filepath.Join(dir, "a.txt"), "--root", dir}},
		{dir, []string{"--text", "--call", `{"file_path":"a.txt"}`}},
	} {
		cmd := exec.Command(bin, append(test.args, "--no-state")...)
		cmd.Dir = test.in
		out, err := cmd.Output()
		require.NoError(t, err, test.args)
		require.Equal(t, shown, string(out), test.args)
	}
	cmd := exec.Command(bin, "--text", "--no-state", "--call", `{"file_path":"b.txt"}`)
	cmd.Dir = dir
	out, err := cmd.Output()
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1, failed.ExitCode())
	require.Empty(t, out)
	require.Contains(t, string(failed.Stderr), "mcp-view: b.txt does not exist")
}

// A single argument that does not exist is reported as a missing file, even if
// standard input stays open. Keeps fixed: a server that waited for a client.
func TestPlainFileIsMissing(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	bin := mcpkittest.Build(t, "./tools/view")
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	for _, name := range []string{"handler.go", "sub/only.go"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("hi\n"), 0o600))
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"nosuch.go"}, 1, "mcp-view: nosuch.go does not exist; use ls on . to see its entries\n"},
		{[]string{"hanlder.go"}, 1, "mcp-view: hanlder.go does not exist; did you mean handler.go?\n"},
		{[]string{"only.go"}, 1, "mcp-view: only.go does not exist; did you mean sub/only.go?\n"},
		{[]string{"nosuch.go", "--root", dir}, 1, "mcp-view: " + filepath.Join(dir, "nosuch.go") + " does not exist; use ls on . to see its entries\n"},
		{[]string{"nosuch/a.go"}, 2, "mcp-view: the directory nosuch/a.go does not exist: create it, or name another\nRun 'mcp-view --help' for the manual.\n"},
	} {
		in, open, err := os.Pipe()
		require.NoError(t, err)
		defer open.Close()
		defer in.Close()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		cmd := exec.CommandContext(ctx, bin, append(test.args, "--no-state")...)
		cmd.Dir, cmd.Stdin = dir, in
		out, err := cmd.Output()
		require.NoError(t, ctx.Err(), "it waits: %v", test.args)
		var failed *exec.ExitError
		require.ErrorAs(t, err, &failed, test.args)
		require.Equal(t, test.code, failed.ExitCode(), test.args)
		require.Equal(t, test.want, string(failed.Stderr), test.args)
		require.Empty(t, out)
	}
}
