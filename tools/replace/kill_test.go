//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// kills returns the number of processes to kill: REPLACE_KILLS, or else 10.
func kills(t *testing.T) int {
	text := os.Getenv("REPLACE_KILLS")
	if text == "" {
		return 10
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "REPLACE_KILLS")
	return n
}

// TestKilledWhileWriting kills the tool at random moments of a call that writes
// 10 MB. The file is always the old or the new one, the next call finds no
// lock, and it removes leftover temporary files.
func TestKilledWhileWriting(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const lines = 10 << 20 / 40
	repeated := func(line string) []byte { return bytes.Repeat([]byte(line), lines) }
	bin := mcpkittest.Build(t, "./tools/replace")
	root, state := memoryDir(t), t.TempDir()
	file := filepath.Join(root, "big.txt")
	version := func(n int) []byte {
		return repeated(fmt.Sprintf("version %6d of a line of a large file\n", n))
	}
	write := func(n int) *exec.Cmd {
		cmd := exec.Command(bin, root, "--state", state, "--call", "-")
		cmd.Stdin = io.MultiReader(strings.NewReader(`{"file_path":"big.txt","overwrite":true,"content":"`),
			bytes.NewReader(repeated(fmt.Sprintf(`version %6d of a line of a large file\n`, n))), strings.NewReader(`"}`))
		return cmd
	}
	begun := time.Now()
	require.NoError(t, write(0).Run())
	usual := time.Since(begun)
	now, midway, late := 0, 0, 0
	for n := 1; n <= kills(t); n++ {
		cmd := write(n)
		require.NoError(t, cmd.Start())
		// Most of the time passes before the file is touched, so kill
		// rather late.
		time.Sleep(time.Duration((0.3 + 0.9*rand.Float64()) * float64(usual)))
		err := cmd.Process.Kill()
		late += btoi(err != nil)
		_ = cmd.Wait() // killed
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if !bytes.Equal(data, version(now)) {
			require.True(t, bytes.Equal(data, version(n)), "kill %d: neither the old nor the new content", n)
			now = n
			midway++
		}
		if n%10 == 0 {
			// A write by another process succeeds at once: no lock
			// is left.
			begun := time.Now()
			out, err := write(n).CombinedOutput()
			require.NoError(t, err, string(out))
			require.NotContains(t, string(out), "LOCKED")
			now = n
			usual = (usual + time.Since(begun)) / 2
			entries, err := os.ReadDir(root)
			require.NoError(t, err)
			require.Len(t, entries, 1, "what killed writers left is cleared")
		}
	}
	t.Logf("%d kills: %d came after the new content was in place, %d after the end", kills(t), midway, late)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
