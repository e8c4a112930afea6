//go:build linux

package proc_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestStaleDirectories: a later server removes the temporary directories of a
// killed server, whatever a command made of them, but not those of a running
// one.
func TestStaleDirectories(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			base := t.TempDir()
			live, err := proc.New(proc.Config{Level: level, TempDir: base})
			require.NoError(t, err)
			proc.TrustLevel(live, level)
			alive, err := live.Start(context.Background(), proc.Command{
				Script: `echo x > "$TMPDIR/f"; echo ready; read x; cat "$TMPDIR/f"`, Dir: "/", KeepStdin: true, Rules: rules{root: t.TempDir()},
			})
			require.NoError(t, err)
			waitFor(t, alive, "ready")
			kept, err := os.ReadDir(base)
			require.NoError(t, err)
			require.Len(t, kept, 1)

			killServer(t, serverJob{
				Script: `mkdir -p "$TMPDIR/a/b"; echo x > "$TMPDIR/a/b/c"; chmod 000 "$TMPDIR/a"; echo ready; sleep 1000`, Dir: base, Level: level,
			}, filepath.Join(base, kept[0].Name(), "lock"))
			left, err := os.ReadDir(base)
			require.NoError(t, err)
			require.Len(t, left, 2, "nobody could remove it")
			// Directories of other programs are kept, and those that are just
			// being made.
			for _, name := range []string{"toolroom-run-new", "toolroom-runner", "other"} {
				require.NoError(t, os.Mkdir(filepath.Join(base, name), 0o700))
			}
			old := filepath.Join(base, "toolroom-run-old")
			require.NoError(t, os.Mkdir(old, 0o700))
			require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour)))
			target := filepath.Join(t.TempDir(), "target")
			require.NoError(t, os.Mkdir(target, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(target, "lock"), nil, 0o600))
			require.NoError(t, os.Symlink(target, filepath.Join(base, "toolroom-run-link")))

			later, err := proc.New(proc.Config{Level: proc.Off, TempDir: base})
			require.NoError(t, err)
			run(t, later, proc.Command{Script: "true"})
			require.NoError(t, later.Close())
			var names []string
			left, err = os.ReadDir(base)
			require.NoError(t, err)
			for _, entry := range left {
				names = append(names, entry.Name())
			}
			require.ElementsMatch(t, []string{kept[0].Name(), "toolroom-run-new", "toolroom-run-link", "toolroom-runner", "other"}, names)
			require.FileExists(t, filepath.Join(target, "lock"))

			require.NoError(t, alive.WriteStdin([]byte("\n")))
			alive.Wait()
			require.Equal(t, "ready\nx\n", alive.Output().Excerpt(0).Text())
			require.NoError(t, live.Close())
		})
	}
}

// killServer runs a job in another process and kills that process once the
// command is running. It waits until the locks of its directories are free.
// held lists the locks of other servers.
func killServer(t testing.TB, job serverJob, held ...string) {
	t.Helper()
	text, err := json.Marshal(job)
	require.NoError(t, err)
	server := exec.Command("/proc/self/exe", "-test.run=^TestServerProcess$", "-test.v")
	server.Env = append(os.Environ(), "PROC_TEST_SERVER="+string(text))
	output, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	readUntil(t, output, "command is running")
	require.NoError(t, server.Process.Kill())
	server.Wait()
	// A supervisor that it was just starting holds its descriptors until exec.
	locks, err := filepath.Glob(filepath.Join(job.Dir, "toolroom-run-*", "lock"))
	require.NoError(t, err)
	for _, name := range locks {
		if slices.Contains(held, name) {
			continue
		}
		lock, err := os.OpenFile(name, os.O_RDWR, 0)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			free, err := filelock.TryLock(lock)
			return err != nil || free
		}, time.Minute, time.Millisecond)
		filelock.Unlock(lock)
		require.NoError(t, lock.Close())
	}
}

// TestTheRunnersDirectoryMayVanish: commands still run after somebody has
// cleared /tmp.
func TestTheRunnersDirectoryMayVanish(t *testing.T) {
	base := t.TempDir()
	r := newRunner(t, proc.Config{Level: proc.Off, TempDir: base})
	for range 3 {
		_, out := run(t, r, proc.Command{Script: `echo x > "$TMPDIR/f" && cat "$TMPDIR/f"`})
		require.Equal(t, "x\n", out)
		names, err := filepath.Glob(filepath.Join(base, "*"))
		require.NoError(t, err)
		for _, name := range names {
			// A directory that is being prepared in it may make the removal
			// fail.
			require.Eventually(t, func() bool { return os.RemoveAll(name) == nil }, time.Minute, time.Millisecond)
		}
	}
}

// TestWhatNobodyMayRemove: directories whose permissions a command removed are
// removed too.
func TestWhatNobodyMayRemove(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		r := trusted(t, level) // checks at the end that nothing is left
		run(t, r, proc.Command{Script: `cd "$TMPDIR" || exit; mkdir -p a/b/c; echo > a/b/f; chmod 0 a/b/c a/b a "$TMPDIR"`, Rules: rules{root: t.TempDir()}})
	}
}

