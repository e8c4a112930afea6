package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// place has a root and a state directory for the tool, and a scripted mcp-host
// that executes its prompt.
type place struct {
	t                     testing.TB
	bin, dir, root, state string
	env                   []string // added to the environment of each server
}

func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := &place{
		t: t, dir: dir, root: filepath.Join(dir, "root"), state: filepath.Join(dir, "state"),
		bin: beside(t, "mcp-host", "mcp-ls", "mcp-glob", "mcp-grep", "mcp-view", "mcp-edit", "mcp-replace", "mcp-bash"),
	}
	require.NoError(t, os.Mkdir(p.root, 0o755))
	return p
}

func (p *place) serve(flags ...string) *mcpkittest.Client {
	p.t.Helper()
	return mcpkittest.StartWith(p.t, p.bin, mcpkittest.Options{
		Args: append([]string{"--root", p.root, "--state", p.state}, flags...), Dir: p.root,
		Env: append([]string{"HOME=" + p.dir, "PATH=" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + p.dir, "TMPDIR=" + os.TempDir(), "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}, p.env...),
	})
}

// file returns the path of a file that a prompt names.
func (p *place) file(name string) string { return filepath.ToSlash(filepath.Join(p.dir, name)) }

func (p *place) write(name, text string) {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Dir(p.file(name)), 0o755))
	require.NoError(p.t, os.WriteFile(p.file(name), []byte(text), 0o644))
}

// pid waits until a process has written its id to a file, and returns it.
func (p *place) pid(name string) (pid int) {
	p.t.Helper()
	within(p.t, name+" is written", func() bool {
		text, err := os.ReadFile(p.file(name))
		if err == nil {
			pid, err = strconv.Atoi(string(text))
		}
		return err == nil
	})
	return pid
}

func dispatch(c *mcpkittest.Client, pairs ...any) mcpkittest.Result {
	return c.Call("dispatch_agent", arg(pairs...))
}

func arg(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// lines joins lines to a prompt.
func lines(all ...string) string { return strings.Join(all, "\n") }

// within waits until a condition holds, and fails the test if it never does.
func within(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begun) > mcpkittest.MaxWait {
			require.Fail(t, "never: "+what)
		}
	}
}

// given decodes the task that an agent reports for the prompt "task".
func given(t testing.TB, r mcpkittest.Result) (got task) {
	t.Helper()
	line, _, _ := strings.Cut(r.Text, "\n")
	require.NoError(t, json.Unmarshal([]byte(line), &got), r.Text)
	return got
}

// quoted encodes a text as JSON.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
