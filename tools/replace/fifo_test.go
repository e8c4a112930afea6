//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestFifo: a FIFO is neither opened, which would block, nor replaced.
func TestFifo(t *testing.T) {
	r := newRoom(t, "replace")
	require.NoError(t, syscall.Mkfifo(filepath.Join(r.root, "pipe"), 0o600))
	r.refused(toolerr.SpecialFile, "replace", args{"file_path": "pipe", "content": "x", "overwrite": true})
}
