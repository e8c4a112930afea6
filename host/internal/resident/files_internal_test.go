package resident

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// run starts the process of a version of a program: its text.
func run(t *testing.T, state, program, text string) (client Client, ended chan error) {
	t.Helper()
	require.NoError(t, os.WriteFile(program, []byte(text), 0o600))
	identities.Delete(program) // as in another process
	ready, ended := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- Run(ctx, Config{State: state, Program: program, Version: text, Idle: time.Hour, Ready: func() { close(ready) }})
	}()
	t.Cleanup(cancel)
	select {
	case <-ready:
	case err := <-ended:
		require.NoError(t, err)
	}
	return Client{State: state, Program: program}, ended
}

// attach connects a host that uses a server, which never answers.
func attach(t *testing.T, c Client) net.Conn {
	t.Helper()
	conn, err := c.Dial(t.Context())
	require.NoError(t, err)
	fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":1,"method":"toolroom/attach","params":{"spec":{"command":["/bin/sleep","1000"],"env":[],"dir":"/","maxLine":65536},"host":%d,"name":"s","startTime":600000000000}}`+"\n", os.Getpid()) //nolint:errcheck // the answer tells
	in := bufio.NewReader(conn)
	for range 2 { // methodWaiting, and the answer
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.NotContains(t, line, `"error"`)
	}
	return conn
}

func TestAnOlderVersionEndsWithItsLastHost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("runs /bin/sleep")
	}
	mcpkittest.NoLeaks(t, "github.com/toolroom-mcp/toolroom/host/internal/")
	state, dir := t.TempDir(), t.TempDir()
	program := filepath.Join(dir, "mcp-host")
	older, olderEnded := run(t, state, program, "1")
	host := attach(t, older)
	other, otherEnded := run(t, state, filepath.Join(dir, "another"), "1")

	newer, newerEnded := run(t, state, program, "1.1")
	s, err := newer.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1.1", s.Version)
	require.Empty(t, olderEnded, "it has a host")
	host.Close() //nolint:errcheck // the end tells
	require.NoError(t, <-olderEnded)

	// Neither the newer version nor another program has ended.
	for _, one := range []struct {
		client Client
		ended  chan error
	}{{newer, newerEnded}, {other, otherEnded}} {
		require.Empty(t, one.ended)
		_, err := one.client.Stop(t.Context())
		require.NoError(t, err)
		require.NoError(t, <-one.ended)
	}
}

// A process whose socket was removed and replaced does not remove that of its successor.
func TestTheEndOfAProcessKeepsTheSocketOfAnother(t *testing.T) {
	state, program := t.TempDir(), filepath.Join(t.TempDir(), "mcp-host")
	require.NoError(t, os.WriteFile(program, nil, 0o600))
	begin := func() (end func()) {
		ready, ended := make(chan struct{}), make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			ended <- Run(ctx, Config{State: state, Program: program, Idle: time.Hour, Ready: func() { close(ready) }})
		}()
		t.Cleanup(cancel)
		select {
		case <-ready:
		case err := <-ended:
			require.NoError(t, err)
		}
		return func() {
			cancel()
			require.NoError(t, <-ended)
		}
	}
	client := Client{State: state, Program: program}
	endFirst := begin()
	require.NoError(t, os.RemoveAll(filepath.Join(state, "shared")))
	endSecond := begin()
	endFirst()
	conn, err := client.Dial(t.Context())
	require.NoError(t, err)
	conn.Close() //nolint:errcheck // nothing was said
	endSecond()
	_, err = client.Dial(t.Context())
	require.ErrorIs(t, err, ErrNotRunning)
	dir, name, err := socketOf(state, program)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, name), "it has removed its own")
}

func TestFilesOfVersionsThatDoNotRunAreRemoved(t *testing.T) {
	state := t.TempDir()
	shared := filepath.Join(state, "shared")
	require.NoError(t, os.Mkdir(shared, 0o700))
	make := func(name string, age time.Duration) {
		for _, suffix := range []string{"", lockSuffix, logSuffix} {
			path := filepath.Join(shared, name+suffix)
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
		}
	}
	make("old.sock", 2*unusedFilesLifetime)
	make("recent.sock", unusedFilesLifetime/2)
	make("locked.sock", 2*unusedFilesLifetime) // a process is about to start
	unlock, err := lock(t.Context(), shared, "locked.sock")
	require.NoError(t, err)
	defer unlock()

	client, ended := run(t, state, filepath.Join(t.TempDir(), "mcp-host"), "1")
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(shared, "old.sock"+lockSuffix))
		return os.IsNotExist(err)
	}, time.Minute, time.Millisecond)
	_, err = client.Stop(t.Context())
	require.NoError(t, err)
	require.NoError(t, <-ended)
	entries, err := filepath.Glob(filepath.Join(shared, "*"))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, entry := range entries {
		names[filepath.Base(entry)] = true
	}
	for _, suffix := range []string{"", lockSuffix, logSuffix} {
		require.False(t, names["old.sock"+suffix])
		require.True(t, names["recent.sock"+suffix])
		require.True(t, names["locked.sock"+suffix])
	}
}

// A client that waits for a lock whose file is removed gets the lock of the new file.
func TestALockIsOneOfItsName(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(t.Context(), dir, "s")
	require.NoError(t, err)
	second := make(chan func())
	go func() {
		unlock, err := lock(context.Background(), dir, "s")
		if err != nil {
			t.Error(err)
		}
		second <- unlock
	}()
	time.Sleep(20 * time.Millisecond) // it has opened the file
	require.NoError(t, os.Remove(filepath.Join(dir, "s"+lockSuffix)))
	third, err := lock(t.Context(), dir, "s")
	require.NoError(t, err)
	unlock()
	select {
	case <-second:
		t.Error("it got the lock of a removed file")
	case <-time.After(50 * time.Millisecond):
	}
	third()
	(<-second)()
}
