//go:build oracle

package servercheck_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/host/internal/diagnose/servercheck"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// The servers of the official SDK pass, but that they say nothing of a line
// that is none.
func TestOfficialServersPass(t *testing.T) {
	node := oracle.Path(t, "node")
	for _, name := range []string{"server-everything", "server-filesystem", "server-memory"} {
		t.Run(name, func(t *testing.T) {
			main := filepath.Join(oracle.Module(t, "@modelcontextprotocol/"+name), "dist", "index.js")
			dir := t.TempDir()
			env := append(os.Environ(), "MEMORY_FILE_PATH="+filepath.Join(dir, "memory.json"))
			command := []string{node, main}
			if name == "server-filesystem" {
				command = append(command, dir)
			}
			for what, c := range run(t, servercheck.Config{Command: command, Env: env, Dir: dir}) {
				want := servercheck.Good
				if what == "malformed line" {
					want = servercheck.Weak
				}
				require.Equal(t, want, c.Level, what+": "+c.Detail)
			}
		})
	}
}

// Ours pass without a remark.
func TestOurToolsPass(t *testing.T) {
	dirs, err := filepath.Glob("../../../../tools/*/main.go")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(dirs), 7)
	for _, main := range dirs {
		name := filepath.Base(filepath.Dir(main))
		t.Run(name, func(t *testing.T) {
			bin := mcpkittest.Build(t, "./tools/"+name)
			dir := t.TempDir()
			for what, c := range run(t, servercheck.Config{Command: []string{bin, "--root", dir, "--state", t.TempDir()}, Env: os.Environ(), Dir: dir}) {
				require.Equal(t, servercheck.Good, c.Level, what+": "+c.Detail)
			}
		})
	}
}
