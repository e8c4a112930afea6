//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// place has the root, home and state directories of one or several servers.
type place struct {
	t                     testing.TB
	dir, root, home, kept string
	env                   []string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	return placeIn(t, t.TempDir())
}

// newOuterPlace returns a place outside /tmp, which is private for commands at
// L2: files next to the root exist there, so they must be kept from commands.
func newOuterPlace(t testing.TB) *place {
	t.Helper()
	return placeIn(t, mcpkittest.OuterDir(t))
}

// placeBelow returns a place in a new directory of base.
func placeBelow(t testing.TB, base string) *place {
	t.Helper()
	dir, err := os.MkdirTemp(base, "mcp-bash-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return placeIn(t, dir)
}

func placeIn(t testing.TB, dir string) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	p := &place{t: t, dir: dir, root: filepath.Join(dir, "root"), home: filepath.Join(dir, "home"), kept: filepath.Join(dir, "state")}
	for _, name := range []string{p.root, p.home, p.kept} {
		require.NoError(t, os.Mkdir(name, 0o755))
	}
	p.env = []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	return p
}

func (p *place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// server is a running tool.
type server struct {
	t testing.TB
	*mcpkittest.Client
}

// serve starts a tool, mcp-bash unless bin names another.
func (p *place) serve(flags ...string) server {
	p.t.Helper()
	return p.serveBin(mcpkittest.Build(p.t, "./tools/bash"), mcpkittest.Options{}, flags...)
}

func (p *place) serveBin(bin string, opts mcpkittest.Options, flags ...string) server {
	p.t.Helper()
	opts.Args = append([]string{"--root", p.root, "--state", p.kept}, flags...)
	opts.Dir, opts.Env = p.root, p.env
	return server{p.t, mcpkittest.StartWith(p.t, bin, opts)}
}

// bash runs a command; more are further arguments as name, value, ….
func (s server) bash(command string, more ...any) mcpkittest.Result {
	s.t.Helper()
	return s.Call("bash", arg(append([]any{"command", command}, more...)...))
}

func (s server) job(more ...any) mcpkittest.Result {
	s.t.Helper()
	return s.Call("bash_job", arg(more...))
}

func arg(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func number(t testing.TB, r mcpkittest.Result, name string) int64 {
	t.Helper()
	n, ok := r.Meta[name].(float64)
	require.True(t, ok, "%s in %v", name, r.Meta)
	return int64(n)
}

func text(t testing.TB, r mcpkittest.Result, name string) string {
	t.Helper()
	s, ok := r.Meta[name].(string)
	require.True(t, ok, "%s in %v", name, r.Meta)
	return s
}

// printed returns a command's output: all except the last line.
func printed(r mcpkittest.Result) string {
	lines := strings.SplitAfter(strings.TrimSuffix(r.Text, "\n"), "\n")
	return strings.Join(lines[:len(lines)-1], "")
}

// within waits for a condition, at most as long as tests wait for anything.
func within(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > mcpkittest.MaxWait {
			require.Fail(t, "never: "+what)
		}
	}
}

// processes returns the processes whose command line has a mark, without
// zombies.
func processes(t testing.TB, mark string) (pids []int) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.Contains(string(line), mark) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// children returns the processes whose parent is parent, with their state.
func children(t testing.TB, parent int) (states []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[1] == strconv.Itoa(parent) {
			states = append(states, fields[0])
		}
	}
	return states
}

// descriptors returns the number of a process's open descriptors.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	return len(entries)
}

// levels returns the levels that bash itself finds usable on this machine, and
// the names of the others.
func levels(t *testing.T) (usable, missing []string) {
	t.Helper()
	p := newPlace(t)
	for _, level := range []string{"L2", "L1", "off"} {
		r := p.serve("--sandbox", level).bash("true")
		if r.IsError {
			require.Equal(t, "SANDBOX_UNAVAILABLE", r.Code, r.Text)
			missing = append(missing, level)
			continue
		}
		usable = append(usable, level)
	}
	return usable, missing
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}
