//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// TestStateInARootAtL1: at L1, where it cannot be hidden from commands, no command
// runs if a state directory is in a writable root.
func TestStateInARootAtL1(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, level := range confinedLevels(t) {
		for name, prepare := range map[string]func(p *place){
			"the server's": func(p *place) { p.kept = filepath.Join(p.root, "state") },
			"through a link": func(p *place) {
				p.kept = filepath.Join(p.dir, "link")
				require.NoError(t, os.Mkdir(p.root+"/state", 0o700))
				require.NoError(t, os.Symlink(p.root+"/state", p.kept))
			},
			"another's": func(p *place) {
				p.env = append(p.env, "MCP_STATE_DIR="+p.root+"/state")
				require.NoError(t, os.Mkdir(p.root+"/state", 0o700))
			},
		} {
			t.Run(level+"/"+name, func(t *testing.T) {
				p := newPlace(t)
				prepare(p)
				s := p.serve("--sandbox", level)
				r := s.bash("echo runs")
				if level == "L1" {
					require.Equal(t, "SANDBOX_UNAVAILABLE", r.Code, r.Text)
					require.Contains(t, r.Text, "--state DIR")
					return
				}
				require.Contains(t, r.Text, "runs\n")
			})
		}
		p := newPlace(t)
		p.kept = filepath.Join(p.root, "state")
		p.env = append(p.env, "MCP_STATE_DIR="+p.root+"/missing")
		p.root = filepath.Join(p.root, "sub")
		require.NoError(t, os.Mkdir(p.root, 0o755))
		require.Contains(t, p.serve("--sandbox", level).bash("echo runs").Text, "runs\n", level)
	}
}
