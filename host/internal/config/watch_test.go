package config_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
)

// watching is a Watch of a file.
type watching struct {
	t       *testing.T
	file    string
	changes chan config.Change
}

func watch(t *testing.T, file string, load func() (config.Config, error)) *watching {
	t.Helper()
	return watchWith(t, file, load, config.WatchOptions{Settle: 20 * time.Millisecond, Poll: 50 * time.Millisecond})
}

func watchWith(t *testing.T, file string, load func() (config.Config, error), opt config.WatchOptions) *watching {
	t.Helper()
	if load == nil {
		load = func() (config.Config, error) {
			return config.Load(config.Flags{Config: file}, filepath.Dir(file), "1", env(), nil)
		}
	}
	current, err := load()
	require.NoError(t, err)
	w := &watching{t, file, make(chan config.Change, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- config.Watch(ctx, current, load, opt, func(c config.Change) { w.changes <- c })
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return w
}

func (w *watching) next() config.Change {
	w.t.Helper()
	select {
	case c := <-w.changes:
		return c
	case <-time.After(30 * time.Second):
		require.FailNow(w.t, "no change was seen")
		return config.Change{}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// replace writes as editors do: another file, renamed over.
func replace(t *testing.T, name, text string) {
	t.Helper()
	write(t, name+"~", text)
	require.NoError(t, os.Rename(name+"~", name))
}

func TestWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	write(t, file, "servers: {a: {command: ./a}, b: {command: ./b}}")
	w := watch(t, file, nil)

	replace(t, file, "servers: {a: {command: ./a, args: [x]}, c: {command: ./c}}")
	c := w.next()
	require.NoError(t, c.Err)
	require.Equal(t, []string{"c"}, c.Added)
	require.Equal(t, []string{"b"}, c.Removed)
	require.Equal(t, []string{"a"}, c.Changed)
	require.Len(t, c.Config.Servers, 2)

	// A bad file keeps what was, and says why.
	replace(t, file, "servers: {a: {comand: ./a}}")
	c = w.next()
	require.ErrorContains(t, c.Err, "server a: comand: unknown; did you mean command?")
	require.Len(t, c.Config.Servers, 2)
	require.True(t, c.IsEmpty())

	// So does one that is gone; put right as it was, nothing differs.
	require.NoError(t, os.Remove(file))
	require.ErrorContains(t, w.next().Err, "toolroom.yaml")
	write(t, file, "# moved down\n\nservers: {a: {command: ./a, args: [x]}, c: {command: ./c}}")
	for c = w.next(); c.Err != nil; c = w.next() { // it may be seen half written
	}
	require.True(t, c.IsEmpty())

	// Written in place, too.
	write(t, file, "servers: {d: {command: ./d}}")
	for c = w.next(); len(c.Added) == 0; c = w.next() {
	}
	require.Equal(t, []string{"d"}, c.Added)
}

func TestWatchReadsWhatHasChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	write(t, file, "servers: {a: {command: ./a}}")
	write(t, file+"~", "servers: {b: {command: ./b}}")
	loads := 0
	w := watch(t, file, func() (config.Config, error) {
		loads++
		return config.Load(config.Flags{Config: file}, filepath.Dir(file), "1", env(), nil)
	})
	time.Sleep(200 * time.Millisecond) // it looks, and finds what has been read
	require.NoError(t, os.Rename(file+"~", file))
	require.Equal(t, []string{"b"}, w.next().Added)
	require.Equal(t, 2, loads)
}

// A file that was not there is seen under any of its names.
func TestWatchSeesWhatIsMade(t *testing.T) {
	xdg := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(xdg, "toolroom"), 0o700))
	t.Chdir(t.TempDir())
	load := func() (config.Config, error) {
		return config.Load(config.Flags{State: xdg}, xdg, "1", env("XDG_CONFIG_HOME", xdg), nil)
	}
	w := watch(t, "", load)
	replace(t, filepath.Join(xdg, "toolroom", "toolroom.json"), `{"servers": {"a": {"command": "./a"}}}`)
	require.Equal(t, []string{"a"}, w.next().Added)
}

func TestWatchByPolling(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	write(t, file, "servers: {a: {command: ./a}}")
	w := watchWith(t, file, nil, config.WatchOptions{PollOnly: true, Settle: time.Millisecond, Poll: 20 * time.Millisecond})
	for _, next := range []string{"b", "c"} {
		replace(t, file, "servers: {"+next+": {command: ./a}}")
		require.Equal(t, []string{next}, w.next().Added)
	}
}

// What came from a pipe cannot be read again; Watch just waits for the end.
func TestWatchOfNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	calls := 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, config.Watch(ctx, config.Config{}, func() (config.Config, error) {
		calls++
		return config.Config{}, nil
	}, config.WatchOptions{}, func(config.Change) { calls++ }))
	require.Zero(t, calls)
}

