//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// pieces are the parts of random output: text of each width, text that is shown
// differently, and bytes that are not text.
var pieces = []string{
	"a", "hello ", "\n", "\n\n", "é", "漢", "😀", "\t", "\r\n", "\r", "\x1b[1m", "\x00", "\xff", "\xc3", "\xe6\xbc", "\xf0\x9f", "\u202e", "\u200d", "long line of plain text ",
}

func randomOutput(r *rand.Rand, size int) []byte {
	var out []byte
	for len(out) < size {
		out = append(out, pieces[r.IntN(len(pieces))]...)
	}
	return out
}

// Pages of any size, taken at any time while the output grows in chunks of any
// size, together equal the whole output as shown at once: no byte is lost or
// repeated. BASH_CURSORS sets the number of outputs, by default 12.
func TestCursorsNeitherLoseNorRepeat(t *testing.T) {
	rounds := 12
	if text := os.Getenv("BASH_CURSORS"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	runner, err := proc.New(proc.Config{Level: proc.Off, SpillDir: t.TempDir(), TempDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, runner.Close()) })
	total := 0
	for round := range rounds {
		r := rand.New(rand.NewPCG(uint64(round), 7))
		want := randomOutput(r, 1+r.IntN(200<<10)) // some exceed the memory buffer
		process, err := runner.Start(context.Background(), proc.Command{Script: "exec cat", Dir: t.TempDir(), KeepStdin: true})
		require.NoError(t, err)
		fed := make(chan error, 1)
		go func() {
			feed := rand.New(rand.NewPCG(uint64(round), 8))
			for rest := want; len(rest) > 0; {
				n := min(len(rest), 1+feed.IntN(1+feed.IntN(20_000)))
				if err := process.WriteStdin(rest[:n]); err != nil {
					fed <- err
					return
				}
				rest = rest[n:]
				if feed.IntN(4) == 0 {
					time.Sleep(time.Duration(feed.IntN(300)) * time.Microsecond)
				}
			}
			process.CloseStdin()
			fed <- nil
		}()
		var got strings.Builder
		at := int64(0)
		for over := false; ; {
			select {
			case <-process.Done():
				over = true
			default:
			}
			text, next, skipped := outputPage(process.Output(), at, 1+r.IntN(9000), 50+r.IntN(9000), over)
			require.Zero(t, skipped)
			require.GreaterOrEqual(t, next, at)
			got.WriteString(text)
			if next == at && over && at == process.Output().Size() {
				break
			}
			require.False(t, next == at && over, "stuck at %d of %d", at, process.Output().Size())
			at = next
		}
		require.NoError(t, <-fed)
		require.EqualValues(t, len(want), at)
		whole, next, _ := outputPage(process.Output(), 0, 1<<20, 1<<30, true)
		require.EqualValues(t, len(want), next)
		require.Equal(t, whole, got.String())
		require.Equal(t, rendered(want), whole)
		require.NoError(t, process.Output().Close())
		total += len(want)
	}
	t.Logf("%d outputs, %d bytes", rounds, total)
}

// rendered returns the expected text of a page, written differently: byte by
// byte for bytes that are not text.
func rendered(p []byte) string {
	text := strings.ReplaceAll(string(p), "\r\n", "\n")
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\uFFFD' && text[i] != 0xef:
			const digits = "0123456789abcdef"
			b.WriteString(`\x` + string(digits[text[i]>>4]) + string(digits[text[i]&15]))
		case r == '\r':
			b.WriteString(`\r`)
		default:
			b.WriteString(escapeUnsafe(string(r)).text)
		}
	}
	return b.String()
}

// Output that was not kept is reported and skipped once.
func TestPageSkipsWhatIsNotKept(t *testing.T) {
	runner, err := proc.New(proc.Config{Level: proc.Off, TempDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, runner.Close()) })
	_, output, err := runner.Run(context.Background(), proc.Command{Script: "seq 100000", Dir: t.TempDir()})
	require.NoError(t, err)
	var skips, shown int64
	at := int64(0)
	for {
		text, next, skipped := outputPage(output, at, 10_000, 40_000, true)
		skips += skipped
		shown += int64(len(text))
		require.Equal(t, next, at+skipped+int64(len(text)))
		if at = next; at == output.Size() {
			break
		}
	}
	require.Positive(t, skips)
	require.Equal(t, output.Size(), skips+shown)
}

// A pattern for the start of a line does not match in the middle of one,
// however the output arrives.
func TestPatternsKnowLines(t *testing.T) {
	runner, err := proc.New(proc.Config{Level: proc.Off, TempDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, runner.Close()) })
	process, err := runner.Start(context.Background(), proc.Command{Script: "exec cat", Dir: t.TempDir(), KeepStdin: true})
	require.NoError(t, err)
	search := outputMatcher{output: process.Output()}
	pattern := regexp.MustCompile("(?m)^0 errors")
	const line = "10 errors\n"
	parts := append([]string{strings.Repeat(line, patternTail/5)}, strings.SplitAfter(line+line, "")...)
	size := int64(0)
	for _, part := range parts { // the repeated search begins everywhere
		require.NoError(t, process.WriteStdin([]byte(part)))
		size += int64(len(part))
		within(t, "it is read", func() bool { return process.Output().Size() == size })
		require.False(t, search.search(pattern))
	}
	require.NoError(t, process.WriteStdin([]byte("0 errors")))
	within(t, "it is found", func() bool { return search.search(pattern) })
}
