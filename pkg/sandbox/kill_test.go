//go:build unix

package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if root := os.Getenv("SANDBOX_TEST_WRITER"); root != "" {
		if err := writeForever(root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

const bigSize = 30 << 20

// bigContent is 30 MB that name their version in every line.
func bigContent(version int) []byte {
	line := fmt.Appendf(nil, "version %8d of a line of a large file\n", version)
	return bytes.Repeat(line, bigSize/len(line))
}

// wholeVersion returns the version of a content, if it is all of one.
func wholeVersion(content []byte) (int, bool) {
	version, err := strconv.Atoi(strings.TrimSpace(string(content[min(len(content), 8):min(len(content), 16)])))
	return version, err == nil && bytes.Equal(content, bigContent(version))
}

// writeForever replaces a file by one version after the other, saying when
// it begins and when each is done, until it is killed.
func writeForever(root string) error {
	box := sandbox.New
	if os.Getenv("SANDBOX_TEST_PORTABLE") != "" {
		box = sandbox.NewPortable
	}
	fs, err := box(sandbox.Config{Roots: []string{root}, Getenv: noEnv}).FS(context.Background())
	if err != nil {
		return err
	}
	target, err := fs.OpenForWrite("big")
	if err != nil {
		return err
	}
	first, err := strconv.Atoi(os.Getenv("SANDBOX_TEST_VERSION"))
	if err != nil {
		return err
	}
	for version := first; ; version++ {
		content := bigContent(version)
		fmt.Println("begin")
		release, err := target.LockFile(context.Background())
		if err != nil {
			return err
		}
		_, err = target.Replace(context.Background(), func(w io.Writer) error {
			// In pieces, so that kills fall between them.
			for rest := content; len(rest) > 0; {
				n := min(len(rest), 1<<20)
				if _, err := w.Write(rest[:n]); err != nil {
					return err
				}
				rest = rest[n:]
			}
			return nil
		}, sandbox.ReplaceOptions{})
		if err != nil {
			return err
		}
		release()
		fmt.Println("done", version)
	}
}

// kills returns the number of processes to kill: SANDBOX_KILLS, or 20, or fewer
// under the race detector, which sees only one process.
func kills(t *testing.T) int {
	text := os.Getenv("SANDBOX_KILLS")
	switch {
	case text == "" && mcpkittest.RaceEnabled:
		return 6
	case text == "":
		return 20
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "SANDBOX_KILLS")
	return n
}

// TestKilledWriter kills writers of a large file at random moments: what is
// there is always one whole version, at least the last that was reported;
// the next writer finds no lock, and clears what was left.
func TestKilledWriter(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		portable := strings.HasSuffix(t.Name(), "portable")
		root := filepath.Join(memoryDir(t), "root")
		require.NoError(t, os.Mkdir(root, 0o755))
		path := filepath.Join(root, "big")
		require.NoError(t, os.WriteFile(path, bigContent(1), 0o640))
		last, litter, midway := 1, 0, 0
		for range kills(t) / 2 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "SANDBOX_TEST_WRITER="+root, fmt.Sprintf("SANDBOX_TEST_VERSION=%d", last+1))
			if portable {
				cmd.Env = append(cmd.Env, "SANDBOX_TEST_PORTABLE=1")
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			begun := make([]byte, len("begin\n"))
			_, err = io.ReadFull(out, begun)
			require.NoError(t, err, "%s", &stderr)
			time.Sleep(time.Duration(rand.Int64N(int64(40 * time.Millisecond))))
			require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
			said, err := io.ReadAll(out)
			require.NoError(t, err)
			require.Error(t, cmd.Wait())
			require.Empty(t, stderr.String())

			reported := last
			for line := range strings.Lines(string(said)) {
				if n, err := fmt.Sscanf(line, "done %d\n", &reported); n != 1 || err != nil {
					midway++
				}
			}
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			version, whole := wholeVersion(content)
			require.True(t, whole, "a mixture, or a part")
			require.GreaterOrEqual(t, version, reported)
			require.LessOrEqual(t, version, reported+1)
			last = version

			left, err := os.ReadDir(root)
			require.NoError(t, err)
			litter += len(left) - 1
			// The next write: no lock, nothing left.
			fs := open(t, box, root)
			target, err := fs.OpenForWrite("big")
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			release, err := target.LockFile(ctx)
			require.NoError(t, err)
			last++
			done, err := target.Replace(ctx, sandbox.Bytes(bigContent(last)), sandbox.ReplaceOptions{})
			require.NoError(t, err)
			release()
			cancel()
			require.NoError(t, target.Close())
			require.Equal(t, "-rw-r-----", done.Stat.Mode.String())
			left, err = os.ReadDir(root)
			require.NoError(t, err)
			require.Len(t, left, 1)
		}
		t.Logf("%d kills, %d of them after a first version, %d files left and cleared", kills(t)/2, midway, litter)
		if portable && kills(t) >= 20 { // a few may all have been killed too early
			require.NotZero(t, litter, "none was killed while it wrote")
		}
	})
}

