package index_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/tools/grep/index"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// reader generates files from their paths, and records which it read.
type reader struct {
	mu    sync.Mutex
	order []string
	hook  func(ctx context.Context, path string) error // nil, or called first
}

func (r *reader) read(ctx context.Context, path string) (index.Content, error) {
	if r.hook != nil {
		if err := r.hook(ctx, path); err != nil {
			return index.Content{}, err
		}
	}
	r.mu.Lock()
	r.order = append(r.order, path)
	r.mu.Unlock()
	text := textOf(path)
	return index.Content{Key: keyOf(path), Taken: now(), Text: text, Binary: strings.HasSuffix(path, ".bin")}, nil
}

func (r *reader) paths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.order...)
}

func textOf(path string) []byte { return []byte("the text of " + path) }

func keyOf(path string) index.Key {
	ino := uint64(14695981039346656037)
	for _, c := range []byte(path) {
		ino = (ino ^ uint64(c)) * 1099511628211
	}
	return settledKey(ino, textOf(path))
}

func queryFor(text string) *index.Query {
	return index.NewQuery([][]search.Literal{anyOf(text)})
}

func TestBuilderAddsWhatIsQueued(t *testing.T) {
	x, r := index.New(1<<20), &reader{}
	b := index.StartBuilder(t.Context(), x, r.read)
	defer b.Close()
	b.Queue([]string{"a", "b", "c.bin"})
	require.NoError(t, b.WaitIdle(t.Context()))
	require.Equal(t, []string{"a", "b", "c.bin"}, r.paths())
	require.Equal(t, index.Maybe, x.Lookup(keyOf("a"), queryFor("text of a")))
	require.Equal(t, index.Missing, x.Lookup(keyOf("a"), queryFor("text of b")))
	require.Equal(t, index.Binary, x.Lookup(keyOf("c.bin"), nil))
	require.NoError(t, b.WaitIdle(t.Context()), "again, with nothing to do")
}

func TestBuilderRestsWhileCallsAreInFlight(t *testing.T) {
	x, r := index.New(1<<20), &reader{}
	b := index.StartBuilder(t.Context(), x, r.read)
	defer b.Close()
	first, second := b.Pause(), b.Pause()
	b.Queue([]string{"a", "b", "a"})
	b.Queue([]string{"b", "c", "a"})
	first()
	first() // counts once
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.WaitIdle(ctx), context.Canceled)
	require.Empty(t, r.paths())
	second()
	require.NoError(t, b.WaitIdle(t.Context()))
	require.Equal(t, []string{"a", "b", "c"}, r.paths(), "each once")
}

// A large file does not delay a call: adding it is interrupted.
func TestLargeFilesAreTakenUpInPieces(t *testing.T) {
	x := index.New(1 << 20)
	text := bytes.Repeat([]byte("a line of text\n"), 3*index.PieceSize/15)
	k := settledKey(1, text)
	pauses, stopped := 0, errors.New("stopped")
	require.ErrorIs(t, x.AddPausing(k, now(), text, func() error {
		if pauses++; pauses == 2 {
			return stopped
		}
		return nil
	}), stopped)
	require.Equal(t, 2, pauses)
	require.Equal(t, index.Unknown, x.Lookup(k, nil))
	// The part that was added does not appear in the next file's filter.
	k = settledKey(2, []byte("another"))
	x.Add(k, now(), []byte("another"), false)
	require.Equal(t, index.Missing, x.Lookup(k, queryFor("line of text")))
}

func TestBuilderRestsWithinLargeFiles(t *testing.T) {
	x := index.New(1 << 20)
	text := bytes.Repeat([]byte("a line of text\n"), 3*index.PieceSize/15)
	entered, read := make(chan struct{}), make(chan struct{})
	start := func() *index.Builder {
		b := index.StartBuilder(t.Context(), x, func(context.Context, string) (index.Content, error) {
			entered <- struct{}{}
			<-read
			return index.Content{Key: settledKey(1, text), Taken: now(), Text: text}, nil
		})
		b.Queue([]string{"large"})
		<-entered
		return b
	}
	b := start()
	resume := b.Pause()
	read <- struct{}{}
	b.Close() // not delayed by the pause
	require.Equal(t, index.Unknown, x.Lookup(settledKey(1, text), nil))
	resume()

	b = start()
	defer b.Close()
	resume = b.Pause()
	read <- struct{}{}
	resume()
	require.NoError(t, b.WaitIdle(t.Context()))
	require.Equal(t, index.Maybe, x.Lookup(settledKey(1, text), nil))
}