// TestBuildCaches: build caches are kept for later commands and later servers.
// The user's settings for a command take precedence.
func TestBuildCaches(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			dir, root := filepath.Join(place(t), "state", "cache"), place(t)
			for i, script := range []string{
				`for d in "$GOCACHE" "$npm_config_cache" "$PIP_CACHE_DIR"; do echo x > "$d/f" && echo made; done`,
				`cat "$GOCACHE/f" "$npm_config_cache/f" "$PIP_CACHE_DIR/f"`,
			} {
				r := newRunner(t, proc.Config{Level: level, CacheDir: dir, Hidden: []string{filepath.Dir(dir)}, Environ: append(os.Environ(), "GOCACHE=/nonexistent", "UV_CACHE_DIR="+root+"/uv")})
				proc.TrustLevel(r, level)
				_, out := run(t, r, proc.Command{Script: script, Dir: root, Rules: rules{root: root}})
				require.Contains(t, []string{"made\nmade\nmade\n", "x\nx\nx\n"}, out)
				_, out = run(t, r, proc.Command{
					Script: "echo $GOCACHE $GOMODCACHE; echo $UV_CACHE_DIR", Dir: root, Env: []string{"GOCACHE=/own"}, Rules: rules{root: root},
				})
				require.Contains(t, out, "/own")
				if level != proc.Off {
					require.Contains(t, out, root+"/uv\n", "it may be written anyway")
				}
				require.NotContains(t, out, "go-mod", "modules come from the user's")
				other := place(t)
				_, out = run(t, r, proc.Command{
					Script: `cat "$GOCACHE/f" ` + dir + `/*/*/f; for d in ` + dir + `/*; do echo evil > "$d/go-build/evil"; done; ls "$GOCACHE"`, Dir: other, Rules: rules{root: other},
				})
				if level != proc.Off {
					require.NotContains(t, out, "x\n", "of another project")
					evil, err := filepath.Glob(filepath.Join(dir, "*", "go-build", "evil"))
					require.NoError(t, err)
					require.LessOrEqual(t, len(evil), i+1, "one of its own in each round")
				}
			}
			info, err := os.Stat(dir)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		})
	}
}

// A prepared directory is not used if a directory above it has been moved
// since, even if the next one has been prepared elsewhere.
func TestTempDirMovedAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRunner(t, proc.Config{Level: proc.Off, TempDir: dir})
	first, err := proc.TakeTemp(r)
	require.NoError(t, err)
	proc.PrepareTemps(r)
	_, err = proc.TakeTemp(r) // one of the prepared directories is left
	require.NoError(t, err)
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(filepath.Dir(first), moved))
	proc.PrepareTemps(r)
	next, err := proc.TakeTemp(r)
	require.NoError(t, err)
	require.DirExists(t, next)
	require.NotEqual(t, filepath.Dir(first), filepath.Dir(next))
}

// TestTempDirInARoot: links that commands put in the path to the next
// command's temporary directory do not lead out of the root.
func TestTempDirInARoot(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			dir := place(t)
			root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
			base := filepath.Join(root, "tmp")
			require.NoError(t, os.MkdirAll(base, 0o700))
			require.NoError(t, os.Mkdir(outside, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), []byte("as it was"), 0o600))
			r := newRunner(t, proc.Config{Level: level, TempDir: base})
			proc.TrustLevel(r, level)
			do := func(script string) {
				t.Helper()
				_, out, err := r.Run(context.Background(), proc.Command{
					Dir: root, Rules: rules{root: root}, Env: []string{"OUTSIDE=" + outside}, Script: script + `; echo x > "$TMPDIR/new"`,
					Prologue: func(report string) string { return "# " + script + "\n" },
				})
				if err == nil {
					out.Close()
				} else { // then no command runs
					require.ErrorContains(t, err, "leads to another directory")
				}
				text, err := os.ReadFile(filepath.Join(outside, "file"))
				require.NoError(t, err)
				require.Equal(t, "as it was", string(text), script)
				entries, err := os.ReadDir(outside)
				require.NoError(t, err)
				require.Len(t, entries, 1, script)
			}
			do("true")
			for _, plant := range []string{
				`ln -sf $OUTSIDE/file $d/.toolroom-report`,
				`rm -f $d/.toolroom-*; mkfifo $d/.toolroom-report`,
				`mv $d $d.moved; ln -s $OUTSIDE $d`,
				`mv tmp/toolroom-run-* moved; ln -s $OUTSIDE $(dirname $d)`,
			} {
				require.Eventually(t, func() bool { // those for the next commands are prepared
					ahead, err := filepath.Glob(base + "/toolroom-run-*/*/.toolroom-report")
					return err == nil && len(ahead) >= 2
				}, time.Minute, time.Millisecond)
				do(`for d in tmp/toolroom-run-*/*; do [ -d $d ] && [ ! $d -ef "$TMPDIR" ] && { ` + plant + `; }; done; :`)
				for range 3 {
					do("echo " + plant[:5])
				}
			}
			do("rm -f tmp/*; mv tmp moved-tmp; ln -s $OUTSIDE tmp") // also the link made before
			do("echo again")
			require.NoError(t, os.Remove(base))
			require.NoError(t, os.Rename(filepath.Join(root, "moved-tmp"), base))
		})
	}
}
