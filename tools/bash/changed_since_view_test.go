//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// A command's change of a viewed file is reported once, from the state that
// view and bash share; a file with equal content is not reported, nor are
// earlier changes.
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
	require.Equal(t, []any{"a.go", "c.go (gone)"}, r.Meta["changed"])
	require.NotContains(t, s.bash("true").Text, "changed since", "said once")
	see("a.go")
	require.NotContains(t, s.bash("true").Text, "changed since")
	require.Contains(t, s.bash("echo // >> a.go").Text, "changed since you viewed: a.go")
	require.Contains(t, s.bash("echo // >> a.go").Text, "changed since you viewed: a.go", "another change")
}

// A change is reported to each client session that viewed the file, and to no
// other.
func TestChangedIsForEachSession(t *testing.T) {
	p := newPlace(t)
	p.write("root/a.go", "package a\n")
	view := p.serveBin(mcpkittest.Build(t, "./tools/view"), mcpkittest.Options{})
	s := p.serve()
	call := func(c *mcpkittest.Client, tool, session string, args map[string]any) string {
		t.Helper()
		params := mcpkittest.CallParams(tool, args)
		params["_meta"] = map[string]any{"toolroom/client": session}
		r, err := mcpkittest.ParseResult(c.Request("tools/call", params).Result)
		require.NoError(t, err)
		require.False(t, r.IsError, r.Text)
		return r.Text
	}
	run := func(session, command string) string {
		return call(s.Client, "bash", session, arg("command", command))
	}
	run("one", "true")
	run("other", "true")
	call(view.Client, "view", "one", arg("file_path", "a.go"))
	require.NotContains(t, run("other", "echo // >> a.go"), "changed since")
	require.Contains(t, run("one", "true"), "changed since you viewed: a.go")
	require.NotContains(t, run("one", "true"), "changed since")
	for i := range maxWatches + 5 { // the least recently used sessions are dropped
		run(fmt.Sprint(i), "true")
	}
	require.NotContains(t, run("one", "true"), "changed since")
}
