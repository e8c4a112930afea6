package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// clients are programs that start the servers view, edit and replace. A shell
// runs each script and is the parent process of its servers.
type clients struct {
	t    *testing.T
	root string
	env  []string
}

func newClients(t *testing.T) *clients {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	c := &clients{t: t, root: t.TempDir()}
	state := t.TempDir()
	c.env = append(os.Environ(), "MCP_STATE_DIR="+state, "MCP_ROOT="+c.root)
	for _, name := range []string{"view", "edit", "replace"} {
		c.env = append(c.env, strings.ToUpper(name)+"="+mcpkittest.Build(t, "./tools/"+name))
	}
	return c
}

func (c *clients) write(text string) {
	require.NoError(c.t, os.WriteFile(filepath.Join(c.root, "a.txt"), []byte(text), 0o644))
}

func (c *clients) read() string {
	text, err := os.ReadFile(filepath.Join(c.root, "a.txt"))
	require.NoError(c.t, err)
	return string(text)
}

// run runs a script. It adds a builtin, so that the shell does not exec the
// last server.
func (c *clients) run(script string) string {
	cmd := exec.Command("sh", "-c", script+"\n:")
	cmd.Dir, cmd.Env = c.root, c.env
	out, err := cmd.CombinedOutput()
	require.NoError(c.t, err, string(out))
	return string(out)
}

const (
	viewIt    = `"$VIEW" --call '{"file_path":"a.txt"}' >&2` + "\n"
	editIt    = `"$EDIT" --call '{"file_path":"a.txt","old_string":"three","new_string":"3"}' || true` + "\n"
	replaceIt = `"$REPLACE" --call '{"file_path":"a.txt","content":"new\n"}' || true` + "\n"
	changeIt  = `printf 'one\nTWO\nthree\n' >a.txt` + "\n"
	original  = "one\ntwo\nthree\n"
)

// A write is refused as stale only for the client that viewed another version.
func TestWhatAnotherClientSawIsNoPromise(t *testing.T) {
	c := newClients(t)
	other := `printf 'one\ntwo\n3 and three\n' >a.txt` + "\n"
	for _, test := range []struct{ first, then string }{
		{viewIt, changeIt + replaceIt},
		{viewIt, other + editIt},
		{viewIt + changeIt, replaceIt},
		{"", replaceIt},
	} {
		c.write(original)
		c.run(test.first)
		out := c.run(test.then)
		require.NotContains(t, out, "STALE", test.then)
		require.NotEqual(t, original, c.read(), test.then)
	}
	// The same if one client starts its servers several times.
	for _, script := range []string{viewIt + changeIt + replaceIt + replaceIt, viewIt + other + editIt} {
		c.write(original)
		out := c.run(script)
		require.Contains(t, out, `"code":"STALE"`, script)
		require.Equal(t, strings.Count(script, replaceIt)+strings.Count(script, editIt), strings.Count(out, "STALE"), script)
	}
	// The client knows the content that it wrote.
	c.write(original)
	require.NotContains(t, c.run(viewIt+editIt+replaceIt), "STALE")
}

// --require-view requires a view by the same client that writes.
func TestRequireViewIsForEachClient(t *testing.T) {
	c := newClients(t)
	write := strings.Replace(replaceIt, `"$REPLACE"`, `"$REPLACE" --require-view`, 1)
	c.write(original)
	c.run(viewIt)
	require.Contains(t, c.run(write), "NOT_VIEWED", "another client viewed it")
	require.Equal(t, original, c.read())
	require.NotContains(t, c.run(viewIt+write), "NOT_VIEWED")
	require.Equal(t, "new\n", c.read())
}

// A host distinguishes its sessions by _meta. Each session has separate views.
// A session with the name of another client is not that client.
func TestSessionsOfOneClient(t *testing.T) {
	c := newClients(t)
	start := func(name string) *mcpkittest.Client {
		return mcpkittest.StartWith(t, mcpkittest.Build(t, "./tools/"+name), mcpkittest.Options{Env: c.env, Dir: c.root, Era: mcpkittest.Legacy})
	}
	view, replace := start("view"), start("replace")
	call := func(s *mcpkittest.Client, tool, session string, args map[string]any) mcpkittest.Result {
		t.Helper()
		params := mcpkittest.CallParams(tool, args)
		if session != "" {
			params["_meta"] = map[string]any{"toolroom/client": session}
		}
		r, err := mcpkittest.ParseResult(s.Request("tools/call", params).Result)
		require.NoError(t, err)
		return r
	}
	see := map[string]any{"file_path": "a.txt"}
	write := map[string]any{"file_path": "a.txt", "content": "new\n"}
	for _, test := range []struct {
		viewer, writer string
		stale          bool
	}{{"a", "a", true}, {"a", "b", false}, {"d", "", false}, {"", "c", false}, {"", "", true}, {strings.Repeat("x", 300), "", true}} {
		c.write(original)
		require.False(t, call(view, "view", test.viewer, see).IsError)
		c.write("one\nTWO\nthree\n")
		r := call(replace, "replace", test.writer, write)
		require.Equal(t, test.stale, r.IsError, "%s", r.Text)
	}
	c.write(original)
	require.False(t, call(view, "view", "e", see).IsError)
	c.write("one\nTWO\nthree\n")
	require.NotContains(t, c.run(replaceIt), "STALE")
}

// With many concurrent sessions in several processes, no session sees another's
// view.
func TestSessionsTogether(t *testing.T) {
	c := newClients(t)
	const many = 8
	var work sync.WaitGroup
	outs := make([]string, many)
	for i := range many {
		work.Go(func() {
			name := string(rune('a'+i)) + ".txt"
			script := strings.ReplaceAll(`printf 'one\ntwo\n' >a.txt`+"\n"+viewIt+changeIt+replaceIt+viewIt+replaceIt, "a.txt", name)
			cmd := exec.Command("sh", "-c", script+"\n:")
			cmd.Dir, cmd.Env = c.root, c.env
			out, err := cmd.Output()
			if err != nil {
				out = append(out, err.Error()...)
			}
			outs[i] = string(out)
		})
	}
	work.Wait()
	for _, out := range outs {
		require.Equal(t, 1, strings.Count(out, "STALE"), out)
		require.Equal(t, 1, strings.Count(out, "replaced"), out)
	}
}

// A client that viewed a file in a given encoding edits it in that encoding.
// Another client must give it again.
func TestTheEncodingOfAView(t *testing.T) {
	c := newClients(t)
	const big5 = "# \xb3\x5d\xa9\x77\xc0\xc9\xae\xd7\nname = old\n"
	edit := `"$EDIT" --call '{"file_path":"a.txt","old_string":"old","new_string":"日本"}' || true` + "\n"
	view := strings.Replace(viewIt, `"}'`, `","encoding":"big5"}'`, 1)
	for script, made := range map[string]bool{view + edit: true, edit: false, viewIt + edit: false, view + "printf x >>a.txt\n" + edit: false} {
		c.write(big5)
		out := c.run(script)
		require.Equal(t, made, !strings.Contains(out, "BAD_ENCODING"), "%s%s", script, out)
		require.Equal(t, made, strings.Contains(c.read(), "name = \xa4\xe9\xa5\xbb\n"), script)
	}
}
