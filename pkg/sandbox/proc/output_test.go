//go:build linux

package proc_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// output runs a script unconfined and returns its output.
func output(t testing.TB, c proc.Config, script string) *proc.Output {
	t.Helper()
	c.Level = proc.Off
	_, out, err := newRunner(t, c).Run(context.Background(), proc.Command{Script: script, Dir: "/"})
	require.NoError(t, err)
	t.Cleanup(func() { out.Close() })
	return out
}

func TestShortOutputIsShownWhole(t *testing.T) {
	out := output(t, proc.Config{}, `seq 3; printf 'no end'`)
	require.Equal(t, "1\n2\n3\nno end", out.Excerpt(0).Text())
	require.EqualValues(t, 4, out.Lines())
	require.EqualValues(t, 12, out.Size())
	name, _, err := out.Spill()
	require.Empty(t, name, "no file for what is in memory")
	require.NoError(t, err)
}

func TestLongOutputIsCutAtLines(t *testing.T) {
	for _, lines := range []int{7000, 100_000, 1_000_000} { // in memory, just beyond it, far beyond it
		out := output(t, proc.Config{}, fmt.Sprintf("seq 1 %d", lines))
		e := out.Excerpt(0)
		text := e.Text()
		require.LessOrEqual(t, utf8.RuneCountInString(e.Head)+utf8.RuneCountInString(e.Tail), proc.DefaultCharacters)
		require.Greater(t, len(e.Head)+len(e.Tail), 29_000)
		require.InDelta(t, 0.3, float64(len(e.Head))/float64(len(e.Head)+len(e.Tail)), 0.01)
		require.True(t, strings.HasPrefix(text, "1\n2\n3\n"))
		require.True(t, strings.HasSuffix(text, fmt.Sprintf("\n%d\n", lines)))
		head, tail := strings.Fields(e.Head), strings.Fields(e.Tail)
		last, err := strconv.Atoi(head[len(head)-1])
		require.NoError(t, err)
		first, err := strconv.Atoi(tail[0])
		require.NoError(t, err)
		require.EqualValues(t, first-last-1, e.OmittedLines)
		require.Equal(t, out.Size(), int64(len(e.Head)+len(e.Tail))+e.OmittedBytes)
		require.Contains(t, text, fmt.Sprintf("\n[… %d lines, %d bytes omitted …]\n", e.OmittedLines, e.OmittedBytes))
		require.EqualValues(t, lines, out.Lines())
	}
}

func TestTheWholeOutputIsInAFile(t *testing.T) {
	out := output(t, proc.Config{}, "seq 1 200000")
	name, size, err := out.Spill()
	require.NoError(t, err)
	require.Equal(t, out.Size(), size)
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var want bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintln(&want, i+1)
	}
	require.True(t, bytes.Equal(want.Bytes(), text))

	// Reads at consecutive offsets return each byte once, with any size of
	// buffer.
	var read []byte
	for step, buf := 1, make([]byte, 70_000); ; step = step*3%69_997 + 1 {
		n, skipped, err := out.Read(int64(len(read)), buf[:step])
		require.NoError(t, err)
		require.Zero(t, skipped)
		if n == 0 {
			break
		}
		read = append(read, buf[:n]...)
	}
	require.True(t, bytes.Equal(text, read))
}

// TestMuchOutput: large output needs little memory, and its beginning and end
// are kept.
func TestMuchOutput(t *testing.T) {
	const bound = 1 << 20
	size := 2 << 30
	if mcpkittest.RaceEnabled {
		size = 64 << 20
	}
	forgetPeak(t)
	before := statusKiB(t, "VmRSS")
	out := output(t, proc.Config{SpillBytes: bound}, fmt.Sprintf(
		"echo the beginning; dd if=/dev/zero bs=1M count=%d iflag=fullblock status=none; seq 1000000 1100000; echo the end", size>>20))
	after := statusKiB(t, "VmHWM")
	require.EqualValues(t, len("the beginning\n")+size+100_001*8+len("the end\n"), out.Size())
	require.EqualValues(t, 1+100_001+1, out.Lines())
	name, spilled, err := out.Spill()
	require.NoError(t, err)
	require.EqualValues(t, bound, spilled)
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.EqualValues(t, bound, info.Size())

	buf := make([]byte, 1<<20)
	n, skipped, err := out.Read(bound, buf)
	require.NoError(t, err)
	require.Positive(t, skipped)
	require.Equal(t, out.Size(), bound+skipped+int64(n), "the tail follows what is in the file")
	require.True(t, strings.HasSuffix(string(buf[:n]), "\n1099999\n1100000\nthe end\n"))
	if !mcpkittest.RaceEnabled {
		require.Less(t, after, 64<<10, "what the server took at most")
		require.Less(t, after-before, 16<<10, "and for this")
	}
}

