package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
)

// A client that sends slowly, but without a long pause, gets the answer to a request
// that is refused before it has been read. The host once read on for 2 s in all, which
// was too short for large bodies on slow connections and machines.
func TestASlowBodyIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gateway.AnswerAndDrain(w, r, func() { w.WriteHeader(http.StatusForbidden) })
	}))
	defer s.Close()
	const pieces, size = 30, 100_000
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", pieces*size)
	require.NoError(t, err)
	for n := range pieces {
		time.Sleep(100 * time.Millisecond)
		_, err = io.WriteString(conn, strings.Repeat("x", size))
		require.NoError(t, err, "piece %d", n)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
}