func TestBuilderSkipsWhatCannotBeRead(t *testing.T) {
	x := index.New(1 << 20)
	r := &reader{hook: func(_ context.Context, path string) error {
		if path == "b" {
			return errors.New("denied")
		}
		return nil
	}}
	b := index.StartBuilder(t.Context(), x, r.read)
	defer b.Close()
	b.Queue([]string{"a", "b", "c"})
	require.NoError(t, b.WaitIdle(t.Context()))
	require.Equal(t, index.Maybe, x.Lookup(keyOf("c"), nil))
	require.Equal(t, index.Unknown, x.Lookup(keyOf("b"), nil))
	b.Queue([]string{"b"})
	require.NoError(t, b.WaitIdle(t.Context()), "it may be queued again")
}

// Close ends the current read and leaves nothing running.
func TestBuilderStops(t *testing.T) {
	for name, stop := range map[string]func(b *index.Builder, cancel func()){
		"closed":  func(b *index.Builder, _ func()) { b.Close() },
		"context": func(b *index.Builder, cancel func()) { cancel(); b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			entered, left := make(chan struct{}), atomic.Bool{}
			r := &reader{hook: func(ctx context.Context, path string) error {
				close(entered)
				<-ctx.Done()
				left.Store(true)
				return ctx.Err()
			}}
			b := index.StartBuilder(ctx, index.New(1<<20), r.read)
			b.Queue([]string{"a", "b", "c"})
			<-entered
			resume := b.Pause()
			stop(b, cancel)
			require.True(t, left.Load(), "Close waits")
			b.Queue([]string{"d"})
			resume()
			b.Close()
			require.NoError(t, b.WaitIdle(t.Context()), "nothing to wait for")
			require.Empty(t, r.paths())
		})
	}
}

// A call in flight does not delay Close.
func TestBuilderStopsWhilePaused(t *testing.T) {
	r := &reader{}
	b := index.StartBuilder(t.Context(), index.New(1<<20), r.read)
	resume := b.Pause()
	defer resume()
	b.Queue([]string{"a"})
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		b.Close()
	}()
	select {
	case <-closed:
		require.Empty(t, r.paths(), "nothing is read while a call is in flight")
	case <-time.After(mcpkittest.MaxWait):
		require.Fail(t, "Close waits for the call")
	}
}

// The queue takes bounded memory for any number of files.
func TestBuilderQueueIsBounded(t *testing.T) {
	x := index.New(1 << 30)
	count := 0
	b := index.StartBuilder(t.Context(), x, func(context.Context, string) (index.Content, error) {
		count++
		return index.Content{}, errors.New("not wanted")
	})
	defer b.Close()
	resume := b.Pause()
	long := strings.Repeat("d/", 2000)
	for i := range 20_000 {
		b.Queue([]string{fmt.Sprint(long, i)})
	}
	resume()
	require.NoError(t, b.WaitIdle(t.Context()))
	require.Greater(t, count, 1000)
	require.Less(t, count, 10_000)
}

// Nothing is read for a full index.
func TestBuilderStopsReadingForAFullIndex(t *testing.T) {
	x, r := index.New(20_000), &reader{}
	b := index.StartBuilder(t.Context(), x, r.read)
	defer b.Close()
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprint("file ", i))
	}
	b.Queue(paths)
	require.NoError(t, b.WaitIdle(t.Context()))
	read := len(r.paths())
	require.Less(t, read, 200)
	files, _ := x.Stats()
	require.Equal(t, read-1, files, "all but the one for which there was no room")
	// A new search lets the index drop files that it does not look up.
	x.Lookup(keyOf("another"), queryFor("anything"))
	b.Queue([]string{"another"})
	require.NoError(t, b.WaitIdle(t.Context()))
	require.Equal(t, index.Maybe, x.Lookup(keyOf("another"), nil))
}