// forgetPeak resets VmHWM after a garbage collection.
func forgetPeak(t testing.TB) {
	t.Helper()
	debug.FreeOSMemory()
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
}

// statusKiB returns a field of /proc/self/status in KiB.
func statusKiB(t testing.TB, name string) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			require.NoError(t, err)
			return kib
		}
	}
	require.Fail(t, "no "+name)
	return 0
}

func TestEndlessOutputEndsAtTheTimeout(t *testing.T) {
	t.Parallel()
	r := newRunner(t, proc.Config{Level: proc.Off, SpillBytes: 1 << 20})
	out := timedOut(t, r, "yes")
	require.Positive(t, out.Size())
	require.True(t, strings.HasSuffix(out.Excerpt(0).Text(), "y"+"\n") || strings.HasSuffix(out.Excerpt(0).Text(), "y"))
}

func TestOutputThatIsNoText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, text string }{
		"program":             {"cat /bin/bash", "ELF program"},
		"compressed":          {"head -c 100000 /dev/zero | gzip", "gzip data"},
		"random":              {"head -c 100000 /dev/urandom | tail -c 99999", "binary output, 99999 bytes"},
		"zeros":               {"head -c 1000 /dev/zero", "binary output, 1000 bytes"},
		"text, then binary":   {"seq 1 100000; head -c 300000 /dev/urandom", "binary output"},
		"a NUL":               {`printf 'one\0two\n'`, "one\\x00two\n"},
		"separated by NUL":    {`printf '%s\0' /usr/bin/env /usr/bin/bash`, `/usr/bin/env\x00/usr/bin/bash\x00`},
		"Latin-1":             {`printf 'gr\xfc\xdfe\n'`, "gr\uFFFDe\n"},
		"cut in a character":  {`printf 'ü\xc3'`, "ü\uFFFD"},
		"about a format":      {`printf 'BZh is how bzip2 data begins\n'`, "BZh is how bzip2 data begins\n"},
		"colours":             {`printf '\033[31mred\033[0m\n'`, "\x1b[31mred\x1b[0m\n"},
		"character by halves": {`printf '\xe2\x82'; sleep 0.05; printf '\xac\n'`, "€\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := output(t, proc.Config{}, c.script).Excerpt(0).Text()
			require.Contains(t, text, c.text)
			require.True(t, utf8.ValidString(text))
			require.Less(t, len(text), 200)
		})
	}
}

// TestCutsFallBetweenCharacters: an excerpt is cut between characters,
// whatever their size and wherever its parts begin.
func TestCutsFallBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, character := range []string{"a", "ü", "€", "😀"} {
		for _, count := range []int{29_999, 30_000, 30_001, 200_000} {
			out := output(t, proc.Config{}, fmt.Sprintf("head -c %d /dev/zero | sed 's/\\x00/%s/g'", count, character))
			e := out.Excerpt(0)
			require.Zero(t, e.Replaced)
			require.LessOrEqual(t, utf8.RuneCountInString(e.Head+e.Tail), proc.DefaultCharacters)
			require.Empty(t, strings.ReplaceAll(e.Head+e.Tail, character, ""))
			require.Equal(t, count > 30_000, e.OmittedBytes > 0)
			require.EqualValues(t, count*len(character), int64(len(e.Head)+len(e.Tail))+e.OmittedBytes)
		}
	}
}

func TestALineOfAHundredMegabytes(t *testing.T) {
	t.Parallel()
	out := output(t, proc.Config{}, `head -c 100000000 /dev/zero | tr '\0' x; echo; echo after`)
	e := out.Excerpt(0)
	require.EqualValues(t, 2, out.Lines())
	require.Zero(t, e.OmittedLines, "both its ends are shown")
	require.True(t, strings.HasSuffix(e.Tail, "x\nafter\n"))
	require.EqualValues(t, 100000007, int64(len(e.Head)+len(e.Tail))+e.OmittedBytes)
}

func TestOutputWithoutAPlaceForIt(t *testing.T) {
	r := newRunner(t, proc.Config{Level: proc.Off, SpillDir: "/nonexistent"})
	_, out, err := r.Run(context.Background(), proc.Command{Script: "seq 1 200000", Dir: "/"})
	require.NoError(t, err)
	name, _, err := out.Spill()
	require.Empty(t, name)
	require.Error(t, err)
	require.True(t, strings.HasSuffix(out.Excerpt(0).Text(), "\n200000\n"))
}
