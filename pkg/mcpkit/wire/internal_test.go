package wire

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// stuckWriter is a client that reads nothing until it is released.
type stuckWriter struct{ release chan struct{} }

func (w stuckWriter) Write(p []byte) (int, error) {
	<-w.release
	return len(p), nil
}

// countingReader counts the bytes read from it.
type countingReader struct {
	io.Reader
	n atomic.Int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n.Add(int64(n))
	return n, err
}

// A client that floods and reads no answer is held back in its pipe: the
// waiting answers stay bounded, including those to malformed lines. Once it
// reads, it gets all of them.
func TestAFloodThatNobodyReadsIsHeldBack(t *testing.T) {
	const lines, hold = 200_000, 1 << 20 // some 20 MB of answers
	out := stuckWriter{make(chan struct{})}
	in := &countingReader{Reader: strings.NewReader(strings.Repeat("x\n", lines))}
	c := newConn(t.Context(), nil, out, ServeOptions{})
	c.out.maxReadBacklog = hold
	c.lines = jsonrpc.NewReader(in, 0)
	go c.calls.runWorker(workerTask{readLoop: c.readLoop})

	before, same := int64(0), 0
	require.Eventually(t, func() bool {
		now := in.n.Load()
		if same++; now == 0 || now != before {
			before, same = now, 0
		}
		return same >= 10
	}, 20*time.Second, 20*time.Millisecond, "reading pauses")
	require.Empty(t, c.readEnded)
	require.Less(t, in.n.Load(), int64(lines))

	close(out.release)
	require.NoError(t, <-c.readEnded)
	require.NoError(t, c.out.flush())
	require.EqualValues(t, 2*lines, in.n.Load())
}

// The queue counts a request's memory in addition to its line, so that a flood
// of small requests is held back, too.
func TestTheQueueIsBoundedInMemory(t *testing.T) {
	block := make(chan struct{})
	q := newRequestQueue(1, func(*request) { <-block })
	q.add(&request{})
	for q.bytes <= maxQueueBytes {
		q.add(&request{line: []byte(`{}`)})
	}
	require.LessOrEqual(t, len(q.waiting), maxQueueBytes/requestCost+1)
	close(block)
}

// A large result is written without a copy, and the memory after it stays
// unchanged; small messages that follow are joined in another buffer.
func TestALargeResultIsNotCopied(t *testing.T) {
	memory := bytes.Repeat([]byte("x"), 3*maxJoinedBytes)
	result := memory[:2*maxJoinedBytes]
	var out writes
	lw := newLineWriter(&out, func(error) {})
	lw.mu.Lock()
	lw.writing = true // so that all of it waits
	lw.enqueue([]byte(`{"head":`), result, []byte("}"))
	lw.enqueue([]byte("a"))
	lw.enqueue([]byte("b"))
	lw.writeQueue()
	require.Zero(t, lw.waitingBytes)
	lw.mu.Unlock()
	require.Equal(t, bytes.Repeat([]byte("x"), len(memory)), memory)
	require.Equal(t, `{"head":`+string(result)+"}\na\nb\n", string(bytes.Join(out, nil)))
	require.Len(t, out, 3)
	require.Same(t, &result[0], &out[1][0])
}

type writes [][]byte

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, p)
	return len(p), nil
}
