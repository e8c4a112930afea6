//go:build linux

package proc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// A listing is used until the directory changes.
func TestHomeListingsFollowTheDirectory(t *testing.T) {
	t.Parallel()
	dir, listings := t.TempDir(), new(proc.HomeListings)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	for i := range 3 {
		if i == 2 {
			time.Sleep(supervise.SettledAfter + 100*time.Millisecond) // then the listing is of a settled directory
		}
		names, err := listings.Read(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, names)
	}
	require.True(t, listings.Has(dir))
	require.NoError(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	names, err := listings.Read(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, names)
}

// The listings are bounded, and usable by many runners at the same time.
func TestHomeListingsOfManyDirectories(t *testing.T) {
	t.Parallel()
	top, listings := t.TempDir(), new(proc.HomeListings)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 400 {
				dir := filepath.Join(top, fmt.Sprintf("%d-%d", worker, i))
				if os.Mkdir(dir, 0o700) != nil || os.WriteFile(filepath.Join(dir, "f"), nil, 0o600) != nil {
					t.Error("the directory cannot be made")
					return
				}
				if names, err := listings.Read(dir); err != nil || len(names) != 1 {
					t.Errorf("%s: %v %v", dir, names, err)
				}
			}
		})
	}
	group.Wait()
	require.LessOrEqual(t, listings.Len(), proc.MaxHomeListings)
}

// A credential file that appears after one runner has read the home is hidden from the
// commands of another runner with the same listings.
func TestHomeListingsHideNewFiles(t *testing.T) {
	t.Parallel()
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			listings := new(proc.HomeListings)
			run := func() string {
				t.Helper()
				r, err := proc.New(proc.Config{Level: level, HomeListings: listings, Environ: append(append(os.Environ(), "HOME="+s.path("home")), s.env...), TempDir: t.TempDir()})
				require.NoError(t, err)
				defer r.Close()
				if report, err := r.SelfTest(context.Background()); err != nil {
					t.Skipf("%s is not enforced here: %v %s", level, err, report.Failure)
				}
				result, output, err := r.Run(context.Background(), proc.Command{Script: "cat ~/deep/.netrc 2>/dev/null || echo hidden", Dir: s.path("root"), Rules: s.files})
				require.NoError(t, err)
				require.Equal(t, proc.Exited, result.Ending)
				return string(output.Excerpt(0).Text())
			}
			require.NoError(t, os.MkdirAll(s.path("home/deep"), 0o755))
			require.NoError(t, os.WriteFile(s.path("home/deep/notes"), []byte("NOTES\n"), 0o600))
			time.Sleep(supervise.SettledAfter + 100*time.Millisecond)
			require.Equal(t, "hidden\n", run(), "there is no such file")
			require.True(t, listings.Has(s.path("home/deep")))
			require.NoError(t, os.Rename(s.path("home/deep/notes"), s.path("home/deep/.netrc")))
			require.Equal(t, "hidden\n", run())
		})
	}
}