// A write removes the temporary files of dead processes in the same directory, and
// no other files.
func TestOnlyLitterIsCleared(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		const dead, live, hard, link, dir = ".toolroom-0123456789abcdef-0.tmp", ".toolroom-0123456789abcdef-1.tmp", ".toolroom-0123456789abcdef-2.tmp", ".toolroom-0123456789abcdef-3.tmp", ".toolroom-0123456789abcdef-4.tmp"
		others := []string{".toolroom-0123456789abcdef-0.tmp.txt", ".toolroom-0123456789abcdeg-0.tmp", ".toolroom.tmp", ".toolroom-1-0.tmp"}
		for _, name := range append([]string{dead, live, hard}, others...) {
			tr.write(t, "root/"+name, "x")
		}
		require.NoError(t, os.Link(filepath.Join(tr.root, hard), filepath.Join(tr.base, "outside/hard")))
		tr.link(t, "a.txt", "root/"+link)
		require.NoError(t, os.Mkdir(filepath.Join(tr.root, dir), 0o755))
		busy, err := os.Open(filepath.Join(tr.root, live))
		require.NoError(t, err)
		defer busy.Close()
		locked, err := filelock.TryLock(busy)
		require.NoError(t, err)
		require.True(t, locked)
		if os.Geteuid() == 0 {
			fs := open(t, box, tr.root)
			require.NoError(t, os.Chmod(tr.root, 0o777))
			var err error
			theirs(t, func() { _, err = put(fs, "dir/../theirs", "x", sandbox.ReplaceOptions{}) })
			require.NoError(t, err)
			require.FileExists(t, filepath.Join(tr.root, dead), "another user's")
		}
		_, err = put(open(t, box, tr.root), "new", "x", sandbox.ReplaceOptions{})
		require.NoError(t, err)
		require.NoFileExists(t, filepath.Join(tr.root, dead))
		for _, name := range append(others, live, hard) {
			require.FileExists(t, filepath.Join(tr.root, name))
		}
		require.DirExists(t, filepath.Join(tr.root, dir))
		_, err = os.Readlink(filepath.Join(tr.root, link))
		require.NoError(t, err)
	})
}

// In a directory too large to be looked through, the next write of the same
// file still clears what the last one left.
func TestLitterInALargeDirectory(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTreeIn(t, memoryDir(t))
		litter := "root/many/" + sandbox.NameTempFile("f", 0)
		tr.write(t, litter, "half a file")
		for i := range 3000 {
			tr.write(t, fmt.Sprintf("root/many/%d", i), "")
		}
		fs := open(t, box, tr.root)
		for _, content := range []string{"made", "replaced"} {
			_, err := put(fs, "many/f", content, sandbox.ReplaceOptions{})
			require.NoError(t, err)
			require.Equal(t, content, tr.onDisk(t, "root/many/f"))
		}
		require.NoFileExists(t, filepath.Join(tr.base, litter))
	})
}

// A name for the temporary file that somebody else has taken, with anything at
// all, is not written to, nor in the way.
func TestTakenScratchNames(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		for slot := range 4 {
			name := sandbox.NameTempFile("a.txt", slot)
			if slot%2 == 0 {
				tr.link(t, "../outside/secret.txt", "root/"+name)
			} else {
				require.NoError(t, syscall.Mkfifo(filepath.Join(tr.root, name), 0o644))
			}
		}
		fs := open(t, box, tr.root)
		for _, content := range []string{"one", "two"} {
			_, err := put(fs, "a.txt", content, sandbox.ReplaceOptions{})
			require.NoError(t, err)
			require.Equal(t, content, tr.onDisk(t, "root/a.txt"))
		}
		require.Equal(t, outsideMark, tr.onDisk(t, "outside/secret.txt"))
		info, err := os.Lstat(filepath.Join(tr.root, "a.txt"))
		require.NoError(t, err)
		require.True(t, info.Mode().IsRegular())
	})
}
