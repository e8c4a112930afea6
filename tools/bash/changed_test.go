//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// What a command changed of what was viewed is said once, by view's and bash's
// common state; a file with the same content is no news, nor is what changed
// before.
func TestChangedSinceViewed(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"a.go", "b.go", "c.go", "d.go", "old.go"} {
		p.write("root/"+name, "package "+name[:1]+"\n")
	}
	view := p.serveBin(mcpkittest.Build(t, "./tools/view"), mcpkittest.Options{})
	see := func(name string) {
		t.Helper()
		r := view.Call("view", arg("file_path", name))
		require.False(t, r.IsError, r.Text)
	}
	see("old.go")
	p.write("root/old.go", "package other\n")
	require.NoError(t, os.Chtimes(filepath.Join(p.root, "old.go"), time.Now(), time.Now().Add(time.Minute)))
	s := p.serve()
	require.NotContains(t, s.bash("true").Text, "changed", "what changed before is no news")
	for _, name := range []string{"a.go", "b.go", "c.go", "d.go"} {
		see(name)
	}
	r := s.bash("echo // >> a.go; touch b.go; rm c.go; echo x > unseen.go")
	require.Contains(t, r.Text, " · changed since you viewed: a.go, c.go (gone) · ")
	require.Equal(t, []any{"a.go", "c.go (gone)"}, r.Structured["changed"])
	require.NotContains(t, s.bash("true").Text, "changed since", "said once")
	see("a.go")
	require.NotContains(t, s.bash("true").Text, "changed since")
	require.Contains(t, s.bash("echo // >> a.go").Text, "changed since you viewed: a.go")
	require.Contains(t, s.bash("echo // >> a.go").Text, "changed since you viewed: a.go", "another change")
}
