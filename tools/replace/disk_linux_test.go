package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestFullDisk: content that does not fit on the disk next to the old file is
// refused and leaves file and directory unchanged; content that fits is
// written.
func TestFullDisk(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	r := newRoom(t)
	if err := unix.Mount("none", r.root, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("NOT RUN: cannot mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(r.root, unix.MNT_DETACH)) })
	r.clients["replace"] = mcpkittest.Start(t, mcpkittest.Build(t, "./tools/replace"), r.root, "--state", r.state)
	old, newText := strings.Repeat("a line of the old file\n", 130_000), strings.Repeat("a line of the new file\n", 130_000)
	r.put("f.txt", old)
	for _, name := range []string{"f.txt", "new/dir/g.txt"} {
		r.refused(toolerr.NoSpace, "replace", args{"file_path": name, "content": newText})
		require.Equal(t, old, r.content("f.txt"))
		entries, err := os.ReadDir(r.root)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
	r.ok("replace", args{"file_path": "f.txt", "content": "small\n"})
	r.ok("replace", args{"file_path": "new/dir/g.txt", "content": newText})
}
