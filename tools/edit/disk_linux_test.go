package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestFullDisk: if the new file does not fit, nothing is lost, nothing is left
// behind, and the answer says so.
func TestFullDisk(t *testing.T) {
	root := t.TempDir()
	if err := unix.Mount("none", root, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("NOT RUN: cannot mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(root, unix.MNT_DETACH)) })
	content := strings.Repeat("a line of three million bytes\n", 100_000) + "end\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "f.txt"), []byte(content), 0o644))
	c := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/edit"), root, "--state", t.TempDir())
	for _, args := range []map[string]any{
		{"file_path": "f.txt", "old_string": "end", "new_string": "END"},
		{"file_path": "f.txt", "old_string": "end", "new_string": strings.Repeat("more ", 100_000)},
		{"file_path": "new/dir/g.txt", "old_string": "", "new_string": strings.Repeat("0123456789", 200_000)},
	} {
		got := c.Call("edit", args)
		require.Equal(t, string(toolerr.NoSpace), got.Code, got.Text)
		now, err := os.ReadFile(filepath.Join(root, "f.txt"))
		require.NoError(t, err)
		require.Equal(t, content, string(now))
		requireOnly(t, root, "f.txt")
	}
	// With enough space it works again.
	require.NoError(t, unix.Mount("none", root, "tmpfs", unix.MS_REMOUNT, "size=16m"))
	got := c.Call("edit", map[string]any{"file_path": "f.txt", "old_string": "end", "new_string": "END"})
	require.False(t, got.IsError, got.Text)
}

// TestReadOnlyDirectory: a file in a directory that this user cannot write is
// written in place, and its directory stays unchanged. As root, the server runs
// as an unprivileged user.
func TestReadOnlyDirectory(t *testing.T) {
	const nobody = 65534
	base, err := os.MkdirTemp("", "edit-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	root, state := filepath.Join(base, "root"), filepath.Join(base, "state")
	require.NoError(t, os.Mkdir(root, 0o755))
	require.NoError(t, os.Mkdir(state, 0o700))
	file, closed := filepath.Join(root, "f.txt"), filepath.Join(root, "closed.txt")
	require.NoError(t, os.WriteFile(file, []byte("one\ntwo\n"), 0o644))
	require.NoError(t, os.WriteFile(closed, []byte("one\n"), 0o444))
	bin := mcpkittest.Build(t, "./tools/edit")
	var attr syscall.SysProcAttr
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		built := bin // other users may not reach its directory
		bin = filepath.Join(base, "mcp-edit")
		mcpkittest.CopyProgram(t, built, bin)
		require.NoError(t, os.Chmod(base, 0o755))
		require.NoError(t, os.Chown(file, nobody, nobody))
		require.NoError(t, os.Chown(state, nobody, nobody))
	}
	require.NoError(t, os.Chmod(root, 0o555))
	t.Cleanup(func() { require.NoError(t, os.Chmod(root, 0o755)) })
	call := func(args map[string]any) (text string, code toolerr.Code) {
		raw, err := json.Marshal(args)
		require.NoError(t, err)
		cmd := exec.Command(bin, root, "--state", state, "--call", string(raw))
		cmd.SysProcAttr, cmd.Dir = &attr, root
		out, _ := cmd.Output() // the answer tells
		var answer struct {
			Result, Error string
			Code          toolerr.Code
		}
		require.NoError(t, json.Unmarshal(out, &answer), string(out))
		return answer.Result + answer.Error, answer.Code
	}
	text, code := call(map[string]any{"file_path": "f.txt", "old_string": "one", "new_string": "a longer one"})
	require.Empty(t, code, text)
	require.Contains(t, text, "note: written in place")
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "a longer one\ntwo\n", string(now))
	text, code = call(map[string]any{"file_path": "f.txt", "undo": true})
	require.Empty(t, code, text)
	for _, args := range []map[string]any{
		{"file_path": "closed.txt", "old_string": "one", "new_string": "1"},
		{"file_path": "new.txt", "old_string": "", "new_string": "1"},
		{"file_path": "sub/new.txt", "old_string": "", "new_string": "1"},
	} {
		text, code = call(args)
		require.Equal(t, toolerr.PermissionDenied, code, text)
	}
	requireOnly(t, root, "f.txt", "closed.txt")
	now, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", string(now))
}
