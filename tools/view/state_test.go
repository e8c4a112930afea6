package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestAnotherProcessNeedsNoScan: a process uses the saved index of a large file
// that another process scanned, until the file changes.
func TestAnotherProcessNeedsNoScan(t *testing.T) {
	f := newFixture(t)
	data := bytes.Repeat([]byte("0123456789abcdef\n"), 1<<20)
	f.write("large", data)
	first := f.text(map[string]any{"file_path": "large", "offset": 1_000_000, "limit": 3})
	f.restart()
	file, seen := f.seen("large")
	require.NotNil(t, seen, "a file that was changed just now is remembered, too")
	require.EqualValues(t, 1<<20, seen.Index.Lines)
	require.NotEmpty(t, seen.Index.LinesBefore)
	require.EqualValues(t, 1_000_000, seen.Ranges[0].First)
	require.EqualValues(t, 1_000_002, seen.Ranges[0].Last)
	require.Equal(t, textfile.LineSum([]byte("0123456789abcdef\n")), seen.Ranges[0].Sums[0])

	// A record with a wrong line count shows that the file is not scanned
	// again.
	forged := *seen
	forged.Index.Lines = 1<<20 + 5
	truth := f.kept.Dir
	f.kept.Dir = t.TempDir()
	require.NoError(t, state.New(f.kept).Remember(forged))
	f.restart()
	require.Contains(t, f.text(map[string]any{"file_path": "large", "offset": 1_000_000, "limit": 3}), "of 1048581")
	f.kept.Dir = truth
	f.restart()
	require.Equal(t, first, f.text(map[string]any{"file_path": "large", "offset": 1_000_000, "limit": 3}))

	past := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(file, past, past))
	data[0] = 'X'
	f.write("large", data)
	require.NoError(t, os.Chtimes(file, past, past))
	changed := f.text(map[string]any{"file_path": "large", "offset": 1_000_000, "limit": 3})
	require.NotEqual(t, first, changed, "the times were put back, the change is seen")
}

// seen returns the path of a file and the record of its current version; nil:
// none.
func (f *fixture) seen(name string) (string, *state.Seen) {
	f.t.Helper()
	served, err := sandbox.New(sandbox.Config{Roots: []string{f.root}}).FS(context.Background())
	require.NoError(f.t, err)
	file, err := served.Open(name)
	require.NoError(f.t, err)
	defer file.Close()
	seen, ok := state.New(f.kept).SeenWithStamp(file.Path, state.StampOf(file.Stat, time.Now()))
	if !ok {
		return file.Path, nil
	}
	return file.Path, seen
}

// TestWithoutState: without state, results are the same and nothing is written.
func TestWithoutState(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", []byte("one\ntwo\n"))
	with := f.text(map[string]any{"file_path": "a.txt"})
	dir := t.TempDir()
	f.kept = state.Config{Disabled: true, Getenv: func(string) string { return dir }}
	f.restart()
	require.Equal(t, with, f.text(map[string]any{"file_path": "a.txt"}))
	require.Equal(t, with, f.text(map[string]any{"file_path": "a.txt"}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)

	blocked := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	f.kept = state.Config{Dir: filepath.Join(blocked, "state")}
	f.restart()
	require.Equal(t, with, f.text(map[string]any{"file_path": "a.txt"}), "a directory that cannot be made fails nothing")
}

// TestChangesAreSeen: each version of a file that is rewritten immediately,
// with the same size, is shown correctly.
func TestChangesAreSeen(t *testing.T) {
	f := newFixture(t)
	last := ""
	for i := range 200 {
		f.write("a.txt", fmt.Appendf(nil, "version %03d\n", i))
		text := f.text(map[string]any{"file_path": "a.txt"})
		require.Contains(t, text, fmt.Sprintf("version %03d", i))
		require.NotEqual(t, last, text)
		last = text
	}
}

// TestGrowingAndShrinking: a file that is written while it is read is shown in
// a consistent state, or the call says that it changes.
func TestGrowingAndShrinking(t *testing.T) {
	f := newFixture(t)
	line := []byte("a line of a log that grows\n")
	f.write("log", bytes.Repeat(line, 1000))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		out, err := os.OpenFile(filepath.Join(f.root, "log"), os.O_WRONLY|os.O_APPEND, 0)
		for i := 0; err == nil && ctx.Err() == nil; i++ {
			if i%50 == 49 {
				err = out.Truncate(int64(len(line) * 10))
				continue
			}
			_, err = out.Write(line)
		}
		done <- err
	}()
	for range 100 {
		res := f.call(map[string]any{"file_path": "log", "tail": 3})
		if res.IsError {
			require.Equal(t, toolerr.Conflict, res.Code, res.Text)
			continue
		}
		require.Contains(t, res.Text, string(line))
	}
	cancel()
	require.NoError(t, <-done)
}