// As Kubernetes does it: the file is a link to ..data/file, ..data a link to a
// directory that is swapped.
func TestWatchSeesSwappedLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	dir := filepath.Join(t.TempDir(), "mount")
	file := filepath.Join(dir, "toolroom.yaml")
	write(t, filepath.Join(dir, "..2026_1", "toolroom.yaml"), "servers: {a: {command: /a}}")
	require.NoError(t, os.Symlink("..2026_1", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/toolroom.yaml", file))
	w := watch(t, file, nil)
	for _, next := range []string{"b", "c"} {
		version := "..2026_" + next
		write(t, filepath.Join(dir, version, "toolroom.yaml"), "servers: {"+next+": {command: /a}}")
		require.NoError(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		c := w.next()
		require.NoError(t, c.Err)
		require.Equal(t, []string{next}, c.Added)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "..2026_1")))
	}
	// What a link far away points to.
	replace(t, filepath.Join(dir, "..2026_c", "toolroom.yaml"), "servers: {d: {command: /a}}")
	require.Equal(t, []string{"d"}, w.next().Added)
}

// The directory itself is replaced, by renaming and by removing.
func TestWatchSeesReplacedDirectories(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "toolroom")
	file := filepath.Join(dir, "toolroom.yaml")
	write(t, file, "servers: {a: {command: /a}}")
	w := watch(t, file, nil)
	added := func() []string {
		for {
			if c := w.next(); c.Err == nil && len(c.Added) > 0 {
				return c.Added
			}
		}
	}
	for _, next := range []string{"b", "c", "d", "e"} {
		if next < "d" {
			write(t, filepath.Join(top, "new", "toolroom.yaml"), "servers: {"+next+": {command: /a}}")
			require.NoError(t, os.Rename(dir, filepath.Join(top, "old"+next)))
			require.NoError(t, os.Rename(filepath.Join(top, "new"), dir))
		} else {
			require.NoError(t, os.RemoveAll(dir))
			replace(t, file, "servers: {"+next+": {command: /a}}")
		}
		require.Equal(t, []string{next}, added())
		replace(t, file, "servers: {"+next+next+": {command: /a}}")
		require.Equal(t, []string{next + next}, added())
	}
}

func TestWatchSeesAFileThatWasNotThere(t *testing.T) {
	xdg := filepath.Join(t.TempDir(), "not", "yet")
	t.Chdir(t.TempDir())
	getenv := env("XDG_CONFIG_HOME", xdg, "MCP_STATE_DIR", t.TempDir())
	w := watch(t, "", func() (config.Config, error) { return config.Load(config.Flags{}, t.TempDir(), "1", getenv, nil) })
	replace(t, filepath.Join(xdg, "toolroom", "toolroom.yaml"), "servers: {a: {command: ./a, env_file: secrets}}")
	c := w.next()
	require.ErrorContains(t, c.Err, "server a: env_file:")
	// What is missing is waited for.
	replace(t, filepath.Join(xdg, "toolroom", "secrets"), "K=v")
	c = w.next()
	require.NoError(t, c.Err)
	require.Equal(t, []string{"a"}, c.Added)
	replace(t, filepath.Join(xdg, "toolroom", "secrets"), "K=w")
	require.Equal(t, []string{"a"}, w.next().Changed)
}

func TestWatchKeepsWhatIsNotTrustedAnyMore(t *testing.T) {
	cwd, state := t.TempDir(), t.TempDir()
	t.Chdir(cwd)
	file := filepath.Join(cwd, "toolroom.yaml")
	trusted := "servers: {a: {command: ./a}}"
	write(t, file, trusted)
	require.NoError(t, config.Trust(state, file, []byte(trusted)))
	getenv := env("XDG_CONFIG_HOME", t.TempDir(), "MCP_STATE_DIR", state)
	w := watch(t, file, func() (config.Config, error) { return config.Load(config.Flags{}, cwd, "1", getenv, nil) })
	replace(t, file, "servers: {evil: {command: ./evil}}")
	c := w.next()
	require.ErrorContains(t, c.Err, "is no longer trusted; its servers stay as they are")
	require.Len(t, c.Config.Servers, 1)
	require.Equal(t, "a", c.Config.Servers[0].Name)
	require.NoError(t, config.Trust(state, file, []byte("servers: {evil: {command: ./evil}}")))
	c = w.next()
	require.NoError(t, c.Err)
	require.Equal(t, []string{"evil"}, c.Added)
}

// A file that is written in place is empty for a while, and may be for long.
func TestAnEmptiedFileKeepsWhatWas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	write(t, file, "servers: {a: {command: ./a}}")
	w := watch(t, file, nil)
	replace(t, file, "servers: {b: {command: ./b}}")
	require.Equal(t, []string{"b"}, w.next().Added)
	write(t, file, "")
	require.ErrorContains(t, w.next().Err, "toolroom.yaml is empty; its servers stay until it has content")
	replace(t, file, "# nothing\n")
	c := w.next()
	require.NoError(t, c.Err)
	require.Equal(t, []string{"b"}, c.Removed)
}
