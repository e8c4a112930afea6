package eventstream_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/eventstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// all reads events until the stream ends.
func all(t *testing.T, src io.Reader) (events []string) {
	t.Helper()
	r := eventstream.NewReader(src, 20)
	for {
		e, err := r.Next()
		switch {
		case errors.As(err, new(*jsonrpc.TooLongError)):
			events = append(events, "too long")
		case err != nil:
			require.ErrorIs(t, err, io.EOF)
			return events
		default:
			events = append(events, e.Name+"|"+string(e.Data)+"|"+e.ID)
		}
	}
}

// However a stream is cut into what is read at once, and whatever ends its lines, it
// is the same.
func TestEveryLineEndAndEveryCut(t *testing.T) {
	const stream = ": comment\n\nid: 7\nevent: a\ndata: one\ndata:two\n\ndata\n\nevent: no data\n\n:\ndata: {\"a\":1}\nother: x\n\ndata: 0123456789012345678901\n\ndata: last\n\ndata: never ended\n"
	want := []string{"a|one\ntwo|7", "||7", "|{\"a\":1}|7", "too long", "|last|7"}
	for _, end := range []string{"\n", "\r\n", "\r"} {
		text := strings.ReplaceAll(stream, "\n", end)
		require.Equal(t, want, all(t, strings.NewReader(text)), "%q", end)
		require.Equal(t, want, all(t, iotest.OneByteReader(strings.NewReader(text))), "%q", end)
		require.Equal(t, want, all(t, iotest.HalfReader(strings.NewReader("\xef\xbb\xbf"+text))), "%q", end)
	}
}