// TestStateIsPrivate: records show which files a user viewed, so other users
// cannot read them.
func TestStateIsPrivate(t *testing.T) {
	f := newFixture(t)
	f.write("a.txt", []byte("x\n"))
	f.text(map[string]any{"file_path": "a.txt"})
	found := 0
	require.NoError(t, filepath.WalkDir(f.kept.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found++
		data, err := os.ReadFile(path)
		require.NotContains(t, string(data), "x\n\"")
		return err
	}))
	require.Positive(t, found)
}

// TestANamedEncodingIsRemembered: a given encoding is remembered for the
// version of the file and the client, across processes. An image is still shown
// as an image.
func TestANamedEncodingIsRemembered(t *testing.T) {
	f := newFixture(t)
	f.kept.Client = "one"
	f.restart()
	koi8 := []byte("\xd0\xd2\xc9\xd7\xc5\xd4\n")
	f.write("koi8.txt", koi8)
	detected := f.text(map[string]any{"file_path": "koi8.txt"})
	require.NotContains(t, detected, "привет")
	require.Contains(t, f.text(map[string]any{"file_path": "koi8.txt", "encoding": "koi8-r"}), "привет")
	f.restart()
	require.Contains(t, f.text(map[string]any{"file_path": "koi8.txt"}), "привет")
	require.Contains(t, f.text(map[string]any{"file_path": "koi8.txt", "encoding": "windows-1251"}), "РТЙЧЕФ")
	require.Contains(t, f.text(map[string]any{"file_path": "koi8.txt"}), "РТЙЧЕФ", "the last one that was named")

	f.kept.Client = "two"
	f.restart()
	require.Equal(t, detected, f.text(map[string]any{"file_path": "koi8.txt"}), "another client named none")
	f.kept.Client = "one"
	f.restart()
	f.write("koi8.txt", append([]byte("x "), koi8...))
	require.NotContains(t, f.text(map[string]any{"file_path": "koi8.txt"}), "РТЙЧЕФ", "another version")

	f.write("binary", []byte("\x00\x01\x02\x03\x00h\x00i\x00\n"))
	require.Contains(t, f.text(map[string]any{"file_path": "binary"}), "binary")
	require.Contains(t, f.text(map[string]any{"file_path": "binary", "encoding": "utf-16be"}), "hi\n")
	require.Contains(t, f.text(map[string]any{"file_path": "binary"}), "hi\n", "text because the client said so")

	f.write("image.png", pngOf(t))
	require.NotEmpty(t, f.call(map[string]any{"file_path": "image.png"}).Images)
	require.Empty(t, f.call(map[string]any{"file_path": "image.png", "encoding": "latin-1"}).Images)
	require.NotEmpty(t, f.call(map[string]any{"file_path": "image.png"}).Images)
}

// pngOf returns a small image.
func pngOf(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, image.NewGray(image.Rect(0, 0, 4, 4))))
	return out.Bytes()
}
