//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// Commands see nothing of a state directory, wherever the environment or a flag
// puts it, including files created while a command runs; but outputs of
// commands can be read, and caches written.
func TestStateIsNotSeen(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	usable, _ := levels(t)
	for _, level := range usable {
		if level == "off" {
			continue
		}
		p := newOuterPlace(t)
		require.NoError(t, os.Symlink(p.kept, filepath.Join(p.dir, "link")))
		resolved := p.kept
		p.kept = filepath.Join(p.dir, "link") // also by a link
		p.env = append(p.env, "MCP_STATE_DIR="+p.dir+"/second", "XDG_STATE_HOME="+p.dir+"/third")
		states := []string{resolved, p.dir + "/second", p.dir + "/third/toolroom", p.home + "/.local/state/toolroom", p.dir + "/told"}
		for _, dir := range states {
			for _, name := range []string{"/host.db", "/host.db-shm", "/audit/a.jsonl", "/token"} {
				rel, err := filepath.Rel(p.dir, dir+name)
				require.NoError(t, err)
				p.write(rel, "CREDENTIAL\n")
			}
		}
		s := p.serve("--sandbox", level, "--hide", p.dir+"/told")
		for _, dir := range append(states, p.kept) {
			got := s.bash(`d="` + dir + `"; cd "$d"; cat host.db* audit/* token; cat "$d/host.db"; cp -r "$d" copy; cat copy/host.db; rm -rf copy; ls -A "$d"`).Text
			require.NotContains(t, got, "CREDENTIAL", level)
			require.NotContains(t, got, "audit\n", level)
		}
		// Files like a database's come and go.
		done := make(chan mcpkittest.Result)
		go func() {
			done <- s.bash("touch ready; until [ -e go ]; do sleep 0.01; done; cat " + resolved + "/host.db* " + resolved + "/late/*")
		}()
		within(t, "the command runs", func() bool { return exists(p.root + "/ready") })
		p.write("state/host.db-wal", "CREDENTIAL\n")
		p.write("state/late/file", "CREDENTIAL\n")
		p.write("root/go", "")
		require.NotContains(t, (<-done).Text, "CREDENTIAL", level)

		long := s.bash("seq 100000 200000")
		file := text(t, long, "output_file")
		require.Contains(t, s.bash(`f="`+file+`"; tail -n 1 "$f"; echo x >> "$f" || rm "$f" || echo refused`).Text, "200000\n", level)
		require.FileExists(t, file)
		require.Contains(t, s.bash("echo kept > $(go env GOCACHE)/kept && cat $GOCACHE/kept").Text, "kept\n", level)
		require.Contains(t, s.bash(`cat "$GOCACHE/kept"; echo x > "`+resolved+`/new" || echo refused`).Text, "kept\n", level)
		require.NoFileExists(t, resolved+"/new")
	}
}

// A state directory in a root is hidden, too, at the level that supports it.
func TestStateInARoot(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.kept = filepath.Join(p.root, ".state")
	p.write("root/.state/host.db", "CREDENTIAL\n")
	s := p.serve("--sandbox", "L2")
	r := s.bash("cat .state/host.db; ls -A .state; mv .state x; rm -rf .state/output-1; echo x > \"$GOCACHE/x\" && cat \"$GOCACHE/x\"")
	if r.Code == "SANDBOX_UNAVAILABLE" {
		t.Skip("not run: there is no L2")
	}
	require.NotContains(t, r.Text, "CREDENTIAL")
	require.True(t, strings.HasSuffix(printed(r), "x\n"), r.Text)
	require.FileExists(t, p.kept+"/host.db")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
