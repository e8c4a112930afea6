package upstream

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A line that the pipe has no room for is written as it is read, after its
// sender has gone on; and the time that was set for that does not count for
// the lines after it.
func TestALineLongerThanThePipe(t *testing.T) {
	r, file, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer file.Close()
	w := newWriter(file, time.Minute)
	for round := range 3 {
		long := append(bytes.Repeat([]byte{byte('a' + round)}, 8<<20), '\n')
		require.NoError(t, w.send(bytes.Clone(long)))
		require.NoError(t, w.send([]byte("behind it\n")))
		got := make([]byte, len(long)+len("behind it\n"))
		_, err = io.ReadFull(r, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(append(long, "behind it\n"...), got))
		require.Eventually(t, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return !w.writing
		}, time.Minute, time.Millisecond)
		time.Sleep(2 * eagerness)
		require.NoError(t, w.send([]byte("later\n")))
		_, err = io.ReadFull(r, got[:len("later\n")])
		require.NoError(t, err)
		require.Equal(t, "later\n", string(got[:len("later\n")]))
	}
	require.Empty(t, w.unread)
}
