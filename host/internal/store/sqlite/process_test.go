package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/sqlite"
	"github.com/toolroom-mcp/toolroom/host/internal/store/storetest"
	"github.com/toolroom-mcp/toolroom/internal/testkit/leakcheck"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// role makes the test binary one of several processes of a test.
const role = "TOOLROOM_STORE_ROLE"

func TestMain(m *testing.M) {
	if what, dir, ok := strings.Cut(os.Getenv(role), " "); ok {
		s := sqlite.New(sqlite.Config{Dir: dir, NoSync: true})
		err := errors.Join(play(what, s), s.Close())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(leakcheck.Tests{Tests: m}.Run())
}

const steps = 20

// play is what the processes do.
func play(what string, s *store.Store) error {
	ctx := context.Background()
	for i := 0; what == "write" || i < steps; i++ {
		switch what {
		case "count":
			if err := storetest.Increment(ctx, s.Keys, "counter"); err != nil {
				return err
			}
		case "write": // until it is killed
			_, err := s.Log.Append(ctx, "log", fmt.Appendf(nil, "%d a", i), fmt.Appendf(nil, "%d b", i))
			if err == nil {
				_, err = s.Keys.Put(ctx, "done", strconv.AppendInt(nil, int64(i), 10), store.Any, time.Time{})
			}
			if err == nil {
				_, err = fmt.Println(i)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func process(t *testing.T, what, dir string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^$")
	cmd.Env = append(os.Environ(), role+"="+what+" "+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// Processes that all open a database that is not there yet, and change one
// key: no step is lost, and none is refused.
func TestProcessesContend(t *testing.T) {
	dir := t.TempDir()
	var all []*exec.Cmd
	for range 4 {
		cmd := process(t, "count", dir)
		require.NoError(t, cmd.Start())
		all = append(all, cmd)
	}
	for _, cmd := range all {
		require.NoError(t, cmd.Wait())
	}
	s := sqlite.New(sqlite.Config{Dir: dir, NoSync: true})
	defer s.Close()
	e, err := s.Keys.Get(t.Context(), "counter")
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(4*steps), string(e.Value))
}

// A process that is killed while it writes loses nothing that it was told is
// done, leaves no half of a batch, and keeps nobody from going on, also who
// has the database open all the time.
func TestKilledWriterLosesNothing(t *testing.T) {
	dir := t.TempDir()
	watcher := sqlite.New(sqlite.Config{Dir: dir, NoSync: true})
	defer watcher.Close()
	for range 6 {
		require.NoError(t, watcher.Log.Drop(t.Context(), "log"))
		acknowledged := writeUntilKilled(t, dir)
		fresh := sqlite.New(sqlite.Config{Dir: dir, NoSync: true})
		for _, s := range []*store.Store{fresh, watcher} {
			var got []string
			for after := store.Cursor(0); ; {
				page, err := s.Log.Read(t.Context(), "log", after, store.MaxPageEntries)
				require.NoError(t, err)
				if len(page) == 0 {
					break
				}
				for _, r := range page {
					got = append(got, string(r.Data))
				}
				after = page[len(page)-1].Cursor
			}
			require.GreaterOrEqual(t, len(got), 2*(acknowledged+1))
			require.Zero(t, len(got)%2, "batches are whole")
			for i, text := range got {
				require.Equal(t, fmt.Sprintf("%d %c", i/2, 'a'+i%2), text)
			}
			e, err := s.Keys.Get(t.Context(), "done")
			require.NoError(t, err)
			done, err := strconv.Atoi(string(e.Value))
			require.NoError(t, err)
			require.GreaterOrEqual(t, done, acknowledged)
			_, err = s.Keys.Put(t.Context(), "after", nil, store.Any, time.Time{})
			require.NoError(t, err)
		}
		require.NoError(t, fresh.Close())
	}
}

// writeUntilKilled returns the last number a writer said was written.
func writeUntilKilled(t *testing.T, dir string) int {
	t.Helper()
	cmd := process(t, "write", dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "it writes")
	kill := time.AfterFunc(time.Duration(rand.Int64N(int64(40*time.Millisecond))), func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	last := lines.Text()
	for lines.Scan() {
		last = lines.Text() // a line is one write: whole or not there
	}
	require.Error(t, cmd.Wait(), "it was killed")
	n, err := strconv.Atoi(last)
	require.NoError(t, err)
	return n
}

// One process that keeps the database for itself makes others wait, and then
// say so.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s := sqlite.New(sqlite.Config{Dir: dir, NoSync: true, Wait: 20 * time.Millisecond})
	defer s.Close()
	_, err := s.Keys.Put(t.Context(), "k", nil, store.Any, time.Time{})
	require.NoError(t, err)
	release := hold(t, dir)
	_, err = s.Keys.Put(t.Context(), "k", nil, store.Any, time.Time{})
	require.Equal(t, toolerr.Locked, toolerr.CodeOf(err), "%v", err)
	_, err = s.Keys.Get(t.Context(), "k")
	require.NoError(t, err, "readers do not wait")
	release()
	_, err = s.Keys.Put(t.Context(), "k", nil, store.Any, time.Time{})
	require.NoError(t, err)
}
